//! Who may lock the bytes of a lock file: those who may write the database, and nobody else.
//!
//! Whoever can read the file can lock its bytes and keep everybody waiting, and can read the SQL in its
//! note. So its *read* permission follows the database's *write* permission: for its owner, for its group,
//! for others, and for each user and group of an access list (POSIX.1e).
//!
//! Invariants:
//! - Nothing is asked of a descriptor of the database: closing one would take locks away.
//! - A file is changed only if it is ours (or we are root), has one name, and holds nothing but a note: a
//!   file of ours that somebody has linked or moved to this place keeps its permissions.

use std::ffi::{CString, c_void};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

/// What every note begins with, whatever its form.
const NOTE_BEGINS: &[u8] = b"oxlite ";

/// To read and to write, as three bits.
const READ_AND_WRITE: u16 = 0o6;
const WRITE: u16 = 0o2;

/// The extended attribute that holds an access list, and what it is made of (acl(5), `posix_acl_xattr.h`).
const LIST: &std::ffi::CStr = c"system.posix_acl_access";
const LIST_VERSION: u32 = 2;
const LIST_AT_MOST: usize = 64 << 10;
const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;
const NOBODY: u32 = u32::MAX;

/// Who has made a file, and how many names it has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    pub(super) is_regular: bool,
    pub(super) owner: u32,
    pub(super) group: u32,
    pub(super) links: u64,
}

impl From<&Metadata> for Status {
    fn from(metadata: &Metadata) -> Self {
        Self {
            is_regular: metadata.is_file(),
            owner: metadata.uid(),
            group: metadata.gid(),
            links: metadata.nlink(),
        }
    }
}

/// The folder of a database, as somebody who makes files in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folder {
    group: u32,
    /// Whether somebody may write in it who is neither its owner nor in its group.
    is_open: bool,
}

impl Folder {
    /// That of the file at `path`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let folder = parent(path);
        let status = std::fs::metadata(folder)?;
        Ok(Self {
            group: status.gid(),
            is_open: status.mode() & 0o002 != 0 || read_list(folder)?.is_some(),
        })
    }
}

/// The folder that a path leads into.
pub(super) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Who may write a database.
#[derive(Clone, Debug)]
pub(super) struct Writers {
    owner: u32,
    group: u32,
    may_owner: bool,
    may_group: bool,
    may_others: bool,
    /// Its access list, if it has one.
    list: Option<Vec<Entry>>,
}

/// A line of an access list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    tag: u16,
    id: u32,
    permission: u16,
}

/// The permissions of a file.
#[derive(Debug, PartialEq, Eq)]
struct Access {
    mode: u32,
    list: Option<Vec<Entry>>,
}

impl Writers {
    /// Those of the database at `path`.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let status = std::fs::metadata(path)?;
        let list = read_list(path)?;
        let mode = status.mode();
        Ok(Self {
            owner: status.uid(),
            group: status.gid(),
            may_owner: mode & 0o200 != 0,
            // With a list, the bits of the group are its mask.
            may_group: match &list {
                Some(list) => list
                    .iter()
                    .any(|entry| entry.tag == OWNING_GROUP && may_write(list, entry)),
                None => mode & 0o020 != 0,
            },
            may_others: mode & 0o002 != 0,
            list,
        })
    }

    /// Whether a lock file may be used that is there; `us` is the user of this process.
    ///
    /// | the file | used |
    /// |---|---|
    /// | is no regular file | no |
    /// | is ours, root's, or the database owner's | yes |
    /// | is another user's, and has several names (hard links) | no |
    /// | is another user's, where everybody may write the database | yes |
    /// | is another user's, whom the database's access list lets write | yes |
    /// | is another user's, with the database's group, which may write the database | yes |
    /// | the same, where the folder may have given it the group, and others may write in the folder | no |
    /// | is any other user's | no |
    ///
    /// Giving a file a group takes being in it; but where the folder has that group, what is made in it
    /// may get it from there. An error says what to do.
    pub(super) fn check(&self, file: Status, folder: Folder, us: u32) -> Result<(), String> {
        let Status {
            is_regular,
            owner,
            group,
            links,
        } = file;
        if !is_regular {
            return Err("it is no regular file".into());
        }
        if [us, 0, self.owner].contains(&owner) {
            return Ok(());
        }
        let of_whom = format!(
            "it belongs to user {owner}, who is neither this user nor the database's owner ({})",
            self.owner
        );
        if links > 1 {
            return Err(format!("{of_whom}, and has several names (hard links)"));
        }
        if (self.may_group && self.may_others) || self.is_listed(owner) {
            return Ok(());
        }
        if !self.may_group {
            return Err(format!(
                "{of_whom}; users share it where a group of theirs may write the database (chmod g+w)"
            ));
        }
        if group != self.group {
            return Err(format!(
                "{of_whom}, and to group {group}, not to the database's ({}): its owner can change that \
                 with chgrp, or remove it while nobody has the database open",
                self.group
            ));
        }
        if folder.group == group && folder.is_open {
            return Err(format!(
                "{of_whom}, and may have its group from the folder, in which others may write (chmod o-w)"
            ));
        }
        Ok(())
    }

    /// Whether the access list names a user who may write.
    fn is_listed(&self, user: u32) -> bool {
        self.list.as_ref().is_some_and(|list| {
            list.iter()
                .any(|entry| entry.tag == USER && entry.id == user && may_write(list, entry))
        })
    }

    /// What a lock file with that owner and that group is to permit. Who has made it writes, whatever the
    /// database's owner may.
    fn access(&self, owner: u32, group: u32) -> Access {
        let may_its_owner = self.may_owner || owner != self.owner;
        let bits = |may: bool| if may { READ_AND_WRITE } else { 0 };
        // In another group than the database's they are others, who may be in the database's as well.
        let may_strangers = self.may_others && self.may_group;
        let (its_group, others) = match group == self.group {
            true => (self.may_group, self.may_others),
            false => (may_strangers, may_strangers),
        };
        let Some(list) = &self.list else {
            let (owner, group, others) = (bits(may_its_owner), bits(its_group), bits(others));
            return Access {
                mode: u32::from(owner << 6 | group << 3 | others),
                list: None,
            };
        };
        let mut entries: Vec<_> = list
            .iter()
            .filter(|entry| matches!(entry.tag, USER | GROUP))
            .map(|entry| Entry {
                permission: bits(may_write(list, entry)),
                ..*entry
            })
            .collect();
        let mut add = |tag, id, permission| {
            let is_there = |entry: &Entry| (entry.tag, entry.id) == (tag, id);
            if !entries.iter().any(is_there) {
                entries.push(Entry {
                    tag,
                    id,
                    permission,
                });
            }
        };
        if owner != self.owner {
            add(USER, self.owner, bits(self.may_owner));
        }
        if group != self.group {
            add(GROUP, self.group, bits(self.may_group));
        }
        let its_group = bits(its_group);
        let named = entries
            .iter()
            .fold(its_group, |all, entry| all | entry.permission);
        entries.push(Entry {
            tag: OWNER,
            id: NOBODY,
            permission: bits(may_its_owner),
        });
        entries.push(Entry {
            tag: OWNING_GROUP,
            id: NOBODY,
            permission: its_group,
        });
        entries.push(Entry {
            tag: MASK,
            id: NOBODY,
            permission: named,
        });
        entries.push(Entry {
            tag: OTHERS,
            id: NOBODY,
            permission: bits(others),
        });
        entries.sort();
        Access {
            mode: u32::from(bits(may_its_owner) << 6 | named << 3 | bits(others)),
            list: Some(entries),
        }
    }

    /// Gives a new lock file to the database's owner, so far as we may, and permits what it is to permit.
    pub(super) fn dress(&self, file: &File) -> io::Result<()> {
        // Only root can give a file away; it is usable as it is.
        if fchown(file, Some(self.owner), Some(self.group)).is_err() {
            let _ = fchown(file, None, Some(self.group));
        }
        let status = file.metadata()?;
        self.access(status.uid(), status.gid()).give(file)
    }

    /// Has a lock file that was there permit no more and no less, if it is ours to change.
    pub(super) fn mend(&self, file: &File, us: u32) -> io::Result<()> {
        let status = file.metadata()?;
        let is_ours = us == 0 || status.uid() == us;
        if !is_ours || status.nlink() > 1 || !holds_a_note(file)? {
            return Ok(());
        }
        let is_right = |status: &Metadata| -> io::Result<bool> {
            let access = Access {
                mode: status.mode() & 0o7777,
                list: read_list_of(file)?,
            };
            Ok(access == self.access(status.uid(), status.gid()))
        };
        if status.gid() == self.group && is_right(&status)? {
            return Ok(());
        }
        if status.gid() != self.group {
            let _ = fchown(file, None, Some(self.group));
        }
        let status = file.metadata()?;
        match is_right(&status)? {
            true => Ok(()),
            false => self.access(status.uid(), status.gid()).give(file),
        }
    }
}

impl Access {
    /// Has a file permit this. At no moment does it permit what it is not to.
    fn give(&self, file: &File) -> io::Result<()> {
        file.set_permissions(Permissions::from_mode(0o600))?;
        match &self.list {
            // With one that the folder has given it, the mode would be no more than its mask.
            None => {
                // SAFETY: an open descriptor and a NUL-terminated name. Where there are no lists, there is
                // nothing to remove.
                unsafe { libc::fremovexattr(file.as_raw_fd(), LIST.as_ptr()) };
                file.set_permissions(Permissions::from_mode(self.mode))
            }
            Some(list) => {
                let bytes = to_bytes(list);
                // SAFETY: an open descriptor, a NUL-terminated name, and bytes of that length.
                let failed = unsafe {
                    libc::fsetxattr(
                        file.as_raw_fd(),
                        LIST.as_ptr(),
                        bytes.as_ptr().cast(),
                        bytes.len(),
                        0,
                    )
                };
                match failed {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                }
            }
        }
    }
}

/// Whether a file begins as a note does, so that it is no other program's. One that is empty may be: a log
/// that is still to be written, moved to this place.
pub(super) fn holds_a_note(file: &File) -> io::Result<bool> {
    let mut begins = [0; NOTE_BEGINS.len()];
    let length = file.read_at(&mut begins, 0)?;
    Ok(begins[..length] == *NOTE_BEGINS)
}

/// Has a new file known as one of ours, before anybody else has a name for it.
pub(super) fn mark(file: &File) -> io::Result<()> {
    file.write_all_at(NOTE_BEGINS, 0)
}

/// Whether a line of a list lets write, with its mask.
fn may_write(list: &[Entry], entry: &Entry) -> bool {
    let mask = list.iter().find(|entry| entry.tag == MASK);
    entry.permission & mask.map_or(WRITE, |mask| mask.permission) & WRITE != 0
}

fn read_list(path: &Path) -> io::Result<Option<Vec<Entry>>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    list_from(|place, length| {
        // SAFETY: NUL-terminated names, and a place of that length.
        unsafe { libc::getxattr(path.as_ptr(), LIST.as_ptr(), place, length) }
    })
}

fn read_list_of(file: &File) -> io::Result<Option<Vec<Entry>>> {
    list_from(|place, length| {
        // SAFETY: an open descriptor, a NUL-terminated name, and a place of that length.
        unsafe { libc::fgetxattr(file.as_raw_fd(), LIST.as_ptr(), place, length) }
    })
}

/// The list that `read` puts into a place of a given length; none if the file has none, or its file system
/// knows none.
fn list_from(read: impl Fn(*mut c_void, usize) -> isize) -> io::Result<Option<Vec<Entry>>> {
    let mut bytes = vec![0; 512];
    loop {
        match usize::try_from(read(bytes.as_mut_ptr().cast(), bytes.len())) {
            Ok(length) => return from_bytes(&bytes[..length]).map(Some),
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    Some(libc::ENODATA | libc::EOPNOTSUPP | libc::ENOSYS) => return Ok(None),
                    Some(libc::ERANGE) if bytes.len() < LIST_AT_MOST => {
                        bytes.resize(LIST_AT_MOST, 0);
                    }
                    _ => return Err(error),
                }
            }
        }
    }
}

fn from_bytes(bytes: &[u8]) -> io::Result<Vec<Entry>> {
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "unknown form of an access list");
    let (version, entries) = bytes.split_first_chunk().ok_or_else(unknown)?;
    let (entries, rest) = entries.as_chunks::<8>();
    if u32::from_le_bytes(*version) != LIST_VERSION || !rest.is_empty() {
        return Err(unknown());
    }
    let mut list: Vec<_> = entries
        .iter()
        .map(|[a, b, c, d, id @ ..]| Entry {
            tag: u16::from_le_bytes([*a, *b]),
            permission: u16::from_le_bytes([*c, *d]),
            id: match u16::from_le_bytes([*a, *b]) {
                USER | GROUP => u32::from_le_bytes(*id),
                _ => NOBODY,
            },
        })
        .collect();
    list.sort();
    Ok(list)
}

fn to_bytes(list: &[Entry]) -> Vec<u8> {
    let mut bytes = LIST_VERSION.to_le_bytes().to_vec();
    for entry in list {
        bytes.extend(entry.tag.to_le_bytes());
        bytes.extend(entry.permission.to_le_bytes());
        bytes.extend(entry.id.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATABASE_OWNER: u32 = 1;
    const US: u32 = 2;
    const ANOTHER: u32 = 3;
    const SHARED: u32 = 10;
    const OWN_GROUP: u32 = 11;

    fn writers(mode: u32) -> Writers {
        Writers {
            owner: DATABASE_OWNER,
            group: SHARED,
            may_owner: mode & 0o200 != 0,
            may_group: mode & 0o020 != 0,
            may_others: mode & 0o002 != 0,
            list: None,
        }
    }

    fn is_used(writers: &Writers, owner: u32, group: u32, links: u64, folder: (u32, bool)) -> bool {
        let file = Status {
            is_regular: true,
            owner,
            group,
            links,
        };
        let (group, is_open) = folder;
        writers.check(file, Folder { group, is_open }, US).is_ok()
    }

    #[test]
    fn whose_file_is_used() {
        let closed = (OWN_GROUP, false);
        for owner in [US, 0, DATABASE_OWNER] {
            // Whatever else it is: as many names as it likes, any group.
            assert!(is_used(
                &writers(0o600),
                owner,
                OWN_GROUP,
                2,
                (SHARED, true)
            ));
        }
        let shared = writers(0o660);
        assert!(is_used(&shared, ANOTHER, SHARED, 1, closed));
        assert!(
            !is_used(&shared, ANOTHER, OWN_GROUP, 1, closed),
            "its group"
        );
        assert!(!is_used(&shared, ANOTHER, SHARED, 2, closed), "its names");
        for mode in [0o600, 0o640, 0o644, 0o606, 0o602] {
            assert!(
                !is_used(&writers(mode), ANOTHER, SHARED, 1, closed),
                "{mode:o}"
            );
        }
        // The folder has made it the group's.
        assert!(!is_used(&shared, ANOTHER, SHARED, 1, (SHARED, true)));
        assert!(is_used(&shared, ANOTHER, SHARED, 1, (SHARED, false)));
        assert!(is_used(&shared, ANOTHER, SHARED, 1, (OWN_GROUP, true)));
        let folder = Folder {
            group: OWN_GROUP,
            is_open: false,
        };
        let pipe = Status {
            is_regular: false,
            owner: US,
            group: SHARED,
            links: 1,
        };
        assert!(shared.check(pipe, folder, US).is_err());
    }

    #[test]
    fn to_read_it_is_to_be_able_to_write_the_database() {
        let mode = |mode, owner, group| writers(mode).access(owner, group).mode;
        for (database, expected) in [
            (0o644, 0o600),
            (0o640, 0o600),
            (0o660, 0o660),
            (0o664, 0o660),
            (0o666, 0o666),
            (0o606, 0o606),
            (0o444, 0),
            (0o755, 0o600),
        ] {
            assert_eq!(
                mode(database, DATABASE_OWNER, SHARED),
                expected,
                "{database:o}"
            );
        }
        // Somebody else's, who may write: by the group, or as everybody does.
        assert_eq!(mode(0o460, ANOTHER, SHARED), 0o660);
        // The database's group could not be given to it.
        assert_eq!(mode(0o660, ANOTHER, OWN_GROUP), 0o600);
        assert_eq!(mode(0o666, ANOTHER, OWN_GROUP), 0o666);
        assert_eq!(mode(0o606, ANOTHER, OWN_GROUP), 0o600, "its group may not");
    }

    #[test]
    fn an_access_list_is_followed() {
        let entry = |tag, id, permission| Entry {
            tag,
            id,
            permission,
        };
        let list = vec![
            entry(OWNER, NOBODY, 0o6),
            entry(USER, ANOTHER, 0o6),
            entry(USER, 4, 0o4),
            entry(OWNING_GROUP, NOBODY, 0o4),
            entry(GROUP, 12, 0o7),
            entry(MASK, NOBODY, 0o6),
            entry(OTHERS, NOBODY, 0o4),
        ];
        let bytes = to_bytes(&list);
        let mut read = from_bytes(&bytes).expect("as written");
        assert_eq!(to_bytes(&read), bytes);
        let writers = |list: Vec<Entry>| Writers {
            list: Some(list),
            ..writers(0o600)
        };
        let closed = (OWN_GROUP, false);
        let expected = [
            entry(OWNER, NOBODY, 0o6),
            entry(USER, ANOTHER, 0o6),
            entry(USER, 4, 0),
            entry(OWNING_GROUP, NOBODY, 0),
            entry(GROUP, 12, 0o6),
            entry(MASK, NOBODY, 0o6),
            entry(OTHERS, NOBODY, 0),
        ];
        let access = writers(read.clone()).access(DATABASE_OWNER, SHARED);
        assert_eq!(access.mode, 0o660);
        assert_eq!(access.list.as_deref(), Some(&expected[..]));
        assert!(is_used(
            &writers(read.clone()),
            ANOTHER,
            OWN_GROUP,
            1,
            closed
        ));
        assert!(!is_used(
            &writers(read.clone()),
            ANOTHER,
            OWN_GROUP,
            2,
            closed
        ));
        assert!(
            !is_used(&writers(read.clone()), 4, SHARED, 1, closed),
            "he only reads"
        );
        // Somebody else's names the database's owner and group.
        let theirs = writers(read.clone()).access(ANOTHER, OWN_GROUP).list;
        let theirs = theirs.expect("there is a list");
        assert!(theirs.contains(&entry(USER, DATABASE_OWNER, 0o6)));
        assert!(theirs.contains(&entry(GROUP, SHARED, 0)));
        // A mask takes from all that it covers.
        for entry in &mut read {
            if entry.tag == MASK {
                entry.permission = 0o4;
            }
        }
        let masked = writers(read).access(DATABASE_OWNER, SHARED);
        assert_eq!(masked.mode, 0o600);
        assert!(from_bytes(&bytes[..9]).is_err() && from_bytes(b"").is_err());
    }
}
