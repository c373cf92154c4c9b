//! What the entries of a cache are in its file, for whoever keeps one (`oxlite.cache` does): the number under which
//! a key is looked for, and a seal on each value.
//!
//! Invariants:
//! - A value is read as what was sealed under that key with that expiry and kind, or not at all.
//! - With a secret key the seal is a MAC (SipHash-2-4 with 128 bits, which is made for that): nobody makes one who has
//!   not the key. Without, it finds what a power cut has mixed up, and no more.
//! - Numbers are evenly distributed over 64 bits, whatever the keys are.

use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as Tagger};
use std::hash::Hasher;

/// A key of SipHash.
pub type SealKey = [u8; 16];

const NUMBER_KEY: &SealKey = b"oxlite cache: id";

/// What seals where there is no secret.
const PUBLIC_KEY: SealKey = *b"oxlite cache: no";

const TAG_BYTES: usize = 16;
const HEADER_BYTES: usize = 1 + TAG_BYTES;

/// The number under which a key is looked for.
pub fn number_of(key: &str) -> i64 {
    SipHasher24::new_with_key(NUMBER_KEY)
        .hash(key.as_bytes())
        .cast_signed()
}

/// Seals values by the first of its keys, and knows the seals of all.
pub struct Seals(Box<[SealKey]>);

impl Seals {
    /// With these keys; without any the seal is no secret.
    pub fn new(keys: Vec<SealKey>) -> Self {
        match keys.is_empty() {
            true => Self(Box::new([PUBLIC_KEY])),
            false => Self(keys.into()),
        }
    }

    /// The first bytes of what is stored of a value, after which its content comes.
    pub fn header(
        &self,
        kind: u8,
        key: &str,
        expires_at: i64,
        content: &[u8],
    ) -> [u8; HEADER_BYTES] {
        let mut header = [kind; HEADER_BYTES];
        let tag = tag(&self.0[0], kind, key, expires_at, content);
        header[1..].copy_from_slice(&tag.to_le_bytes());
        header
    }

    /// Kind and content of what was sealed; `None` for anything else.
    pub fn opened<'v>(
        &self,
        key: &str,
        expires_at: i64,
        value: &'v [u8],
    ) -> Option<(u8, &'v [u8])> {
        let (kind, rest) = value.split_first()?;
        let (found, content) = rest.split_first_chunk::<TAG_BYTES>()?;
        let found = u128::from_le_bytes(*found);
        let is_right = |by| tag(by, *kind, key, expires_at, content) == found;
        self.0.iter().any(is_right).then_some((*kind, content))
    }
}

fn tag(by: &SealKey, kind: u8, key: &str, expires_at: i64, content: &[u8]) -> u128 {
    let mut tagger = Tagger::new_with_key(by);
    tagger.write(content);
    tagger.write(key.as_bytes());
    // Where the key begins, so that no other content and key make the same.
    let mut end = [kind; 8 + 8 + 1];
    end[..8].copy_from_slice(&(key.len() as u64).to_le_bytes());
    end[8..16].copy_from_slice(&expires_at.to_le_bytes());
    tagger.write(&end);
    tagger.finish128().as_u128()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn sealed(by: &Seals, kind: u8, key: &str, expires_at: i64, content: &[u8]) -> Vec<u8> {
        let mut value = by.header(kind, key, expires_at, content).to_vec();
        value.extend_from_slice(content);
        value
    }

    #[test]
    fn a_value_is_opened_as_what_was_sealed_and_as_nothing_else() {
        let seals = Seals::new(vec![*b"a secret key: 16"]);
        let value = sealed(&seals, 3, "key", 17, b"content");
        assert_eq!(
            seals.opened("key", 17, &value),
            Some((3, b"content".as_slice()))
        );
        assert_eq!(seals.opened("kez", 17, &value), None);
        assert_eq!(seals.opened("key", 18, &value), None);
        for index in 0..value.len() {
            let mut changed = value.clone();
            changed[index] ^= 1;
            assert_eq!(seals.opened("key", 17, &changed), None);
            assert_eq!(seals.opened("key", 17, &value[..index]), None);
        }
    }

    #[test]
    fn the_end_of_a_key_is_not_the_beginning_of_a_content() {
        let seals = Seals::new(vec![]);
        let value = sealed(&seals, 0, "ab", 0, b"c");
        let mut other = value[..HEADER_BYTES].to_vec();
        other.extend_from_slice(b"bc");
        assert_eq!(seals.opened("a", 0, &other), None);
    }

    #[test]
    fn the_first_secret_seals_and_all_open() {
        let (old, new) = (*b"an old key of 16", *b"a new key, of 16");
        let value = sealed(&Seals::new(vec![old]), 1, "key", 0, b"");
        assert!(
            Seals::new(vec![new, old])
                .opened("key", 0, &value)
                .is_some()
        );
        assert!(Seals::new(vec![new]).opened("key", 0, &value).is_none());
        assert!(Seals::new(vec![]).opened("key", 0, &value).is_none());
    }

    #[test]
    fn numbers_differ_as_keys_do() {
        assert_eq!(number_of("key"), number_of("key"));
        let numbers: std::collections::HashSet<_> = (0..10_000)
            .map(|index| number_of(&index.to_string()))
            .collect();
        assert_eq!(numbers.len(), 10_000);
    }
}
