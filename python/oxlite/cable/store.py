"""The tables of the cable: messages in queues, and which channels are in which group.

A queue is what is received together: a channel, or all channels of a process whose names begin
alike, up to ``!``. A message to a group is one row for each queue in which it has members; its
members are looked for when it is read.

Invariants:
- What several processes read is taken by the statement that deletes it, so nobody else has it. The
  queue of a process is read by nobody else: it is read first, and deleted when it was given.
- Numbers grow in the order of the commits (AUTOINCREMENT): whoever joins a group is given what has
  a greater number than the latest one at that moment; whoever leaves it, what has none greater.
  Where the tables are made anew, numbers begin again, and the epoch is another one.
- A message that has expired is given to nobody and fills no queue. It is kept for as long once
  more; if nobody has taken it by then, whoever reads its queue is gone and leaves its groups. A
  process that lives deletes it before.
- What other programs have written is read as bytes, with its type: no row can keep the others back.
- Each statement that sends returns the queues that have news in its first column.
"""

from typing import Final

from oxlite._native import Announcement
from oxlite.own_tables import OwnTables, rows_of, text_of
from oxlite.sqlite3 import Connection

__all__ = [
    "ADD",
    "BEGIN_EPOCH",
    "DELETE_GIVEN",
    "DELETE_ROWS",
    "GROUP_CHANNELS",
    "GROUP_QUEUES",
    "GROUP_SEND",
    "LEAVE_FOR_EVER",
    "OTHER_TABLES",
    "PUT_BACK",
    "READ",
    "REGISTER",
    "REMOVE",
    "RESTART",
    "SEND",
    "TABLES",
    "TAKE",
    "TOPIC_PREFIX",
    "flush",
    "queue_of",
]

TOPIC_PREFIX: Final = "oxlite.cable."
"""What is signalled for a queue begins so; the core knows it as well. Nothing follows it where all
are to look who read queues of their own: what was there is no more."""

_NOW: Final = "unixepoch('subsec')"

# The greatest number that was given. The row of sqlite_sequence may have been deleted by others.
_LATEST: Final = """max(
  coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'oxlite_cable_message'), 0),
  coalesce((SELECT max(id) FROM oxlite_cable_message), 0))"""

# Of a row that others have inserted: no later than now, or it would end everybody's time.
_SENT: Final = "min(new.sent_at, (julianday('now') - 2440587.5) * 86400.0)"

_SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS oxlite_cable_message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  channel TEXT,
  group_name TEXT,
  sent_at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
  expires_at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0 + 60.0),
  message BLOB NOT NULL,
  CHECK (channel IS NOT NULL OR group_name IS NOT NULL)
)""",
    """CREATE INDEX IF NOT EXISTS oxlite_cable_message_queue
ON oxlite_cable_message (queue, id, expires_at)""",
    # What nobody has read for twice its expiry is found among many without a look at each.
    """CREATE INDEX IF NOT EXISTS oxlite_cable_message_gone
ON oxlite_cable_message (2 * expires_at - sent_at)""",
    """CREATE TABLE IF NOT EXISTS oxlite_cable_member (
  group_name TEXT NOT NULL,
  queue TEXT NOT NULL,
  channel TEXT NOT NULL,
  joined INTEGER NOT NULL,
  expires_at REAL NOT NULL,
  PRIMARY KEY (group_name, queue, channel)
) WITHOUT ROWID""",
    """CREATE INDEX IF NOT EXISTS oxlite_cable_member_queue
ON oxlite_cable_member (queue)""",
    """CREATE INDEX IF NOT EXISTS oxlite_cable_member_end
ON oxlite_cable_member (expires_at)""",
    # Memberships that have ended while messages waited that were sent during them.
    """CREATE TABLE IF NOT EXISTS oxlite_cable_past_member (
  group_name TEXT NOT NULL,
  queue TEXT NOT NULL,
  channel TEXT NOT NULL,
  joined INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  expires_at REAL NOT NULL,
  PRIMARY KEY (queue, group_name, channel, joined)
) WITHOUT ROWID""",
    # The queues of processes that live, or were killed.
    """CREATE TABLE IF NOT EXISTS oxlite_cable_reader (
  queue TEXT NOT NULL PRIMARY KEY,
  begun REAL NOT NULL
) WITHOUT ROWID""",
    # One row: of which numbering the messages are, and how often all was deleted.
    """CREATE TABLE IF NOT EXISTS oxlite_cable_epoch (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  key TEXT NOT NULL,
  flushes INTEGER NOT NULL
)""",
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_cable_leave AFTER DELETE ON oxlite_cable_member
WHEN instr(old.queue, '!') AND EXISTS (
  SELECT 1 FROM oxlite_cable_message WHERE queue = old.queue AND id > old.joined)
BEGIN
  INSERT OR REPLACE INTO oxlite_cable_past_member
  SELECT old.group_name, old.queue, old.channel, old.joined, {_LATEST}, old.expires_at;
END""",
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_cable_join_again
AFTER UPDATE OF joined ON oxlite_cable_member
WHEN old.joined < new.joined AND instr(old.queue, '!') AND EXISTS (
  SELECT 1 FROM oxlite_cable_message WHERE queue = old.queue AND id > old.joined)
BEGIN
  INSERT OR REPLACE INTO oxlite_cable_past_member
  SELECT old.group_name, old.queue, old.channel, old.joined, {_LATEST}, old.expires_at;
END""",
    f"""CREATE TRIGGER IF NOT EXISTS oxlite_cable_prune AFTER INSERT ON oxlite_cable_message
WHEN new.id % 64 = 0
BEGIN
  DELETE FROM oxlite_cable_reader WHERE queue IN
    (SELECT queue FROM oxlite_cable_message
     WHERE 2 * expires_at - sent_at < {_SENT} AND sent_at <= expires_at);
  DELETE FROM oxlite_cable_member WHERE expires_at < {_SENT} OR queue IN
    (SELECT queue FROM oxlite_cable_message
     WHERE 2 * expires_at - sent_at < {_SENT} AND sent_at <= expires_at);
  DELETE FROM oxlite_cable_message WHERE 2 * expires_at - sent_at < {_SENT};
  DELETE FROM oxlite_cable_past_member WHERE NOT EXISTS (
    SELECT 1 FROM oxlite_cable_message AS message
    WHERE message.queue = oxlite_cable_past_member.queue
      AND message.id <= oxlite_cable_past_member.ended);
END""",
)

_TABLES: Final = 5

OTHER_TABLES: Final = """SELECT 1 FROM sqlite_schema
WHERE type = 'table' AND name NOT GLOB 'oxlite_*' AND name NOT GLOB 'sqlite_*' LIMIT 1"""

# Messages count from 1 again: so that whoever has read some, or has joined a group, knows.
BEGIN_EPOCH: Final = (
    "INSERT OR REPLACE INTO oxlite_cable_epoch VALUES (1, lower(hex(randomblob(16))), 0)",
    "DELETE FROM oxlite_cable_reader",
    "UPDATE oxlite_cable_member SET joined = 0",
    "DELETE FROM oxlite_cable_past_member",
)

_IS_NOT_FULL: Final = f"""(
  SELECT count(*) FROM oxlite_cable_message AS waiting
  WHERE waiting.queue = {{queue}} AND waiting.id > {{given}} AND waiting.expires_at > {_NOW}
) < {{capacity}}"""

SEND: Final = f"""INSERT INTO oxlite_cable_message (queue, channel, message, sent_at, expires_at)
SELECT ?1, ?2, ?3, {_NOW}, {_NOW} + ?4
WHERE {_IS_NOT_FULL.format(queue="?1", capacity="?5", given="?6")}
RETURNING queue"""
"""Queue, channel, message, expiry in seconds, capacity, up to which number this process has given
the messages of that queue. Returns nothing where the queue is full."""

# Jumps from one queue to the next, over its members.
_QUEUES: Final = f"""WITH RECURSIVE found (queue) AS (
  SELECT min(queue) FROM oxlite_cable_member WHERE group_name = ?1
  UNION ALL
  SELECT (SELECT min(queue) FROM oxlite_cable_member
          WHERE group_name = ?1 AND queue > found.queue)
  FROM found WHERE found.queue IS NOT NULL
), alive (queue) AS (
  SELECT queue FROM found WHERE queue IS NOT NULL
    AND EXISTS (SELECT 1 FROM oxlite_cable_member AS member
                WHERE member.group_name = ?1 AND member.queue = found.queue
                  AND member.expires_at > {_NOW})
)"""

GROUP_QUEUES: Final = f"{_QUEUES} SELECT queue FROM alive"
"""Group. Returns the queues in which it has members."""

GROUP_CHANNELS: Final = f"""SELECT queue, count(*) FROM oxlite_cable_member
WHERE group_name = ?1 AND expires_at > {_NOW} GROUP BY queue"""
"""Group. Returns the queues in which it has members, and how many it has there."""

_CAPACITY: Final = "coalesce((SELECT value FROM json_each(?5) WHERE key = alive.queue), ?4)"
_GIVEN: Final = "coalesce((SELECT value FROM json_each(?6) WHERE key = alive.queue), 0)"

GROUP_SEND: Final = f"""INSERT INTO oxlite_cable_message
  (queue, channel, group_name, message, sent_at, expires_at)
{_QUEUES}
SELECT queue, CASE WHEN instr(queue, '!') THEN NULL ELSE queue END, ?1, ?2, {_NOW}, {_NOW} + ?3
FROM alive
WHERE {_IS_NOT_FULL.format(queue="alive.queue", capacity=_CAPACITY, given=_GIVEN)}
RETURNING queue, ({_QUEUES} SELECT count(*) FROM alive)"""
"""Group, message, expiry in seconds, capacity, capacities of other queues as a JSON object, up to
which number this process has given the messages of its own queues, likewise.

Returns, beside each queue, how many there are.
"""

_ROW: Final = f"""id, CAST(channel AS BLOB) AS channel, typeof(channel) AS channel_type,
  CAST(message AS BLOB) AS message, typeof(message) AS message_type,
  CAST(sent_at AS REAL) AS sent_at, CAST(expires_at AS REAL) AS expires_at,
  CAST(expires_at AS REAL) - {_NOW} AS seconds_left"""

# Who was in the group when the message was sent.
_MEMBERS: Final = """CASE WHEN channel IS NULL THEN (
  SELECT CAST(json_group_array(channel) AS BLOB) FROM (
    SELECT channel FROM oxlite_cable_member AS member
    WHERE member.group_name = sent.group_name AND member.queue = sent.queue
      AND member.joined < sent.id AND member.expires_at > sent.sent_at
      AND typeof(channel) = 'text'
    UNION ALL
    SELECT channel FROM oxlite_cable_past_member AS member
    WHERE member.group_name = sent.group_name AND member.queue = sent.queue
      AND member.joined < sent.id AND member.ended >= sent.id
      AND member.expires_at > sent.sent_at AND typeof(channel) = 'text'
  )
) END AS members"""

READ: Final = f"""SELECT CAST(epoch.key AS BLOB), CAST(epoch.flushes AS INTEGER),
  EXISTS (SELECT 1 FROM oxlite_cable_reader AS reader WHERE reader.queue = ?1),
  EXISTS (SELECT 1 FROM oxlite_cable_message AS early
          WHERE early.queue = ?1 AND early.id BETWEEN 1 AND ?4) OR {_LATEST} < ?2,
  found.*
FROM oxlite_cable_epoch AS epoch LEFT JOIN (
  SELECT {_ROW}, {_MEMBERS} FROM oxlite_cable_message AS sent
  WHERE queue = ?1 AND id > ?2 ORDER BY id LIMIT ?3
) AS found"""
"""The queue of a process, the number that was read last, how many at most, up to which number all
were deleted. Returns at least one row, with NULL as number if there is no message: the epoch, how
often all was deleted, whether the queue is registered, whether numbers have begun again; number,
channel, message, instants, seconds left, members."""

DELETE_GIVEN: Final = """DELETE FROM oxlite_cable_message
WHERE queue = ?1 AND id > ?2 AND id <= ?3
  AND ?4 = (SELECT CAST(key AS BLOB) FROM oxlite_cable_epoch)"""
"""Queue, up to which number all were deleted, the number that was given last, their epoch."""

DELETE_ROWS: Final = """DELETE FROM oxlite_cable_message
WHERE queue = ?1 AND id IN (SELECT value FROM json_each(?2))
  AND ?3 = (SELECT CAST(key AS BLOB) FROM oxlite_cable_epoch)"""
"""Queue, numbers as a JSON list, their epoch."""

TAKE: Final = f"""DELETE FROM oxlite_cable_message WHERE id IN (
  SELECT id FROM oxlite_cable_message WHERE queue = ?1 ORDER BY id LIMIT ?2
)
RETURNING {_ROW}, NULL"""
"""Queue, how many at most. Returns them in no order: number, channel, message, instants, seconds
left, NULL."""

PUT_BACK: Final = """INSERT OR IGNORE INTO oxlite_cable_message
  (id, queue, channel, message, sent_at, expires_at)
VALUES (?1, ?2, ?2, CASE WHEN ?4 THEN CAST(?3 AS TEXT) ELSE ?3 END, ?5, ?6)
RETURNING queue"""
"""What was taken and given to nobody: number, queue, message, whether it is text, instants."""

ADD: Final = f"""INSERT INTO oxlite_cable_member (group_name, queue, channel, joined, expires_at)
SELECT value ->> 0, ?1, value ->> 1, {_LATEST}, {_NOW} + (value ->> 2) FROM json_each(?2)
WHERE true
ON CONFLICT (group_name, queue, channel) DO UPDATE SET
  joined = CASE WHEN expires_at > {_NOW} THEN joined ELSE excluded.joined END,
  expires_at = excluded.expires_at
RETURNING (SELECT CAST(flushes AS INTEGER) FROM oxlite_cable_epoch)"""
"""Queue; group, channel and expiry of membership in seconds, as a JSON list of such lists.

Returns, for each, how often all had been deleted before.
"""

REMOVE: Final = """DELETE FROM oxlite_cable_member WHERE (group_name, queue, channel) IN (
  SELECT value ->> 0, ?1, value ->> 1 FROM json_each(?2))"""
"""Queue; group and channel, as a JSON list of such lists."""

REGISTER: Final = f"INSERT OR IGNORE INTO oxlite_cable_reader VALUES (?1, {_NOW})"
"""The queue of a process that lives."""

RESTART: Final = (
    "UPDATE oxlite_cable_member SET joined = 0 WHERE queue = ?1",
    "DELETE FROM oxlite_cable_past_member WHERE queue = ?1",
)
"""Queue of a process, whose memberships count from the beginning: numbers have begun again."""

LEAVE_FOR_EVER: Final = (
    "DELETE FROM oxlite_cable_message WHERE queue = ?1",
    "DELETE FROM oxlite_cable_member WHERE queue = ?1",
    "DELETE FROM oxlite_cable_past_member WHERE queue = ?1",
    "DELETE FROM oxlite_cable_reader WHERE queue = ?1",
)
"""Queue of a process that ends."""

_FLUSH: Final = (
    "DELETE FROM oxlite_cable_message",
    "DELETE FROM oxlite_cable_member",
    "DELETE FROM oxlite_cable_past_member",
    "UPDATE oxlite_cable_epoch SET flushes = flushes + 1",
)


def queue_of(channel: str) -> str:
    """The queue in which the messages of a channel are: its name up to ``!``, or the whole."""
    name, mark, _ = channel.partition("!")
    return name + mark


def flush(connection: Connection, announcement: Announcement) -> None:
    """Delete all messages and groups in the transaction that is open; all who read hear of it."""
    TABLES.prepare(connection)
    for statement in _FLUSH:
        connection.execute(statement)
    readers = rows_of(connection, "SELECT CAST(queue AS BLOB) FROM oxlite_cable_reader")
    # No reader has a name that is no text.
    names = [text_of(queue) for (queue,) in readers if queue is not None]
    announcement.follow(connection, names)


def _make(connection: Connection) -> None:
    [(had,)] = rows_of(
        connection,
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'oxlite_cable_*'",
    )
    for statement in _SCHEMA:
        connection.execute(statement)
    if had < _TABLES:
        for statement in BEGIN_EPOCH:
            connection.execute(statement)
    if 0 < had < _TABLES:
        [path] = [row[2] for row in rows_of(connection, "PRAGMA database_list") if row[0] == 0]
        Announcement.of_rows(text_of(path), TOPIC_PREFIX).follow(connection, [""])


TABLES: Final = OwnTables(
    "oxlite_cable_",
    (
        "oxlite_cable_message",
        "oxlite_cable_member",
        "oxlite_cable_past_member",
        "oxlite_cable_reader",
        "oxlite_cable_epoch",
        "oxlite_cable_prune",
        "oxlite_cable_message_gone",
        "oxlite_cable_member_end",
    ),
    _make,
    "a message or a group",
)
"""All of them; the queues of what is sent are in the first column."""
