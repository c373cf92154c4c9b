//! Says for which platforms the crate takes open-file-description locks: `cfg(ofd_locks)`.
//!
//! Also tells the tests where the header of the bundled SQLite lies, so that they can prove that every
//! result code it defines has its name in `code.rs`.

use std::env;

fn main() {
    // Tried on these. The kernel may still be one without such locks, which is asked when the program runs.
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    println!("cargo::rustc-check-cfg=cfg(ofd_locks)");
    if target("OS") == "linux" && matches!(target("ARCH").as_str(), "x86_64" | "aarch64") {
        println!("cargo::rustc-cfg=ofd_locks");
    }
    // libsqlite3-sys declares `links = "sqlite3"` and publishes its include folder this way.
    let include = env::var("DEP_SQLITE3_INCLUDE").unwrap_or_default();
    println!("cargo::rustc-env=OXLITE_SQLITE_INCLUDE={include}");
    println!("cargo::rerun-if-changed=build.rs");
}
