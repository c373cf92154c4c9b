//! File systems whose files live on another machine, or on a virtual machine's host: file locks there tell
//! nothing or cost a journey, and memory is shared with nobody.
//!
//! This is the one list of them. A mount is known by its type, an open file by its number. Those in user space
//! (FUSE) and virtiofs have one number for all of them, so that by a number alone they are not recognised.

use std::path::Path;

/// Such a file system.
#[derive(Clone, Copy, Debug)]
pub struct NetworkFileSystem {
    /// Its type in the mount table.
    pub name: &'static str,
    /// Its numbers in statfs(2), if they are its own: those of `linux/magic.h`, or of its driver.
    magic_numbers: &'static [u32],
}

impl NetworkFileSystem {
    const fn new(name: &'static str, magic_numbers: &'static [u32]) -> Self {
        Self {
            name,
            magic_numbers,
        }
    }
}

/// All that are known, by their types.
pub const NETWORK_FILE_SYSTEMS: &[NetworkFileSystem] = &[
    NetworkFileSystem::new("9p", &[0x0102_1997]),
    NetworkFileSystem::new("afpfs", &[]),
    NetworkFileSystem::new("afs", &[0x5346_414f, 0x6b41_4653]),
    NetworkFileSystem::new("beegfs", &[0x1983_0326]),
    NetworkFileSystem::new("ceph", &[0x00c3_6400]),
    NetworkFileSystem::new("cifs", &[0xff53_4d42]),
    NetworkFileSystem::new("coda", &[0x7375_7245]),
    NetworkFileSystem::new("gfs2", &[0x0116_1970]),
    NetworkFileSystem::new("glusterfs", &[]),
    NetworkFileSystem::new("lustre", &[0x0bd0_0bd0]),
    NetworkFileSystem::new("ncpfs", &[0x564c]),
    NetworkFileSystem::new("nfs", &[0x6969]),
    NetworkFileSystem::new("nfs4", &[0x6969]),
    NetworkFileSystem::new("ocfs2", &[0x7461_636f]),
    NetworkFileSystem::new("prl_fs", &[0x7c7c_6673]),
    NetworkFileSystem::new("smb", &[0x517b]),
    NetworkFileSystem::new("smb2", &[0xfe53_4d42]),
    NetworkFileSystem::new("smb3", &[0xfe53_4d42]),
    NetworkFileSystem::new("smbfs", &[0x517b]),
    NetworkFileSystem::new("vboxsf", &[0x786f_4256]),
    NetworkFileSystem::new("virtiofs", &[]),
    NetworkFileSystem::new("webdav", &[]),
    NetworkFileSystem::new("fuse.ceph", &[]),
    NetworkFileSystem::new("fuse.davfs2", &[]),
    NetworkFileSystem::new("fuse.gcsfuse", &[]),
    NetworkFileSystem::new("fuse.glusterfs", &[]),
    NetworkFileSystem::new("fuse.grpcfuse", &[]),
    NetworkFileSystem::new("fuse.juicefs", &[]),
    NetworkFileSystem::new("fuse.mount-s3", &[]),
    NetworkFileSystem::new("fuse.osxfs", &[]),
    NetworkFileSystem::new("fuse.rclone", &[]),
    NetworkFileSystem::new("fuse.s3fs", &[]),
    NetworkFileSystem::new("fuse.sshfs", &[]),
    NetworkFileSystem::new("fuse.vmhgfs-fuse", &[]),
];

/// Why something of Oxlite's own is not used for a database.
pub(crate) const REASON: &str = "the database is on a network file system";

/// Whether a file lies on one of them, by its number.
#[cfg(target_os = "linux")]
pub(crate) fn holds(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|status| is_number_of_one(status.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn holds(_path: &Path) -> bool {
    false
}

#[cfg(any(target_os = "linux", test))]
fn is_number_of_one(number: u32) -> bool {
    NETWORK_FILE_SYSTEMS
        .iter()
        .any(|known| known.magic_numbers.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_that_of_a_network_file_system_or_not() {
        for number in [0x6969, 0xff53_4d42, 0x0102_1997] {
            assert!(is_number_of_one(number), "{number:#x}");
        }
        // ext4, tmpfs, overlayfs, and all of FUSE.
        for number in [0xef53, 0x0102_1994, 0x794c_7630, 0x6573_5546] {
            assert!(!is_number_of_one(number), "{number:#x}");
        }
    }
}
