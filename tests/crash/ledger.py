"""The database of the workloads, and what has been promised about it.

Each transaction has a token and writes entries, a part each. Entries are only ever added and are
numbered by SQLite under the write lock, so the numbers are in the order of the commits. Triggers
keep other tables in step with them: what these hold follows from the entries.

Promised is: what was acknowledged is there, what has failed is not, each transaction is there as a
whole, and what is there is a beginning of all commits in their order.
"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from tests.crash.log import Event

SCHEMA = """
    CREATE TABLE caller(id INTEGER PRIMARY KEY, entries INTEGER NOT NULL);
    CREATE TABLE entry(
        id INTEGER PRIMARY KEY, caller INTEGER NOT NULL REFERENCES caller,
        token INTEGER NOT NULL, part INTEGER NOT NULL, payload BLOB NOT NULL
    );
    CREATE INDEX entry_by_token ON entry(token, part);
    CREATE TABLE slot(
        id INTEGER PRIMARY KEY, entry INTEGER NOT NULL REFERENCES entry, payload BLOB NOT NULL
    );
    CREATE TRIGGER entry_is_added AFTER INSERT ON entry BEGIN
        UPDATE caller SET entries = entries + 1 WHERE id = NEW.caller;
        INSERT OR REPLACE INTO slot VALUES (NEW.id % 5, NEW.id, NEW.payload);
    END;
"""
CALLERS = range(1, 41)
SLOTS = 5
ADD_CALLER = "INSERT INTO caller VALUES (?, 0)"
ADD_ENTRY = "INSERT INTO entry(caller, token, part, payload) VALUES (?, ?, ?, ?)"

Entry = tuple[int, int, int, int, bytes]
"""Its number, its caller, its transaction's token, its part, its payload."""


def payload_of(token: int, part: int) -> bytes:
    """What an entry holds: little, or more than a page."""
    size_bytes = (12, 40, 90, 12, 300, 1_400)[(token * 7 + part * 3) % 6]
    return (f"{token}.{part} ".encode() * size_bytes)[:size_bytes]


class Found(NamedTuple):
    """What a database holds, compared with what it held at the end."""

    wrong: tuple[str, ...]
    """What is wrong with it whatever was promised."""
    has_schema: bool
    entries: int
    """How many entries are those that were there at the end, in that order."""
    beyond: tuple[tuple[int, int], ...]
    """The tokens and parts of those after them."""


NOT_THERE = Found((), False, 0, ())
"""A file that there is not."""


def inconsistencies(
    entries: Iterable[Entry], callers: Iterable[tuple[int, int]], slots: Iterable[Entry]
) -> list[str]:
    """Where the tables are not in step."""
    counts: Counter[int] = Counter()
    expected: dict[int, tuple[int, bytes]] = {}
    wrong = []
    for number, caller, token, part, payload in entries:
        counts[caller] += 1
        expected[number % SLOTS] = (number, payload)
        if payload != payload_of(token, part):
            wrong.append(f"corrupt: entry {number} holds {payload[:40]!r}")
    for caller, count in callers:
        if counts.pop(caller, 0) != count:
            wrong.append(f"corrupt: caller {caller} does not have {count} entries")
    wrong += [f"corrupt: there is no caller {caller}" for caller in counts]
    if {slot: (number, payload) for slot, number, payload in slots} != expected:
        wrong.append("corrupt: the slots do not hold the last entries")
    return wrong


class Promises:
    """What has been promised at some moment of a recording."""

    def __init__(self, final: list[Entry], is_durable: bool) -> None:
        self._is_durable = is_durable
        self._ends: dict[int, int] = {}
        self._boundaries = {0}
        for index, (_, _, token, _, _) in enumerate(final, 1):
            if index == len(final) or final[index][2] != token:
                if token in self._ends:
                    raise AssertionError(f"transaction {token} is there in two pieces")
                self._ends[token] = index
                self._boundaries.add(index)
        self.required = 0
        """How many entries have been acknowledged."""
        self.has_schema = False
        self._copied = 0
        self._open: dict[int, int] = {}
        self._failed: set[int] = set()
        self._acknowledged: set[int] = set()

    def apply(self, event: Event) -> bool:
        """Has the process say something; whether more is promised now than before."""
        said = json.loads(event.content)
        token = said.get("token")
        match said["what"]:
            case "begins" if not said["is_doomed"]:
                self._open[token] = said["parts"]
            case "acknowledged":
                self._open.pop(token, None)
                self._acknowledged.add(token)
                self.required = max(self.required, self._ends.get(token, 0))
                return True
            case "failed":
                self._open.pop(token, None)
                self._failed.add(token)
                return True
            case "schema":
                self.has_schema = True
                return True
            case "copied":
                self._copied = max(self._copied, said["entries"])
                return True
        return False

    def at_the_end(self) -> list[str]:
        """What is wrong with what was there at the end, without any crash of the machine."""
        there = self._ends.keys()
        wrong = [f"lost: {token} at the end" for token in sorted(self._acknowledged - there)]
        return wrong + [f"failed and there: {token}" for token in sorted(self._failed & there)]

    def judge(self, found: Found) -> list[str]:
        """What is wrong with a database after a crash at this moment."""
        if found.wrong:
            return list(found.wrong)
        wrong = []
        if self._is_durable:
            if self.has_schema and not found.has_schema:
                wrong.append("lost: the schema")
            if found.entries < self.required:
                wrong.append(f"lost: entries {found.entries + 1} to {self.required}")
        if found.entries not in self._boundaries:
            wrong.append(f"in part: the transaction of entry {found.entries}")
        parts: dict[int, list[int]] = {}
        for token, part in found.beyond:
            parts.setdefault(token, []).append(part)
        for token, those in parts.items():
            if token in self._failed:
                wrong.append(f"failed and there: {token}")
            elif token not in self._open:
                wrong.append(f"out of order: {token}")
            elif those != list(range(self._open[token])):
                wrong.append(f"in part: {token} has parts {those}")
        return wrong

    def judge_copy(self, found: Found) -> list[str]:
        """What is wrong with a backup after a crash at this moment."""
        if found.wrong:
            return list(found.wrong)
        if found.entries < self._copied and self._is_durable:
            return [f"lost: entries {found.entries + 1} to {self._copied} of the copy"]
        if found.entries not in self._boundaries or found.beyond:
            return [f"in part: the copy has {found.entries} entries and {found.beyond}"]
        return []
