//! Threads that Python stops for good while Rust is on their stack.
//!
//! Before 3.14, a thread that wants the GIL while the interpreter ends is stopped by `pthread_exit`,
//! which on glibc unwinds its stack by force: through whatever has called the code that wanted the
//! GIL. That is any call into Python from Rust (a callback, an adapter, a factory, the finaliser of
//! an object that is let go), hence nearly every function of ours and of PyO3's. Rust has no word for
//! it: a destructor on the way would touch Python objects without the GIL, and a frame that catches
//! panics, as every function that Python calls does, ends the process.
//!
//! So such a thread stands still for ever, as from 3.14 on CPython itself has it: there this is left out,
//! and no thread is unwound. Whoever is asked
//! at each frame what is to be done there is Rust's personality function; the linker puts ours before
//! it (`--wrap`, see `build.rs`), which stops at the first frame of this library that has anything to
//! do. The frames before it are Python's, and Rust's without destructors. Considered and rejected: a
//! guard around each call into Python (PyO3 has one around its taking of the GIL), since there are
//! some hundred functions of Python's interface that may run code of the user's, most of them called
//! from inside PyO3.
//!
//! Other platforms have no forced unwinding in `pthread_exit` (musl, macOS).

use std::ffi::{c_int, c_void};

use pyo3::ffi;

use crate::gil::is_ending;

/// The stack is being unwound by force: nobody has raised anything, nothing can catch it.
const FORCE_UNWIND: c_int = 8;

// SAFETY: the type is that of a personality routine, which the Itanium C++ ABI fixes and Rust's own keeps to.
unsafe extern "C" {
    /// Rust's own, under the name that the linker gives it.
    fn __real_rust_eh_personality(
        version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int;
}

/// Asked by the unwinder at each frame of this library that has something to do when it is unwound.
///
/// # Safety
///
/// Called by the unwinder alone.
// SAFETY: only the linker's option `--wrap` looks for a symbol of this name (`build.rs`), for all of this
// library and nothing else.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wrap_rust_eh_personality(
    version: c_int,
    actions: c_int,
    class: u64,
    exception: *mut c_void,
    context: *mut c_void,
) -> c_int {
    // A thread that stands still with the GIL would stop all others: what makes one end with the GIL
    // held is not Python, and ends the process as it does without us.
    // SAFETY: may always be called.
    if actions & FORCE_UNWIND != 0 && (is_ending() || unsafe { ffi::PyGILState_Check() } == 0) {
        loop {
            std::thread::park();
        }
    }
    // SAFETY: the unwinder's own arguments, by this function's contract, handed on as they came.
    unsafe { __real_rust_eh_personality(version, actions, class, exception, context) }
}
