//! Processes that share their syncs, as Python sees them from outside.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::gil;

/// The processes that share the syncs of a database's commits (`durable_commit="shared"`) and are this
/// user's: a dict with `members` (how many they are now; `None` where the system does not tell), `commits`
/// (of all of them, since the first one came), `commits_durable` (up to which these are), `syncs_led` (made
/// for all), `leaders_lost` (processes that have died in one) and `poisoned` (why nothing is committed any
/// more; `None` if all is well). `None` if no processes share. With no member, the rest is of those who were
/// there last.
///
/// Nothing is opened, locked or changed. Raises `OSError` where there is no such file.
#[pyfunction]
pub(crate) fn shared_commit_group(
    py: Python<'_>,
    database: PathBuf,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let found = gil::without(py, || oxlite_core::shared_commit_group(&database))?;
    let Some(group) = found else {
        return Ok(None);
    };
    let dict = PyDict::new(py);
    dict.set_item("members", group.members)?;
    dict.set_item("commits", group.commits)?;
    dict.set_item("commits_durable", group.commits_durable)?;
    dict.set_item("syncs_led", group.syncs_led)?;
    dict.set_item("leaders_lost", group.leaders_lost)?;
    dict.set_item("poisoned", group.poisoned)?;
    Ok(Some(dict))
}
