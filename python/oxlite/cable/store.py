"""The tables of the cable: messages in queues, and which channels are in which group.

A queue is what is received together: a channel, or all channels of a process whose names begin
alike, up to ``!``. A message to a group is one row for each queue in which it has members; its
members are looked for when it is taken.

Invariants:
- What several processes read is taken by the statement that deletes it, so nobody else has it. The
  queue of a process is read by nobody else: it is read first, and deleted when there is time.
- Numbers grow in the order of the commits and never come again (AUTOINCREMENT): whoever joins a
  group is given what has a greater number than the latest one at that moment.
- A message that has expired is given to nobody and fills no queue. It is kept for as long once
  more; if nobody has taken it by then, whoever reads its queue is gone and leaves its groups.
- Each statement that writes returns the queues that have news in its first column.
"""

from typing import Final

__all__ = [
    "DELETE_READ",
    "FLUSH",
    "GROUP_ADD",
    "GROUP_DISCARD",
    "GROUP_QUEUES",
    "GROUP_SEND",
    "PUT_BACK",
    "READ",
    "SCHEMA",
    "SEND",
    "TAKE",
    "TOPIC_PREFIX",
    "is_missing",
    "queue_of",
]

TOPIC_PREFIX: Final = "oxlite.cable."
"""What is signalled for a queue begins so; the core knows it as well."""

SCHEMA: Final = (
    """CREATE TABLE IF NOT EXISTS oxlite_cable_message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  channel TEXT,
  group_name TEXT,
  message BLOB NOT NULL,
  sent_at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0),
  expires_at REAL NOT NULL DEFAULT ((julianday('now') - 2440587.5) * 86400.0 + 60.0),
  CHECK (channel IS NOT NULL OR group_name IS NOT NULL)
)""",
    """CREATE INDEX IF NOT EXISTS oxlite_cable_message_queue
ON oxlite_cable_message (queue, id, expires_at)""",
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
    """CREATE TRIGGER IF NOT EXISTS oxlite_cable_prune AFTER INSERT ON oxlite_cable_message
WHEN new.id % 64 = 0
BEGIN
  DELETE FROM oxlite_cable_member WHERE expires_at < new.sent_at OR queue IN
    (SELECT queue FROM oxlite_cable_message WHERE 2 * expires_at - sent_at < new.sent_at);
  DELETE FROM oxlite_cable_message WHERE 2 * expires_at - sent_at < new.sent_at;
END""",
)

_IS_NOT_FULL = """(
  SELECT count(*) FROM oxlite_cable_message AS waiting
  WHERE waiting.queue = {queue} AND waiting.expires_at > unixepoch('subsec')
) < {capacity}"""

SEND: Final = f"""INSERT INTO oxlite_cable_message (queue, channel, message, sent_at, expires_at)
SELECT ?1, ?2, ?3, unixepoch('subsec'), unixepoch('subsec') + ?4
WHERE {_IS_NOT_FULL.format(queue="?1", capacity="?5")}
RETURNING queue"""
"""Queue, channel, message, expiry in seconds, capacity. Returns nothing where the queue is full."""

# Jumps from one queue to the next, over its members.
_QUEUES = """WITH RECURSIVE found (queue) AS (
  SELECT min(queue) FROM oxlite_cable_member WHERE group_name = ?1
  UNION ALL
  SELECT (SELECT min(queue) FROM oxlite_cable_member
          WHERE group_name = ?1 AND queue > found.queue)
  FROM found WHERE found.queue IS NOT NULL
)"""

GROUP_QUEUES: Final = f"{_QUEUES} SELECT queue FROM found WHERE queue IS NOT NULL"
"""Group. Returns the queues in which it has members."""

GROUP_SEND: Final = f"""INSERT INTO oxlite_cable_message
  (queue, channel, group_name, message, sent_at, expires_at)
{_QUEUES}
SELECT queue, CASE WHEN instr(queue, '!') THEN NULL ELSE queue END, ?1, ?2,
       unixepoch('subsec'), unixepoch('subsec') + ?3
FROM found
WHERE queue IS NOT NULL
  AND EXISTS (SELECT 1 FROM oxlite_cable_member AS member
              WHERE member.group_name = ?1 AND member.queue = found.queue
                AND member.expires_at > unixepoch('subsec'))
  AND {_IS_NOT_FULL.format(queue="found.queue", capacity="coalesce(?5 ->> found.queue, ?4)")}
RETURNING queue, ({_QUEUES} SELECT count(queue) FROM found)"""
"""Group, message, expiry in seconds, capacity, and capacities of other queues as a JSON object.

Returns, beside each queue, how many there are.
"""

_TAKEN = """id, channel, message, sent_at, expires_at, expires_at - unixepoch('subsec'),
  CASE WHEN channel IS NULL THEN (
    SELECT json_group_array(member.channel) FROM oxlite_cable_member AS member
    WHERE member.group_name = oxlite_cable_message.group_name
      AND member.queue = oxlite_cable_message.queue
      AND member.joined < oxlite_cable_message.id
      AND member.expires_at > unixepoch('subsec')
  ) END"""
"""Number, channel, message, instants, seconds left, members."""

READ: Final = f"""SELECT {_TAKEN} FROM oxlite_cable_message
WHERE queue = ?1 AND id > ?2 ORDER BY id LIMIT ?3"""
"""Queue, the number that was read last, how many at most."""

DELETE_READ: Final = "DELETE FROM oxlite_cable_message WHERE queue = ?1 AND id <= ?2"
"""Queue, the number that was read last."""

TAKE: Final = f"""DELETE FROM oxlite_cable_message WHERE id IN (
  SELECT id FROM oxlite_cable_message WHERE queue = ?1 ORDER BY id LIMIT ?2
)
RETURNING {_TAKEN}"""
"""Queue, how many at most."""

PUT_BACK: Final = """INSERT INTO oxlite_cable_message
  (id, queue, channel, message, sent_at, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
RETURNING queue"""
"""What was taken and given to nobody."""

GROUP_ADD: Final = """INSERT INTO oxlite_cable_member
  (group_name, queue, channel, joined, expires_at)
VALUES (?1, ?2, ?3,
  (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'oxlite_cable_message'),
  unixepoch('subsec') + ?4)
ON CONFLICT (group_name, queue, channel) DO UPDATE SET
  joined = CASE WHEN expires_at > unixepoch('subsec') THEN joined ELSE excluded.joined END,
  expires_at = excluded.expires_at"""
"""Group, queue, channel, expiry of membership in seconds."""

GROUP_DISCARD: Final = """DELETE FROM oxlite_cable_member
WHERE group_name = ?1 AND queue = ?2 AND channel = ?3"""
"""Group, queue, channel."""

FLUSH: Final = ("DELETE FROM oxlite_cable_message", "DELETE FROM oxlite_cable_member")


def queue_of(channel: str) -> str:
    """The queue in which the messages of a channel are: its name up to ``!``, or the whole."""
    name, mark, _ = channel.partition("!")
    return name + mark


def is_missing(error: Exception) -> bool:
    """Whether an error says that the tables are not there yet."""
    return "no such table: " in str(error) and "oxlite_cable_" in str(error)
