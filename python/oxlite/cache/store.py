"""The table of the cache, and each statement that is run on it.

A key is looked for by a number of 64 bits that is made of it. Two keys of the same number, of which
nobody will see any, take each other's place; since the key is compared, neither is ever given the
other's value.

Invariants:
- Each operation is one statement, so that it is atomic among all threads and processes.
- An instant is in milliseconds since 1970; 0 is never.
- What expired is nobody's, and lies there until it is overwritten, evicted or pruned.
- The numbers are evenly distributed, so entries that follow each other are a random sample.
"""

from typing import Final

__all__ = [
    "ADD",
    "APPLICATION_ID",
    "CLEAR",
    "COUNT",
    "DELETE",
    "DELETE_EXPIRED",
    "DELETE_IDS",
    "DELETE_ROW",
    "EXPIRED",
    "FOREIGN_TABLES",
    "GET",
    "GET_MANY",
    "INCR",
    "KEYS",
    "OWN_SCHEMA",
    "REPLACE",
    "ROW",
    "ROWS",
    "SAMPLE",
    "SCHEMA",
    "SET",
    "SIZE",
    "SWAP",
]

APPLICATION_ID: Final = 0x0C0A_C8E1
"""``PRAGMA application_id`` of a cache's file."""

SCHEMA: Final = """CREATE TABLE oxlite_cache_entry (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  value ANY NOT NULL
) STRICT"""

OWN_SCHEMA: Final = "SELECT sql FROM sqlite_schema WHERE name = 'oxlite_cache_entry'"

FOREIGN_TABLES: Final = """SELECT name FROM sqlite_schema
WHERE type = 'table' AND name NOT GLOB 'oxlite_cache_*' AND name NOT GLOB 'sqlite_*' LIMIT 1"""

# Of numbers alone; other values have a seal. No product leaves 63 bits.
_CHECKSUM = """CASE typeof({value}) WHEN 'integer' THEN
  (({value} & 0xffffffff) * 3 + (({value} >> 32) & 0xffffffff) * 5
   + ({expires_at} & 0xffffffffffff) * 7
   + ({id} & 0xffffffff) * 11 + (({id} >> 32) & 0xffffffff) * 13) % 2147483647
ELSE 0 END"""
_OF_ROW = _CHECKSUM.format(id="id", value="value", expires_at="expires_at")
_OF_GIVEN = _CHECKSUM.format(id="?1", value="?4", expires_at="?3")
_IS_SOUND = f"checksum = {_OF_ROW} AND typeof(value) IN ('integer', 'blob')"
_IS_LIVE = "(expires_at = 0 OR expires_at > {now})"

GET: Final = f"""SELECT value, expires_at FROM oxlite_cache_entry
WHERE id = ?1 AND key = ?2 AND {_IS_SOUND}"""
"""Number, key. Of what has expired as well."""

ROW: Final = "SELECT value, expires_at FROM oxlite_cache_entry WHERE id = ?1"
"""Number. Whatever stands there."""

ROWS: Final = """SELECT id, value, expires_at FROM oxlite_cache_entry
WHERE id IN (SELECT value FROM json_each(?1))"""
"""Numbers, as JSON. Whatever stands there."""

DELETE_ROW: Final = """DELETE FROM oxlite_cache_entry
WHERE id = ?1 AND value = ?2 AND expires_at = ?3"""
"""Number; value and expiry as read."""

GET_MANY: Final = f"""SELECT id, CAST(key AS BLOB), value, expires_at FROM oxlite_cache_entry
WHERE id IN (SELECT value FROM json_each(?1)) AND {_IS_SOUND}"""
"""Numbers, as JSON."""

SET: Final = f"""INSERT INTO oxlite_cache_entry (id, key, expires_at, value, checksum)
VALUES (?1, ?2, ?3, ?4, {_OF_GIVEN})
ON CONFLICT (id) DO UPDATE SET key = excluded.key, expires_at = excluded.expires_at,
  value = excluded.value, checksum = excluded.checksum"""
"""Number, key, expiry, value."""

ADD: Final = f"""{SET}
WHERE key <> excluded.key OR NOT {_IS_LIVE.format(now="?5")} OR NOT ({_IS_SOUND})
RETURNING 1"""
"""Number, key, expiry, value, now. Returns nothing where the key is there."""

_UPDATE = f"UPDATE oxlite_cache_entry SET expires_at = ?3, value = ?4, checksum = {_OF_GIVEN}"

REPLACE: Final = f"""{_UPDATE}
WHERE id = ?1 AND key = ?2 AND {_IS_LIVE.format(now="?5")} AND {_IS_SOUND}
RETURNING 1"""
"""As ``ADD``. Returns nothing where the key is not there."""

SWAP: Final = f"""{_UPDATE}
WHERE id = ?1 AND key = ?2 AND value = ?5 AND expires_at = ?6
RETURNING 1"""
"""Number, key, expiry, value; value and expiry as read. Returns nothing if they have changed."""

_SUM_CHECKSUM = _CHECKSUM.format(id="id", value="(value + ?3)", expires_at="expires_at")
INCR: Final = f"""UPDATE oxlite_cache_entry SET value = value + ?3, checksum = {_SUM_CHECKSUM}
WHERE id = ?1 AND key = ?2 AND typeof(value) = 'integer' AND typeof(value + ?3) = 'integer'
  AND {_IS_LIVE.format(now="?4")} AND {_IS_SOUND}
RETURNING value"""
"""Number, key, by how much, now. Returns nothing where there is no number, or no sum."""

DELETE: Final = f"""DELETE FROM oxlite_cache_entry WHERE id = ?1 AND key = ?2
RETURNING {_IS_LIVE.format(now="?3")}"""
"""Number, key, now. Returns whether it had not expired."""

DELETE_IDS: Final = f"""DELETE FROM oxlite_cache_entry
WHERE id IN (SELECT value FROM json_each(?1))
RETURNING {_IS_LIVE.format(now="?2")}"""
"""Numbers, as JSON; now. Returns whether each had not expired."""

DELETE_EXPIRED: Final = """DELETE FROM oxlite_cache_entry
WHERE id IN (SELECT value FROM json_each(?1)) AND expires_at BETWEEN 1 AND ?2
RETURNING 1"""
"""Numbers, as JSON; until when they have expired."""

KEYS: Final = f"""SELECT id, CAST(key AS BLOB), {_IS_LIVE.format(now="?2")}
FROM oxlite_cache_entry WHERE id >= ?1 ORDER BY id LIMIT ?3"""
"""The number where one begins, now, how many at most."""

EXPIRED: Final = """SELECT id, expires_at BETWEEN 1 AND ?2
FROM oxlite_cache_entry WHERE id >= ?1 ORDER BY id LIMIT ?3"""
"""The number where one begins, until when it has expired, how many are looked at."""

SAMPLE: Final = """SELECT id, expires_at, octet_length(key) + octet_length(value)
FROM oxlite_cache_entry WHERE id >= ?1 ORDER BY id LIMIT ?2"""
"""The number where one begins, how many at most."""

COUNT: Final = f"SELECT count(*) FROM oxlite_cache_entry WHERE {_IS_LIVE.format(now='?1')}"
"""Now."""

SIZE: Final = """SELECT (SELECT page_size FROM pragma_page_size)
  * ((SELECT page_count FROM pragma_page_count)
    - (SELECT freelist_count FROM pragma_freelist_count))"""
"""Bytes of the pages in use."""

CLEAR: Final = "DELETE FROM oxlite_cache_entry"
