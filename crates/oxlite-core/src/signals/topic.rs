//! What is signalled, as a number that is the same in every process and every build.

/// A topic. Two names may be one topic, which wakes in vain and loses nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(u64);

/// In how many places of the board the latest signals are noted.
pub(super) const BUCKETS: usize = 1024;

/// How many bits say what a process listens to.
pub(super) const WANTED_BITS: usize = 512;

impl Topic {
    /// That of this name: FNV-1a (RFC 9923), since names are short, and MurmurHash3's last steps, which mix the
    /// bits that names with the same beginning leave alike.
    pub const fn named(name: &str) -> Self {
        let bytes = name.as_bytes();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut index = 0;
        while index < bytes.len() {
            hash = (hash ^ bytes[index] as u64).wrapping_mul(0x0100_0000_01b3);
            index += 1;
        }
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Self(hash ^ (hash >> 33))
    }

    /// Where its latest signal is noted.
    pub(super) fn bucket(self) -> usize {
        (self.0 >> 32) as usize % BUCKETS
    }

    /// The bit that says that a process listens to it.
    pub(super) fn wanted_bit(self) -> usize {
        self.0 as usize % WANTED_BITS
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_has_the_number_that_every_build_gives_it() {
        assert_eq!(Topic::named(""), Topic(0xefd0_1f60_ba99_2926));
        assert_eq!(Topic::named("foobar"), Topic(0x2c22_1949_22d1_672b));
    }

    #[test]
    fn names_that_differ_by_a_digit_are_spread_over_the_board() {
        let topics: Vec<_> = (0..1000)
            .map(|number| Topic::named(&format!("room-{number}")))
            .collect();
        let buckets: HashSet<_> = topics.iter().map(|topic| topic.bucket()).collect();
        let bits: HashSet<_> = topics.iter().map(|topic| topic.wanted_bit()).collect();
        // Thrown at random, they would be 638 and 440.
        assert!(buckets.len() > 580, "{}", buckets.len());
        assert!(bits.len() > 410, "{}", bits.len());
    }
}
