//! Functions, aggregates, window functions and collations written in Rust.
//!
//! Invariants:
//! - The closure of a function is boxed and given to SQLite, which destroys it by `xDestroy` when
//!   it is replaced or the connection closes, and refuses to replace one that is running.
//! - A [`FunctionContext`] and its arguments live for the length of one call.
//! - No panic unwinds into C; it becomes an SQL error.

use std::cmp::Ordering;
use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::slice;

use libsqlite3_sys as ffi;

use crate::connection::Locked;
use crate::error::Result;
use crate::value::ValueRef;

/// One call of a function: its arguments, and where its result goes.
pub struct FunctionContext<'a> {
    raw: *mut ffi::sqlite3_context,
    arguments: &'a [*mut ffi::sqlite3_value],
    /// Bound to the thread of the call.
    _not_send: PhantomData<*const ()>,
}

impl FunctionContext<'_> {
    /// # Safety
    ///
    /// The pointers are those of the running call, which outlives `'a`.
    unsafe fn new(
        raw: *mut ffi::sqlite3_context,
        count: c_int,
        arguments: *mut *mut ffi::sqlite3_value,
    ) -> Self {
        let count = usize::try_from(count).unwrap_or(0);
        let arguments = match count {
            // The pointer may be NULL then, which a slice must not be.
            0 => &[][..],
            // SAFETY: SQLite passes `count` values.
            _ => unsafe { slice::from_raw_parts(arguments, count) },
        };
        Self {
            raw,
            arguments,
            _not_send: PhantomData,
        }
    }

    /// How many arguments the call has.
    pub fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether the call has no arguments.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// Argument `index` (from 0); NULL past the end. An error when memory runs out.
    #[inline]
    pub fn argument(&self, index: usize) -> Result<ValueRef<'_>> {
        let value = self.arguments.get(index).copied().and_then(NonNull::new);
        let Some(value) = value else {
            return Ok(ValueRef::Null);
        };
        // SAFETY: a protected value of the running call, unchanged while it lasts.
        unsafe { ValueRef::from_c(value) }
    }

    /// Sets the result. Text and blobs are copied; too long ones become the error for that.
    pub fn set_result(&self, value: ValueRef<'_>) {
        // SAFETY: the context of the running call; SQLite copies before it returns.
        unsafe {
            match value {
                ValueRef::Null => ffi::sqlite3_result_null(self.raw),
                ValueRef::Integer(integer) => ffi::sqlite3_result_int64(self.raw, integer),
                ValueRef::Real(real) => ffi::sqlite3_result_double(self.raw, real),
                ValueRef::Text(text) => ffi::sqlite3_result_text64(
                    self.raw,
                    text.as_ptr().cast(),
                    text.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                    ffi::SQLITE_UTF8 as _,
                ),
                ValueRef::Blob(blob) => ffi::sqlite3_result_blob64(
                    self.raw,
                    blob.as_ptr().cast(),
                    blob.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                ),
            }
        }
    }

    /// Makes the call fail with this message.
    pub fn set_error(&self, message: &str) {
        let length = c_int::try_from(message.len()).unwrap_or(c_int::MAX);
        // SAFETY: the context of the running call; the message is copied.
        unsafe { ffi::sqlite3_result_error(self.raw, message.as_ptr().cast(), length) };
    }

    /// Makes the call fail with "string or blob too big".
    pub fn set_error_too_big(&self) {
        // SAFETY: the context of the running call.
        unsafe { ffi::sqlite3_result_error_toobig(self.raw) };
    }

    /// Makes the call fail with "out of memory".
    pub fn set_error_no_memory(&self) {
        // SAFETY: the context of the running call.
        unsafe { ffi::sqlite3_result_error_nomem(self.raw) };
    }

    /// Runs `f`; a panic in it becomes an error of the call.
    fn guarded(&self, f: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(f)).is_err() {
            self.set_error("the function panicked");
        }
    }
}

/// # Safety
///
/// `pointer` is NULL or valid for `length` bytes during `'a`.
unsafe fn bytes<'a>(pointer: *const u8, length: c_int) -> &'a [u8] {
    match usize::try_from(length) {
        // SAFETY: see this function's contract.
        Ok(length) if !pointer.is_null() => unsafe { slice::from_raw_parts(pointer, length) },
        _ => &[],
    }
}

/// An aggregate: how its instances are made and used, one instance for each group.
///
/// Failures are told to the context; a panic becomes an SQL error.
pub trait Aggregate: Send + 'static {
    /// What is kept for a group.
    type Instance;
    /// Begins a group; `None` after having set an error.
    fn create(&self, context: &FunctionContext<'_>) -> Option<Self::Instance>;
    /// Takes a row in.
    fn step(&self, instance: &Self::Instance, context: &FunctionContext<'_>);
    /// Takes a row out of the window; only window functions are asked.
    fn inverse(&self, instance: &Self::Instance, context: &FunctionContext<'_>);
    /// The result of the window as it stands; only window functions are asked.
    fn value(&self, instance: &Self::Instance, context: &FunctionContext<'_>);
    /// The result of the group, which ends.
    fn finalize(&self, instance: Self::Instance, context: &FunctionContext<'_>);
}

/// A scalar function: it reads the arguments of its context and sets the result there.
pub type Scalar = Box<dyn Fn(&FunctionContext<'_>) + Send>;

/// Compares two texts.
pub type Collation = Box<dyn Fn(&[u8], &[u8]) -> Ordering + Send>;

impl Locked<'_> {
    /// Creates or replaces an SQL function of `arguments` arguments (-1: any number); `None`
    /// removes it. `deterministic` lets SQLite reuse results and index by them.
    pub fn create_function(
        &self,
        name: &CStr,
        arguments: i32,
        deterministic: bool,
        function: Option<Scalar>,
    ) -> Result<()> {
        let mut flags = ffi::SQLITE_UTF8;
        if deterministic {
            flags |= ffi::SQLITE_DETERMINISTIC;
        }
        let is_set = function.is_some();
        let argument = function.map_or(std::ptr::null_mut(), leak);
        // SAFETY: open and locked by this guard; SQLite destroys the argument, also on failure.
        let code = unsafe {
            ffi::sqlite3_create_function_v2(
                self.database(),
                name.as_ptr(),
                arguments,
                flags as _,
                argument,
                is_set.then_some(call_scalar as _),
                None,
                None,
                is_set.then_some(destroy::<Scalar> as _),
            )
        };
        self.check(code)
    }

    /// Creates or replaces an aggregate; `None` removes it.
    pub fn create_aggregate<A: Aggregate>(
        &self,
        name: &CStr,
        arguments: i32,
        aggregate: Option<A>,
    ) -> Result<()> {
        let is_set = aggregate.is_some();
        let argument = aggregate.map_or(std::ptr::null_mut(), leak);
        // SAFETY: open and locked by this guard; SQLite destroys the argument, also on failure.
        let code = unsafe {
            ffi::sqlite3_create_function_v2(
                self.database(),
                name.as_ptr(),
                arguments,
                ffi::SQLITE_UTF8 as _,
                argument,
                None,
                is_set.then_some(call_step::<A> as _),
                is_set.then_some(call_final::<A> as _),
                is_set.then_some(destroy::<A> as _),
            )
        };
        self.check(code)
    }

    /// Creates or replaces an aggregate that may be used as a window function; `None` removes it.
    pub fn create_window_function<A: Aggregate>(
        &self,
        name: &CStr,
        arguments: i32,
        aggregate: Option<A>,
    ) -> Result<()> {
        let is_set = aggregate.is_some();
        let argument = aggregate.map_or(std::ptr::null_mut(), leak);
        // SAFETY: open and locked by this guard; SQLite destroys the argument, also on failure.
        let code = unsafe {
            ffi::sqlite3_create_window_function(
                self.database(),
                name.as_ptr(),
                arguments,
                ffi::SQLITE_UTF8 as _,
                argument,
                is_set.then_some(call_step::<A> as _),
                is_set.then_some(call_final::<A> as _),
                is_set.then_some(call_value::<A> as _),
                is_set.then_some(call_inverse::<A> as _),
                is_set.then_some(destroy::<A> as _),
            )
        };
        self.check(code)
    }

    /// Creates or replaces a collating sequence; `None` removes it. A panic counts as equal.
    pub fn create_collation(&self, name: &CStr, collation: Option<Collation>) -> Result<()> {
        let is_set = collation.is_some();
        let argument = collation.map_or(std::ptr::null_mut(), leak);
        // SAFETY: open and locked by this guard; SQLite destroys the argument when the collation is
        // replaced or the connection closes.
        let code = unsafe {
            ffi::sqlite3_create_collation_v2(
                self.database(),
                name.as_ptr(),
                ffi::SQLITE_UTF8,
                argument,
                is_set.then_some(call_collation as _),
                is_set.then_some(destroy::<Collation> as _),
            )
        };
        if code != ffi::SQLITE_OK && is_set {
            // Unlike the functions' constructors this one leaves the argument to its caller.
            // SAFETY: made by `leak` above and not destroyed by SQLite.
            unsafe { destroy::<Collation>(argument) };
        }
        self.check(code)
    }
}

fn leak<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

unsafe extern "C" fn destroy<T>(argument: *mut c_void) {
    // SAFETY: made by `leak::<T>`, destroyed once.
    let value = unsafe { Box::from_raw(argument.cast::<T>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

unsafe extern "C" fn call_scalar(
    raw: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite's own arguments of this call; the user data is the leaked function, which is
    // not destroyed while it runs.
    let (context, function) = unsafe {
        let function = &*ffi::sqlite3_user_data(raw).cast::<Scalar>();
        (FunctionContext::new(raw, count, arguments), function)
    };
    context.guarded(|| function(&context));
}

/// The place for the instance of the running group, and whether it may be made.
///
/// # Safety
///
/// `raw` is the context of a running call of an aggregate whose instances are `T`.
unsafe fn instance_place<T>(raw: *mut ffi::sqlite3_context, make: bool) -> Option<*mut *mut T> {
    let size = if make {
        size_of::<*mut T>() as c_int
    } else {
        0
    };
    // SAFETY: the context of a running aggregate; zeroed memory of that size, or NULL.
    let place = unsafe { ffi::sqlite3_aggregate_context(raw, size) };
    (!place.is_null()).then_some(place.cast())
}

unsafe extern "C" fn call_step<A: Aggregate>(
    raw: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: SQLite's own arguments of this call; the user data is the leaked aggregate.
    let (context, aggregate, place) = unsafe {
        let aggregate = &*ffi::sqlite3_user_data(raw).cast::<A>();
        let context = FunctionContext::new(raw, count, arguments);
        (context, aggregate, instance_place::<A::Instance>(raw, true))
    };
    let Some(place) = place else {
        return context.set_error_no_memory();
    };
    context.guarded(|| {
        // SAFETY: the place holds NULL or an instance that only the final call takes away.
        unsafe {
            if (*place).is_null() {
                match aggregate.create(&context) {
                    Some(instance) => *place = Box::into_raw(Box::new(instance)),
                    None => return,
                }
            }
            aggregate.step(&**place, &context);
        }
    });
}

unsafe extern "C" fn call_inverse<A: Aggregate>(
    raw: *mut ffi::sqlite3_context,
    count: c_int,
    arguments: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: as in `call_step`; without an instance there is nothing to take a row out of.
    unsafe {
        let aggregate = &*ffi::sqlite3_user_data(raw).cast::<A>();
        let context = FunctionContext::new(raw, count, arguments);
        if let Some(instance) = existing::<A>(raw) {
            context.guarded(|| aggregate.inverse(instance, &context));
        }
    }
}

unsafe extern "C" fn call_value<A: Aggregate>(raw: *mut ffi::sqlite3_context) {
    // SAFETY: as in `call_step`.
    unsafe {
        let aggregate = &*ffi::sqlite3_user_data(raw).cast::<A>();
        let context = FunctionContext::new(raw, 0, std::ptr::null_mut());
        if let Some(instance) = existing::<A>(raw) {
            context.guarded(|| aggregate.value(instance, &context));
        }
    }
}

unsafe extern "C" fn call_final<A: Aggregate>(raw: *mut ffi::sqlite3_context) {
    // SAFETY: as in `call_step`. The instance is taken out of its place, so it is finalised once; a
    // group without rows, or one whose instance could not be made, has none: its result is NULL.
    unsafe {
        let aggregate = &*ffi::sqlite3_user_data(raw).cast::<A>();
        let context = FunctionContext::new(raw, 0, std::ptr::null_mut());
        if let Some(place) = instance_place::<A::Instance>(raw, false)
            && !(*place).is_null()
        {
            let instance = Box::from_raw(std::mem::replace(&mut *place, std::ptr::null_mut()));
            context.guarded(|| aggregate.finalize(*instance, &context));
        }
    }
}

/// # Safety
///
/// As for [`instance_place`]; the instance is not finalised during `'a`.
unsafe fn existing<'a, A: Aggregate>(raw: *mut ffi::sqlite3_context) -> Option<&'a A::Instance> {
    // SAFETY: see this function's contract.
    unsafe { instance_place::<A::Instance>(raw, false).and_then(|place| (*place).as_ref()) }
}

unsafe extern "C" fn call_collation(
    argument: *mut c_void,
    left_length: c_int,
    left: *const c_void,
    right_length: c_int,
    right: *const c_void,
) -> c_int {
    // SAFETY: the leaked collation, and two texts of those lengths, for the length of this call.
    let (collation, left, right) = unsafe {
        (
            &*argument.cast::<Collation>(),
            bytes(left.cast(), left_length),
            bytes(right.cast(), right_length),
        )
    };
    match catch_unwind(AssertUnwindSafe(|| collation(left, right))) {
        Ok(Ordering::Less) => -1,
        Ok(Ordering::Equal) | Err(_) => 0,
        Ok(Ordering::Greater) => 1,
    }
}
