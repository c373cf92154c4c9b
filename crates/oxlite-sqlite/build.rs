//! Tells the tests where the header of the bundled SQLite lies, so that they can prove that every
//! result code it defines has its name in `code.rs`.

fn main() {
    // libsqlite3-sys declares `links = "sqlite3"` and publishes its include folder this way.
    let include = std::env::var("DEP_SQLITE3_INCLUDE").unwrap_or_default();
    println!("cargo::rustc-env=OXLITE_SQLITE_INCLUDE={include}");
    println!("cargo::rerun-if-changed=build.rs");
}
