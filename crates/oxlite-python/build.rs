//! Puts a personality of ours before Rust's in the native module, where a thread can be stopped by
//! unwinding its stack: see `src/forced_unwind.rs`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap=rust_eh_personality");
    }
}
