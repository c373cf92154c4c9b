//! Tells the crate for which Python it is compiled (`cfg(Py_3_14)`), and puts a personality of ours before
//! Rust's in the native module, where a thread can be stopped by unwinding its stack: see
//! `src/forced_unwind.rs`.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    // Since 3.14 Python stops no thread in this way.
    let python = pyo3_build_config::get().target_abi().version();
    let unwinds_threads = (python.major, python.minor) < (3, 14);
    if unwinds_threads && target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap=rust_eh_personality");
    }
}
