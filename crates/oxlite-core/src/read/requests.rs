//! Requests that read, each by itself: on a connection for reading, or in whatever transaction there is.

use std::time::Duration;

use oxlite_sqlite::Locked;

use crate::connection::Connection;
use crate::error::Result;
use crate::read::sql::StatementKind;
use crate::request::{Answer, Request};

/// Runs one request that reads, on a connection for reading, to its end or to its first row.
pub fn run_read(
    connection: &Connection,
    locked: &Locked<'_>,
    request: &Request,
    row_limit: Option<usize>,
    statement_timeout: Option<Duration>,
) -> Result<Answer> {
    let stretch = statement_timeout.map(|timeout| connection.deadline().begin(timeout));
    let outcome = request.execute(connection, locked, row_limit);
    drop(stretch);
    if !locked.is_autocommit() {
        // It was BEGIN or SAVEPOINT, of which the next one knows nothing.
        connection.run(locked, "ROLLBACK")?;
    }
    outcome
}

/// Runs one request that is a query, in whatever transaction there is; `None`, with nothing done, if it is
/// anything else.
pub fn run_query(
    connection: &Connection,
    locked: &Locked<'_>,
    request: &Request,
    statement_timeout: Option<Duration>,
) -> Result<Option<Answer>> {
    let Some(cached) = connection.statement(locked, &request.sql)? else {
        return Ok(None);
    };
    let is_query = cached.kind == StatementKind::Query && cached.statement.is_read_only();
    connection.keep(cached, locked);
    if !is_query {
        return Ok(None);
    }
    let _stretch = statement_timeout.map(|timeout| connection.deadline().begin(timeout));
    request.execute(connection, locked, None).map(Some)
}
