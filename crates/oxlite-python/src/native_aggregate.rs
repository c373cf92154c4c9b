//! Aggregates of our own, with the Python original behind each.
//!
//! Invariant: a group that is not certainly answered as the original answers it is given to an instance
//! of the original, with all that counts of what came before.

use std::cell::RefCell;

use oxlite_sqlite::{Aggregate, FunctionContext, ValueRef};
use pyo3::prelude::*;

use crate::function::PythonAggregate;

/// What became of a value.
pub(crate) enum Taken {
    /// It was taken in.
    Yes,
    /// It, and so the group, is the original's.
    No,
    /// There is no memory for it.
    NoMemory,
}

/// An aggregate that needs no Python, as far as it goes.
pub(crate) trait Native: Send + 'static {
    /// What is kept for a group.
    type Kept: Default;
    /// Takes a value in.
    fn take(&self, kept: &mut Self::Kept, value: ValueRef<'_>) -> Taken;
    /// The values by which the original comes to where this one is.
    fn values<'k>(&self, kept: &'k Self::Kept) -> impl Iterator<Item = ValueRef<'k>>;
    /// The result; `None` where the original is to be asked.
    fn answer<'k>(&self, kept: &'k Self::Kept) -> Option<ValueRef<'k>>;
}

/// Both together.
pub(crate) struct WithOriginal<N> {
    pub(crate) native: N,
    pub(crate) original: PythonAggregate,
}

/// What there is of a group.
pub(crate) enum Group<K> {
    Kept(K),
    Original(Py<PyAny>),
    /// The original could not be made, as its statement has been told.
    Failed,
}

impl<N: Native> WithOriginal<N> {
    fn original_of(&self, context: &FunctionContext<'_>, kept: &N::Kept) -> Option<Py<PyAny>> {
        self.original.create_with(context, self.native.values(kept))
    }
}

impl<N: Native> Aggregate for WithOriginal<N> {
    type Instance = RefCell<Group<N::Kept>>;

    fn create(&self, _: &FunctionContext<'_>) -> Option<Self::Instance> {
        Some(RefCell::new(Group::Kept(N::Kept::default())))
    }

    fn step(&self, instance: &Self::Instance, context: &FunctionContext<'_>) {
        if let Group::Kept(kept) = &mut *instance.borrow_mut()
            && let Ok(value) = context.argument(0)
        {
            match self.native.take(kept, value) {
                Taken::Yes => return,
                Taken::No => {}
                Taken::NoMemory => return context.set_error_no_memory(),
            }
        }
        // Not borrowed while Python runs.
        let original = match instance.replace(Group::Failed) {
            Group::Kept(kept) => self.original_of(context, &kept),
            Group::Original(original) => Some(original),
            Group::Failed => None,
        };
        if let Some(original) = original {
            self.original.step(&original, context);
            instance.replace(Group::Original(original));
        }
    }

    fn inverse(&self, _: &Self::Instance, _: &FunctionContext<'_>) {}

    fn value(&self, _: &Self::Instance, _: &FunctionContext<'_>) {}

    fn finalize(&self, instance: Self::Instance, context: &FunctionContext<'_>) {
        let original = match instance.into_inner() {
            Group::Kept(kept) => match self.native.answer(&kept) {
                Some(value) => return context.set_result(value),
                None => self.original_of(context, &kept),
            },
            Group::Original(original) => Some(original),
            Group::Failed => None,
        };
        if let Some(original) = original {
            self.original.finalize(original, context);
        }
    }
}
