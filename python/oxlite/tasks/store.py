"""The tables of tasks: each task is a row, and what becomes of it is a status of that row.

States::

    scheduled ─┐
    blocked   ─┼─► ready ─► running ─► successful
               │     ▲         │   └─► failed, cancelled
               │     └─────────┘ (again: after an error, a death, a stop)
               └─► cancelled, expired

Invariants:
- A claim is one statement, so no two workers have the same one. Each raises ``attempt``: what an
  earlier attempt says later concerns no row.
- Claims, and whatever else a worker looks for, are found by partial indexes: they take as long with
  a million waiting as with ten.
- No two tasks with the same unique key are waiting or running.
- Limits by key are kept by triggers, whoever writes: a task beyond its limit is *blocked*, and made
  ready by the end of another one.
- Any program can insert a task, however old its SQLite.
"""

from typing import Final

from oxlite.own_tables import OwnTables, rows_of
from oxlite.sqlite3 import Connection

__all__ = [
    "BLOCKED",
    "CANCEL",
    "CANCELLED",
    "CLAIM",
    "DELETE_FINISHED",
    "DISCARD",
    "DUE",
    "ENQUEUE",
    "EXPIRE",
    "EXPIRED",
    "FAIL",
    "FAILED",
    "FIND_UNIQUE",
    "FINISHED_STATUSES",
    "GET",
    "HAND_BACK",
    "LEAVE",
    "LEAVE_RUNNING",
    "LOOK",
    "LOSE",
    "LOSE_STRAYS",
    "NOW",
    "OVERDUE",
    "PAUSE",
    "PROMOTE",
    "READY",
    "REGISTER",
    "RESERVE",
    "RESERVE_FIRST",
    "RESULTS_NAME",
    "RESUME",
    "RETRY",
    "RETRY_LATER",
    "RUNNING",
    "SCHEDULE",
    "SCHEDULED",
    "SCHEDULES",
    "SLICE",
    "STATUSES",
    "SUCCEED",
    "SUCCESSFUL",
    "TABLES",
    "TAKE_OVER",
    "TASKS_NAME",
    "TOPIC_PREFIX",
    "UNIQUE_KEY",
    "WORKERS",
]

SCHEDULED: Final = "scheduled"
BLOCKED: Final = "blocked"
READY: Final = "ready"
RUNNING: Final = "running"
SUCCESSFUL: Final = "successful"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
EXPIRED: Final = "expired"

STATUSES: Final = (SCHEDULED, BLOCKED, READY, RUNNING, SUCCESSFUL, FAILED, CANCELLED, EXPIRED)
FINISHED_STATUSES: Final = (SUCCESSFUL, FAILED, CANCELLED, EXPIRED)

TOPIC_PREFIX: Final = "oxlite."
TASKS_NAME: Final = "tasks"
"""What is signalled, after the prefix, when there may be something for workers to do."""
RESULTS_NAME: Final = "task_results."
"""The same, with the task's number after it, for those who wait for its end."""

SLICE: Final = 500
"""So many rows are changed by one statement at the most, for the sake of others who write."""

_ERRORS_AT_MOST: Final = 20
"""So many errors of a task are kept, the latest."""

NOW: Final = "((julianday('now') - 2440587.5) * 86400.0)"
"""What time it is, in seconds since 1970, for any SQLite."""

_WAITING: Final = "status IN ('ready', 'scheduled', 'blocked')"
_LIVE: Final = "status IN ('ready', 'scheduled', 'blocked', 'running')"
_ACTIVE: Final = "status IN ('ready', 'running')"

# ``IN`` would make a table of them for each statement.
_IS_STATUS: Final = " OR ".join(f"status = '{one}'" for one in STATUSES)

_INSTANT: Final = "BETWEEN -1e11 AND 1e11"
"""In seconds since 1970. Text and blobs are greater than any number."""

_COUNT: Final = "BETWEEN 0 AND 2147483647"

# The conditions of the indexes begin with what most rows are not.
_SCHEMA: Final = (
    f"""CREATE TABLE IF NOT EXISTS oxlite_task (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL DEFAULT 'default',
  name TEXT NOT NULL,
  arguments TEXT NOT NULL DEFAULT '[[], {{}}]',
  status TEXT NOT NULL DEFAULT 'ready' CHECK ({_IS_STATUS}),
  priority INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -1000000 AND 1000000),
  enqueued_at REAL NOT NULL DEFAULT {NOW} CHECK (enqueued_at {_INSTANT}),
  run_after REAL CHECK (run_after {_INSTANT}),
  expires_at REAL CHECK (expires_at {_INSTANT}),
  unique_key TEXT,
  limit_key TEXT,
  limit_count INTEGER CHECK (limit_count {_COUNT}),
  time_limit REAL CHECK (time_limit BETWEEN 0 AND 1e8),
  retries INTEGER NOT NULL DEFAULT 0 CHECK (retries {_COUNT}),
  keep_seconds REAL CHECK (keep_seconds BETWEEN 0 AND 1e10),
  attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt {_COUNT}),
  failures INTEGER NOT NULL DEFAULT 0 CHECK (failures {_COUNT}),
  crashes INTEGER NOT NULL DEFAULT 0 CHECK (crashes {_COUNT}),
  worker TEXT,
  started_at REAL CHECK (started_at {_INSTANT}),
  attempted_at REAL CHECK (attempted_at {_INSTANT}),
  deadline REAL CHECK (deadline {_INSTANT}),
  finished_at REAL CHECK (finished_at {_INSTANT}),
  delete_at REAL CHECK (delete_at {_INSTANT}),
  is_cancel_requested INTEGER NOT NULL DEFAULT 0,
  result TEXT,
  errors TEXT,
  CHECK ((limit_key IS NULL) = (limit_count IS NULL))
)""",
    """CREATE INDEX IF NOT EXISTS oxlite_task_ready
ON oxlite_task (queue, priority DESC, id) WHERE status = 'ready'""",
    """CREATE INDEX IF NOT EXISTS oxlite_task_scheduled
ON oxlite_task (run_after) WHERE status = 'scheduled'""",
    """CREATE INDEX IF NOT EXISTS oxlite_task_running
ON oxlite_task (worker) WHERE status = 'running'""",
    """CREATE INDEX IF NOT EXISTS oxlite_task_deadline
ON oxlite_task (deadline) WHERE status = 'running' AND deadline IS NOT NULL""",
    f"""CREATE INDEX IF NOT EXISTS oxlite_task_expiry
ON oxlite_task (expires_at) WHERE expires_at IS NOT NULL AND {_WAITING}""",
    f"""CREATE UNIQUE INDEX IF NOT EXISTS oxlite_task_unique
ON oxlite_task (unique_key) WHERE unique_key IS NOT NULL AND {_LIVE}""",
    f"""CREATE INDEX IF NOT EXISTS oxlite_task_active
ON oxlite_task (limit_key) WHERE limit_key IS NOT NULL AND {_ACTIVE}""",
    """CREATE INDEX IF NOT EXISTS oxlite_task_blocked
ON oxlite_task (limit_key, priority DESC, id) WHERE status = 'blocked'""",
    """CREATE INDEX IF NOT EXISTS oxlite_task_finished
ON oxlite_task (delete_at) WHERE delete_at IS NOT NULL""",
    # Processes that claim tasks. Whoever holds the lock of its place in the file "-workers" lives.
    """CREATE TABLE IF NOT EXISTS oxlite_task_worker (
  name TEXT NOT NULL PRIMARY KEY,
  place INTEGER NOT NULL CHECK (place BETWEEN 0 AND 4611686018427387904),
  lock_file TEXT NOT NULL,
  pid INTEGER NOT NULL CHECK (pid BETWEEN 1 AND 4294967295),
  pid_namespace TEXT NOT NULL,
  may_be_killed INTEGER NOT NULL,
  queues TEXT NOT NULL,
  begun_at REAL NOT NULL,
  keeps_time INTEGER NOT NULL
) WITHOUT ROWID""",
    # Up to which of its times a recurring task has been enqueued.
    """CREATE TABLE IF NOT EXISTS oxlite_task_schedule (
  name TEXT NOT NULL PRIMARY KEY,
  due_at REAL NOT NULL CHECK (due_at BETWEEN 0 AND 1e11)
) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS oxlite_task_pause (
  queue TEXT NOT NULL PRIMARY KEY,
  paused_at REAL NOT NULL
) WITHOUT ROWID""",
    # What another program inserts without saying so.
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_task_later AFTER INSERT ON oxlite_task
WHEN new.run_after IS NOT NULL AND new.status = 'ready' AND new.run_after > {NOW}
BEGIN
  UPDATE oxlite_task SET status = 'scheduled' WHERE id = new.id;
END""",
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_task_limit AFTER INSERT ON oxlite_task
WHEN new.limit_key IS NOT NULL AND new.status = 'ready' AND new.limit_count < (
  SELECT count(*) FROM oxlite_task WHERE limit_key = new.limit_key AND {_ACTIVE})
BEGIN
  UPDATE oxlite_task SET status = 'blocked' WHERE id = new.id AND status = 'ready';
END""",
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_task_limit_again AFTER UPDATE OF status ON oxlite_task
WHEN new.limit_key IS NOT NULL AND new.status = 'ready' AND old.status NOT IN ('ready', 'running')
  AND new.limit_count < (
    SELECT count(*) FROM oxlite_task WHERE limit_key = new.limit_key AND {_ACTIVE})
BEGIN
  UPDATE oxlite_task SET status = 'blocked' WHERE id = new.id;
END""",
    *(
        f"""CREATE TRIGGER IF NOT EXISTS {name} AFTER {event} ON oxlite_task
WHEN old.limit_key IS NOT NULL AND old.status IN ('ready', 'running'){condition}
BEGIN
  UPDATE oxlite_task SET status = 'ready' WHERE id IN (
    SELECT id FROM oxlite_task WHERE limit_key = old.limit_key AND status = 'blocked'
    ORDER BY priority DESC, id LIMIT coalesce(max(0, (
      SELECT limit_count FROM oxlite_task WHERE limit_key = old.limit_key AND status = 'blocked'
      ORDER BY priority DESC, id LIMIT 1
    ) - (SELECT count(*) FROM oxlite_task WHERE limit_key = old.limit_key AND {_ACTIVE})), 0));
END"""
        for name, event, condition in (
            (
                "oxlite_task_unblock",
                "UPDATE OF status",
                " AND new.status NOT IN ('ready', 'running', 'blocked')",
            ),
            ("oxlite_task_unblock_deleted", "DELETE", ""),
        )
    ),
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_task_prune AFTER INSERT ON oxlite_task
WHEN new.id % 64 = 0
BEGIN
  DELETE FROM oxlite_task WHERE id IN (
    SELECT id FROM oxlite_task WHERE delete_at <= {NOW} ORDER BY delete_at LIMIT 128);
END""",
)

ENQUEUE: Final = f"""INSERT INTO oxlite_task (
  id, queue, name, arguments, status, priority, enqueued_at, run_after, expires_at,
  unique_key, limit_key, limit_count, time_limit, retries, keep_seconds)
VALUES (?14, ?1, ?2, ?3, CASE WHEN ?6 > ?5 THEN 'scheduled' ELSE 'ready' END, ?4, ?5, ?6, ?7,
  ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT DO NOTHING
RETURNING '{TASKS_NAME}', id"""
"""Queue, name, arguments, priority, now, run_after, expires_at, unique key, limit's key and count,
time limit, retries, for how many seconds it is kept; its number, or NULL. Returns nothing where the
unique key is taken.
"""

UNIQUE_KEY: Final = 7
"""Which of these the unique key is, counted from 0."""

RESERVE: Final = "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'oxlite_task' RETURNING seq"
"""Returns a number that no other task has; nothing where there was never any."""

RESERVE_FIRST: Final = "INSERT INTO sqlite_sequence (name, seq) VALUES ('oxlite_task', 1)"

FIND_UNIQUE: Final = f"SELECT id FROM oxlite_task WHERE unique_key = ?1 AND {_LIVE}"
"""A unique key. Returns the task that has it."""

# What other programs have written is read as bytes: it may be no text.
_CLAIMED: Final = """id, queue, CAST(name AS BLOB), CAST(arguments AS BLOB), attempt, worker,
  failures, crashes, retries, priority, enqueued_at, attempted_at, time_limit, keep_seconds,
  limit_key IS NOT NULL, CAST(errors AS BLOB)"""

CLAIM: Final = f"""UPDATE oxlite_task SET
  status = 'running', attempt = attempt + 1, worker = ?1, attempted_at = ?2,
  started_at = coalesce(started_at, ?2), deadline = ?2 + time_limit + ?5
WHERE id IN (
  SELECT task.id FROM json_each(?3) AS served CROSS JOIN oxlite_task AS task ON task.id IN (
    SELECT id FROM oxlite_task AS ready
    WHERE ready.status = 'ready' AND ready.queue = served.value
      AND (ready.expires_at IS NULL OR ready.expires_at > ?2)
    ORDER BY ready.priority DESC, ready.id LIMIT ?4)
  WHERE served.value NOT IN (SELECT queue FROM oxlite_task_pause)
  ORDER BY task.priority DESC, task.id LIMIT ?4)
RETURNING {_CLAIMED}"""
"""Worker, now, queues as a JSON list, how many at most, seconds that are left after a time limit.

Returns them in no order.
"""

_STILL: Final = "id = ?1 AND attempt = ?2 AND status = 'running'"

SUCCEED: Final = f"""UPDATE oxlite_task SET status = 'successful', result = ?3, finished_at = ?4,
  delete_at = ?4 + keep_seconds, deadline = NULL
WHERE {_STILL} RETURNING '{RESULTS_NAME}' || id"""
"""Task, attempt, result, now."""

DELETE_FINISHED: Final = f"DELETE FROM oxlite_task WHERE {_STILL} RETURNING '{RESULTS_NAME}' || id"
"""Task, attempt: what is kept for no time."""

# A task that fails for ever has its latest errors.
_ERRORS: Final = f"""json_insert(
  CASE WHEN errors IS NULL OR NOT json_valid(errors) OR json_type(errors) <> 'array' THEN '[]'
  WHEN json_array_length(errors) >= {_ERRORS_AT_MOST} THEN json_remove(errors, '$[0]')
  ELSE errors END, '$[#]', json({{error}}))"""

FAIL: Final = f"""UPDATE oxlite_task SET status = ?5, errors = CASE WHEN ?3 IS NULL THEN errors
  ELSE {_ERRORS.format(error="?3")} END,
  failures = failures + 1, finished_at = ?4, delete_at = ?4 + ?6, deadline = NULL
WHERE {_STILL} RETURNING '{RESULTS_NAME}' || id"""
"""Task, attempt, error as JSON, now, status, for how many seconds it is kept."""

# Whose end was asked for does not run again. ``{status}`` is what it is otherwise, ``{now}`` when.
_AGAIN: Final = """UPDATE oxlite_task SET
  status = CASE WHEN is_cancel_requested THEN 'cancelled' ELSE {status} END,
  finished_at = CASE WHEN is_cancel_requested THEN {now} END,
  delete_at = CASE WHEN is_cancel_requested THEN {now} + keep_seconds END, deadline = NULL"""
_AGAIN_SIGNALS: Final = (
    f"CASE WHEN status = 'cancelled' THEN '{RESULTS_NAME}' || id ELSE '{TASKS_NAME}' END"
)

RETRY_LATER: Final = f"""{
    _AGAIN.format(status="CASE WHEN ?5 > ?4 THEN 'scheduled' ELSE 'ready' END", now="?4")
}, run_after = ?5, errors = {_ERRORS.format(error="?3")}, failures = failures + 1
WHERE {_STILL} RETURNING {_AGAIN_SIGNALS}"""
"""Task, attempt, error as JSON, now, when it is to run again."""

_READY_AGAIN: Final = _AGAIN.format(status="'ready'", now="?3")

HAND_BACK: Final = f"{_READY_AGAIN} WHERE {_STILL} RETURNING {_AGAIN_SIGNALS}"
"""Task, attempt, now: what is left in the midst."""

LEAVE_RUNNING: Final = f"""{_READY_AGAIN}
WHERE status = 'running' AND worker = ?1 AND id NOT IN (SELECT value FROM json_each(?2) AS given)
RETURNING {_AGAIN_SIGNALS}"""
"""Worker, the tasks that it has, as a JSON list, now: what stands there as its own, and is not."""

_LOST: Final = f"""UPDATE oxlite_task SET
  status = CASE WHEN is_cancel_requested THEN 'cancelled' WHEN crashes >= ?3 THEN 'failed'
    ELSE 'ready' END,
  crashes = crashes + 1, deadline = NULL,
  errors = {_ERRORS.format(error="json_set(?1, '$.worker', worker, '$.attempt', attempt)")},
  finished_at = CASE WHEN is_cancel_requested OR crashes >= ?3 THEN ?2 END,
  delete_at = CASE WHEN is_cancel_requested THEN ?2 + keep_seconds END
WHERE status = 'running' AND {{which}}
RETURNING '{TASKS_NAME}', id, CAST(name AS BLOB), status, crashes, worker"""

LOSE: Final = _LOST.format(which="worker = ?4")
"""Error as JSON, now, after how many deaths one more is the last, the worker that has ended."""

LOSE_STRAYS: Final = _LOST.format(which="worker NOT IN (SELECT name FROM oxlite_task_worker)")
"""The same, of workers that stand in the file no more."""

TAKE_OVER: Final = _LOST.format(which="id = ?4 AND attempt = ?5")
"""The same; a task and its attempt, from which nothing is heard."""

OVERDUE: Final = """SELECT worker, id, attempt FROM oxlite_task
WHERE status = 'running' AND deadline <= ?1 ORDER BY deadline LIMIT ?2"""
"""Now, how many at most."""

PROMOTE: Final = f"""UPDATE oxlite_task SET status = 'ready' WHERE id IN (
  SELECT id FROM oxlite_task WHERE status = 'scheduled' AND run_after <= ?1
  ORDER BY run_after LIMIT {SLICE})
RETURNING '{TASKS_NAME}'"""
"""Now."""

EXPIRE: Final = f"""UPDATE oxlite_task SET status = 'expired', finished_at = ?1,
  delete_at = ?1 + keep_seconds
WHERE id IN (
  SELECT id FROM oxlite_task WHERE {_WAITING} AND expires_at <= ?1
  ORDER BY expires_at LIMIT {SLICE})
RETURNING '{RESULTS_NAME}' || id"""
"""Now."""

LOOK: Final = f"""SELECT
  EXISTS (SELECT 1 FROM json_each(?1) AS served CROSS JOIN oxlite_task AS task
          WHERE task.status = 'ready' AND task.queue = served.value
            AND served.value NOT IN (SELECT queue FROM oxlite_task_pause)),
  (SELECT min(run_after) FROM oxlite_task WHERE status = 'scheduled'),
  (SELECT min(expires_at) FROM oxlite_task WHERE {_WAITING} AND expires_at IS NOT NULL),
  (SELECT min(deadline) FROM oxlite_task WHERE status = 'running' AND deadline IS NOT NULL),
  (SELECT json_group_array(name) FROM oxlite_task_worker),
  (SELECT name FROM oxlite_task_worker WHERE keeps_time ORDER BY begun_at, name LIMIT 1)"""
"""Queues as a JSON list. Returns whether one is ready there; when the next one is due, expires, is
overdue; who works; who sees to recurring tasks first."""

WORKERS: Final = """SELECT name, place, lock_file, pid, pid_namespace, may_be_killed
FROM oxlite_task_worker"""

REGISTER: Final = f"""INSERT INTO oxlite_task_worker
  (name, place, lock_file, pid, pid_namespace, may_be_killed, queues, begun_at, keeps_time)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING '{TASKS_NAME}'"""
"""Name, place of its lock and file of that, pid and namespace, whether it may be killed, queues as
a JSON list, now, whether it sees to recurring tasks."""

LEAVE: Final = f"DELETE FROM oxlite_task_worker WHERE name = ?1 RETURNING '{TASKS_NAME}'"
"""Worker that has ended, or ends."""

SCHEDULES: Final = """INSERT INTO oxlite_task_schedule (name, due_at)
SELECT value ->> 0, value ->> 1 FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING"""
"""Names, and from when on they are due, as a JSON list of such lists."""

DUE: Final = "SELECT name, due_at FROM oxlite_task_schedule"

SCHEDULE: Final = """UPDATE oxlite_task_schedule SET due_at = ?2
WHERE name = ?1 AND (due_at < ?2 OR due_at > ?3) RETURNING name"""
"""Name, its time that is to be enqueued, from when on a time that stands there is none. Returns
nothing where somebody was faster."""

GET: Final = """SELECT id, CAST(queue AS BLOB), CAST(name AS BLOB), CAST(arguments AS BLOB), status,
  priority, enqueued_at, run_after, started_at, attempted_at, finished_at, attempt,
  CAST(worker AS BLOB), CAST(result AS BLOB), CAST(errors AS BLOB), is_cancel_requested
FROM oxlite_task"""
"""What was written by other programs is read as bytes: ``Row.of`` makes text of it."""

CANCEL: Final = f"""UPDATE oxlite_task SET
  status = CASE status WHEN 'running' THEN status ELSE 'cancelled' END,
  is_cancel_requested = 1,
  finished_at = CASE status WHEN 'running' THEN NULL ELSE ?2 END,
  delete_at = CASE status WHEN 'running' THEN NULL ELSE ?2 + keep_seconds END
WHERE id = ?1 AND {_LIVE} RETURNING '{RESULTS_NAME}' || id, status"""
"""Task, now. Returns its status: that it is running if it has only been asked to end."""

RETRY: Final = f"""UPDATE oxlite_task SET status = 'ready', run_after = NULL, expires_at = NULL,
  failures = 0, crashes = 0, finished_at = NULL, delete_at = NULL, is_cancel_requested = 0
WHERE id = ?1 AND status IN ('failed', 'cancelled', 'expired') RETURNING '{TASKS_NAME}'"""
"""Task."""

DISCARD: Final = f"""DELETE FROM oxlite_task WHERE id = ?1 AND status <> 'running'
RETURNING '{RESULTS_NAME}' || id"""
"""Task."""

PAUSE: Final = "INSERT OR IGNORE INTO oxlite_task_pause VALUES (?1, ?2)"
"""Queue, now."""

RESUME: Final = f"DELETE FROM oxlite_task_pause WHERE queue = ?1 RETURNING '{TASKS_NAME}'"
"""Queue."""


def _make(connection: Connection) -> None:
    for statement in _SCHEMA:
        rows_of(connection, statement)


TABLES: Final = OwnTables(
    "oxlite_task",
    [statement.split("IF NOT EXISTS ", 1)[1].split()[0] for statement in _SCHEMA],
    _make,
    "a task",
)
