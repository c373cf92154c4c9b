"""From a SQLite file to PostgreSQL: looked at, copied, followed, verified, and cut over.

The order in which things happen is what makes it safe to interrupt:

1. Triggers in the file note keys from now on; the tables are made in PostgreSQL.
2. Tables are copied part by part, and get their indexes.
3. What was noted is carried over, until little is left; and once more in a snapshot of the file, in
   which both sides are compared.
4. Without a cut-over that moment is what PostgreSQL has, and the triggers go. With one, writers
   wait while the rest is carried over; then triggers refuse what they write.

Invariants:
- Whatever is killed, the same command goes on where it was; ``abort`` takes all of it back.
- Writes are refused here in the transaction after PostgreSQL has everything, and not before.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, cast

import oxlite
from oxlite import sqlite3
from oxlite.own_tables import in_transaction
from oxlite.promotion import changes, definition, noted
from oxlite.promotion.comparison import compare
from oxlite.promotion.errors import DoesNotFit, PromotionError, VerificationDiffers
from oxlite.promotion.functions import register
from oxlite.promotion.names import identifier, table_name
from oxlite.promotion.noted import Noted
from oxlite.promotion.overrides import Misfits, Overrides
from oxlite.promotion.plan import Note, Plan, Tell, make_plan
from oxlite.promotion.rows import ROW_NUMBER
from oxlite.promotion.source import Source, read_declarations, read_left_out, read_source
from oxlite.promotion.target import Target, connected, is_lost, shown
from oxlite.promotion.transfer import copy_table
from oxlite.sqlite3 import Connection

__all__ = ["Promoted", "Settings", "abort", "examine", "promote"]

_LOCK: Final = 0x6F786C697465
"""Of advisory locks: one promotion at a time in a database."""

_BEGUN, _MOVED, _COPIED = range(3)
"""How far a file knows its promotion to be. After both of the last PostgreSQL is tidied up."""

_FEW_NOTES: Final = 1000
_ROUNDS_AT_MOST: Final = 50
_TIMEOUT_SECONDS: Final = 60.0
_PRAGMAS: Final[dict[str, bool | int | str]] = {
    "mmap_size": 0,
    "cache_size": -8192,
    "synchronous": "FULL",
}
"""Each page is read once: nothing is won by having many of them in memory. And that writes are
refused from now on outlives a loss of power, as what PostgreSQL has does."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is done.

    Attributes:
        schema: Where the tables are in PostgreSQL.
        is_existing: Whether they are there already, made by migrations; what is in them is deleted.
        policy: What is done about values that do not fit, where the overrides say nothing.
        overrides: What is to be done otherwise.
    """

    schema: str = "public"
    is_existing: bool = False
    policy: Misfits = "stop"
    overrides: Overrides = field(default_factory=Overrides)


@dataclass(frozen=True, slots=True)
class Promoted:
    """What was done.

    Attributes:
        rows: How many rows each table has.
        set_aside: How many rows were set aside, in ``oxlite_promotion.set_aside``.
        notes: What was lost on the way.
        pause_seconds: How long writers waited; ``None`` without a cut-over.
        target: Where the data is.
        seconds: How long this run took to look at what is stored, to copy it, to make keys, and to
            compare both sides.
    """

    rows: dict[str, int]
    set_aside: int
    notes: tuple[Note, ...]
    pause_seconds: float | None
    target: str
    seconds: dict[str, float] = field(default_factory=dict)


def examine(database: Path, url: str, settings: Settings, tell: Tell) -> Plan:
    """Say what would become of a file, and change nothing on either side.

    Args:
        database: The file.
        url: Where PostgreSQL is. What it would refuse is tried there, and rolled back.
        settings: How it would be done.
        tell: Is called with a table's name, how far it was read, and how many rows it has.

    Raises:
        PromotionError: It cannot be done.
        oxlite.sqlite3.Error: The file cannot be read.
    """
    with _opened(database) as reader, connected(url) as target:
        source = read_source(reader, skipped=settings.overrides.skipped)
        plan = _planned(reader, target, source, settings, tell)
        if settings.is_existing:
            return plan
        notes: list[Note] = []
        with suppress(_UndoneError), target.transaction():
            tried, lost = definition.create_tables(target, settings.schema, plan)
            notes += lost
            for one in tried.tables:
                notes += definition.add_indexes(target, settings.schema, one)
            for one in tried.tables:
                notes += definition.add_unique_indexes(target, settings.schema, one)
            notes += definition.add_foreign_keys(target, settings.schema, tried)
            notes += definition.add_checks(target, settings.schema, tried)
            raise _UndoneError
        return replace(plan, notes=(*plan.notes, *notes))


class _UndoneError(Exception):
    """Has a transaction rolled back."""


def promote(
    database: Path,
    url: str,
    settings: Settings,
    *,
    cut_over: bool,
    tell: Tell,
    report: Callable[[Plan], object],
) -> Promoted:
    """Have PostgreSQL have what a file has; or go on with that.

    Args:
        database: The file. Others may write it meanwhile.
        url: Where PostgreSQL is.
        settings: How. Where it is gone on with, what was said first is done.
        cut_over: Whether the file is not to be written any more afterwards.
        tell: Is called with what is done, how far that is, and of how much.
        report: Is called with the plan, before anything is changed.

    Raises:
        DoesNotFit: Something does not, and nothing was said about it. Nothing was changed if it
            was there when the plan was made.
        VerificationDiffers: The two sides are not the same.
        PromotionError: It cannot be done, or not be gone on with.
        oxlite.sqlite3.Error: The file cannot be read or written.
    """
    with ExitStack() as stack:
        reader = stack.enter_context(_opened(database))
        writer = stack.enter_context(_opened(database))
        target = stack.enter_context(connected(url))
        _lock(target)
        source = read_source(reader, skipped=settings.overrides.skipped)
        spent: dict[str, float] = {}
        here = _state(reader)
        number = noted.number_there(target)
        is_ours = here is not None and here.number == number
        if here is not None and here.stage == _MOVED and not is_ours:
            raise PromotionError(
                f"{database} was promoted already, to {here.target}: writes to it are refused."
                f" oxlite promote {database} --abort lets them in again"
            )
        if here is not None and here.stage != _COPIED and here.target != shown(url):
            raise PromotionError(
                f"a promotion of {database} to {here.target} has begun: go on with it, or take it"
                f" back with --abort"
            )
        if number is not None and not is_ours:
            raise PromotionError(
                f"{shown(url)} holds a promotion of another file: take that one back first, or"
                f" drop its schema {noted.SCHEMA}"
            )
        if number is None:
            if here is not None and here.stage == _COPIED:
                _forget_here(writer)  # killed when nothing else was left to be done
                if here.target == shown(url) and not cut_over:
                    names = [table.name for table in source.tables]
                    rows = _counted(target, settings.schema, names)
                    return Promoted(rows, 0, (), None, shown(url))
            noted.refuse_what_is_set_aside(target)
            with _timed(spent, "looked at"):
                plan = _planned(reader, target, source, settings, tell)
            report(plan)
            if plan.misfits:
                raise DoesNotFit(_in_the_way(plan))
            found = _begin(writer, target, plan, settings, shown(url))
        else:
            found = noted.read(target, number, source)
            if here is not None and here.stage != _BEGUN:
                if cut_over and here.stage == _COPIED:
                    raise PromotionError(
                        f"a copy of {database} is all but made: end it without --cut-over, or take"
                        " it back with --abort"
                    )
                # It has all of it, and was killed before it was tidied up.
                return _tidied(
                    writer,
                    target,
                    found,
                    _counted(target, found.schema, found.progress),
                    None,
                    shown(url),
                )
        work = _Work(reader, writer, target, found, tell, spent)
        work.copy()
        work.follow()
        with _timed(spent, "compared"):
            rows = work.verify()
        seconds = None
        if cut_over:
            seconds = work.cut_over(shown(url))
        else:
            work.end_here()
        with _timed(spent, "keys made"):
            done = _tidied(writer, target, found, rows, seconds, shown(url))
        return replace(done, seconds=spent)


def _tidied(
    writer: Connection,
    target: Target,
    found: Noted,
    rows: dict[str, int],
    seconds: float | None,
    where: str,
) -> Promoted:
    """The end, after which neither side needs the other: foreign keys looked at, notes dropped."""
    lost = definition.validate_constraints(
        target, found.schema, found.plan, found.foreign_keys if found.is_existing else None
    )
    definition.drop_row_numbers(target, found.schema, found.plan)
    set_aside = noted.set_aside_count(target)
    noted.forget(target)
    if seconds is None:
        with in_transaction(writer):
            here = _state(writer)
            if here is not None and here.stage == _COPIED:
                writer.execute(f"DROP TABLE {changes.STATE}")
    notes = (*(_note_of(one) for one in found.notes), *lost)
    return Promoted(rows, set_aside, notes, seconds, where)


def _counted(target: Target, schema: str, names: Iterable[str]) -> dict[str, int]:
    """How many rows tables have in PostgreSQL."""
    counts = {}
    for name in names:
        sql = f"SELECT count(*) FROM {table_name(schema, name)}"
        counts[name] = int(target.execute(sql).fetchall()[0][0])
    return counts


def abort(database: Path, url: str | None) -> bool:
    """Take back what was begun: tables, notes and triggers on both sides.

    Where all was carried over and writes are refused here, PostgreSQL keeps what it has, and the
    file can be written again. Tables that migrations had made are empty afterwards.

    Args:
        database: The file.
        url: Where PostgreSQL is; ``None`` where only the file is to be set free.

    Returns:
        Whether there was anything to be taken back.

    Raises:
        PromotionError: PostgreSQL cannot be reached, or has a promotion of another file.
        oxlite.sqlite3.Error: The file cannot be written.
    """
    with _opened(database) as writer:
        here = _state(writer)
        was_there = False
        if url is not None and (here is None or here.stage != _MOVED):
            with connected(url) as target:
                _lock(target)
                was_there = _abort_there(target, here)
        if here is not None:
            _forget_here(writer)
        return was_there or here is not None


def _forget_here(writer: Connection) -> None:
    with in_transaction(writer):
        changes.end_journal(writer)
        changes.lift_refusal(writer)
        writer.execute(f"DROP TABLE IF EXISTS {changes.STATE}")


def _abort_there(target: Target, here: "_State | None") -> bool:
    number = noted.number_there(target)
    if number is None:
        return False
    if here is None or here.number != number:
        raise PromotionError(
            f"PostgreSQL holds a promotion of another file: take that one back, or drop its schema"
            f" {noted.SCHEMA}"
        )
    document = noted.document_there(target)
    schema = document["schema"]
    names = [one["name"] for one in document["tables"]]
    with target.transaction():
        if not document["is_existing"]:
            target.execute(definition.dropped(schema, names))
        else:
            for table, name, _ in document["foreign_keys"]:
                definition.drop_constraint(target, schema, table, name)
            tables = ", ".join(table_name(schema, name) for name in names)
            target.execute(f"TRUNCATE {tables}")
            definition.give_foreign_keys_back(target, schema, document["foreign_keys"])
            for name in names:
                target.execute(
                    f"ALTER TABLE {table_name(schema, name)} DROP COLUMN IF EXISTS {ROW_NUMBER}"
                )
        target.execute(f"DROP SCHEMA {noted.SCHEMA} CASCADE")
    return True


class _Work:
    """A promotion that has begun."""

    def __init__(
        self,
        reader: Connection,
        writer: Connection,
        target: Target,
        found: Noted,
        tell: Tell,
        spent: dict[str, float],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._target = target
        self._noted = found
        self._tell = tell
        self._spent = spent
        self._source = Source(())
        self._version = 0

    def copy(self) -> None:
        """All rows, and then the indexes, of each table that has not got them yet."""
        schema = self._noted.schema
        total = sum(one.rows for one in self._noted.plan.tables)
        before = 0
        for one in self._noted.plan.tables:
            name = one.table.name
            key, copied, is_copied, is_indexed = self._noted.progress[name]
            if not is_copied:
                self._tell(name, before + copied, total)

                def note(
                    after: object, rows: int, is_last: bool, name: str = name, before: int = before
                ) -> None:
                    nonlocal copied
                    assert isinstance(after, tuple)
                    noted.note_part(self._target, name, after, rows, is_last)
                    copied += rows
                    self._tell(name, before + copied, total)

                with _timed(self._spent, "copied"):
                    copy_table(self._reader, self._target, schema, one, noted.key_of(key), note)
            before += copied
            if not is_indexed:
                self._tell(f"{name}: indexes", before, total)
                with _timed(self._spent, "keys made"), self._target.transaction():
                    if not self._noted.is_existing:
                        lost = definition.add_indexes(self._target, schema, one)
                        self._noted.notes += map(_written, lost)
                    noted.note_indexed(self._target, name)
                    noted.note_lost(self._target, self._noted)

    def follow(self) -> None:
        """Carry over what was written since, until little is left."""
        for number in range(_ROUNDS_AT_MOST):
            waiting = changes.length(self._reader, self._noted.plan)
            self._tell("what was written meanwhile", number, 0)
            with self._snapshot():
                upto = self._carry_over(self._reader)
            self._forget(upto)
            if waiting < _FEW_NOTES:
                return

    def verify(self) -> dict[str, int]:
        """Compare both sides, at one moment of the file; how many rows each table has."""
        rows = {}
        total = sum(one.rows for one in self._noted.plan.tables)
        before = 0
        with self._snapshot():
            upto = self._carry_over(self._reader)
            self._make_unique()
            for one in self._noted.plan.tables:
                name = one.table.name
                rows[name] = compare(
                    self._reader,
                    self._target,
                    self._noted.schema,
                    one,
                    lambda done, name=name, before=before: self._tell(  # type: ignore[misc]
                        f"{name}: verified", before + done, total
                    ),
                )
                before += one.rows
            self._source = read_source(self._reader)
            self._version = _schema_version(self._reader)
        self._forget(upto)
        return rows

    def _make_unique(self) -> None:
        """All is of one moment now: what is unique here is so there."""
        if self._noted.is_existing:
            return
        for one in self._noted.plan.tables:
            with _timed(self._spent, "keys made"), self._target.transaction():
                lost = definition.add_unique_indexes(self._target, self._noted.schema, one)
                if lost:
                    self._noted.notes += map(_written, lost)
                    noted.note_lost(self._target, self._noted)

    def end_here(self) -> None:
        """No cut-over: PostgreSQL has what the file had when both were compared."""
        with self._target.transaction():
            self._finish(self._source)
        with in_transaction(self._writer):
            changes.end_journal(self._writer)
            self._writer.execute(f"UPDATE {changes.STATE} SET stage = {_COPIED}")

    def cut_over(self, where: str) -> float:
        """Have writers wait, carry over the rest, and refuse what they write; for how long."""
        self.follow()
        self._tell("cut-over", 0, 0)
        began = time.monotonic()
        with in_transaction(self._writer):
            began = time.monotonic()  # others waited for no more than this
            with self._target.transaction():
                upto = self._carry_over(self._writer)
                if _schema_version(self._writer) != self._version:
                    # VACUUM has perhaps given other numbers to rows that are known by them.
                    raise PromotionError(
                        "the file was vacuumed, or its schema was changed, after both sides were"
                        " compared: nothing was cut over. Run the same command again"
                    )
                self._compare_counts(upto)
                self._finish(read_source(self._writer))
            changes.end_journal(self._writer)
            changes.refuse_writes(self._writer, self._noted.plan, where)
            self._writer.execute(f"UPDATE {changes.STATE} SET stage = {_MOVED}")
        return time.monotonic() - began

    def _compare_counts(self, upto: dict[str, int]) -> None:
        for one in self._noted.plan.tables:
            if one.table.name not in upto:
                continue
            name = identifier(one.table.name)
            (here,) = self._writer.execute(f"SELECT count(*) FROM {name}").fetchone()
            there = noted.set_aside_count(self._target, one.table.name)
            there += _counted(self._target, self._noted.schema, [one.table.name])[one.table.name]
            if there != here:
                raise VerificationDiffers(
                    f"{one.table.name!r} has {here:,} rows in SQLite, and {there:,} in"
                    " PostgreSQL, after what was written last: nothing was cut over. Begin anew"
                    " after --abort"
                )

    def _finish(self, source: Source) -> None:
        """Sequences, foreign keys and checks, in the transaction that is open."""
        schema, plan = self._noted.schema, self._noted.plan
        definition.set_sequences(self._target, schema, plan, source)
        if self._noted.is_existing:
            definition.give_foreign_keys_back(self._target, schema, self._noted.foreign_keys)
        else:
            lost = definition.add_foreign_keys(self._target, schema, plan)
            lost += definition.add_checks(self._target, schema, plan)
            self._noted.notes += map(_written, lost)
        noted.note_lost(self._target, self._noted)

    def _carry_over(self, connection: Connection) -> dict[str, int]:
        """What was noted until now; ``connection`` is in a transaction."""
        self._require_unchanged(connection)
        upto = changes.newest(connection, self._noted.plan)
        with self._target.transaction():
            schema, plan = self._noted.schema, self._noted.plan
            # They would act on what is deleted here. An end that was killed has made them.
            if self._noted.is_existing:
                for table, name, _ in self._noted.foreign_keys:
                    definition.drop_constraint(self._target, schema, table, name)
            else:
                definition.drop_constraints(self._target, schema, plan)
            if upto:
                changes.carry_over(connection, self._target, schema, plan, upto)
        return upto

    def _require_unchanged(self, connection: Connection) -> None:
        """Refuse a migration: what it has made has no place there, and may not be noted."""
        plan = self._noted.plan
        planned = {one.table.name: one.table.declaration for one in plan.tables}
        source = read_declarations(connection)
        for name in planned:
            if source.get(name) != planned[name]:
                raise noted.changed(name)
        left_out = set(self._noted.skipped) | read_left_out(connection).keys()
        for name in source.keys() - planned.keys() - left_out:
            raise PromotionError(
                f"the table {name!r} was made since the promotion began: --abort, and begin anew"
            )
        if not changes.notes_all(connection, plan):
            raise PromotionError(
                "a table was made anew since the promotion began, and what was written into it is"
                " not known: --abort, and begin anew"
            )

    def _forget(self, upto: dict[str, int]) -> None:
        if upto:
            with in_transaction(self._writer):
                changes.forget(self._writer, self._noted.plan, upto)

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        self._reader.execute("BEGIN")
        try:
            yield
        finally:
            self._reader.execute("ROLLBACK")


@dataclass(frozen=True, slots=True)
class _State:
    """What the file knows of its promotion."""

    number: str
    target: str
    stage: int


def _state(connection: Connection) -> _State | None:
    try:
        row = connection.execute(f"SELECT number, target, stage FROM {changes.STATE}").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return None
    return None if row is None else _State(row[0], row[1], row[2])


def _schema_version(connection: Connection) -> int:
    """A number that another one follows with each change to the schema, and with VACUUM."""
    return int(connection.execute("PRAGMA schema_version").fetchone()[0])


def _begin(writer: Connection, target: Target, plan: Plan, settings: Settings, where: str) -> Noted:
    """Note what is written from now on, and make the tables."""
    number = uuid.uuid4().hex
    with in_transaction(writer):
        # Of one that was killed before PostgreSQL knew of it.
        changes.end_journal(writer)
        writer.execute(f"DROP TABLE IF EXISTS {changes.STATE}")
        writer.execute(f"CREATE TABLE {changes.STATE} (number TEXT, target TEXT, stage INT)")
        writer.execute(f"INSERT INTO {changes.STATE} VALUES (?, ?, 0)", (number, where))
        changes.begin_journal(writer, plan)
    try:
        return _begin_there(target, plan, settings, number)
    except Exception as error:
        # What was refused there has not begun; of a lost connection nobody knows.
        if not is_lost(error):
            _forget_here(writer)
        raise


def _begin_there(target: Target, plan: Plan, settings: Settings, number: str) -> Noted:
    with target.transaction():
        notes: list[Note] = []
        foreign_keys: list[tuple[str, str, str]] = []
        if settings.is_existing:
            foreign_keys = definition.take_foreign_keys(target, settings.schema, plan)
            definition.empty(target, settings.schema, plan)
        else:
            _refuse_existing(target, settings.schema, plan)
            plan, notes = definition.create_tables(target, settings.schema, plan)
        progress: dict[str, noted.Progress] = {
            one.table.name: (None, 0, False, False) for one in plan.tables
        }
        found = Noted(
            number,
            settings.schema,
            settings.is_existing,
            sorted(settings.overrides.skipped),
            plan,
            foreign_keys,
            progress,
            [_written(one) for one in notes],
        )
        noted.note(target, found)
    return found


def _planned(
    reader: Connection,
    target: Target,
    source: Source,
    settings: Settings,
    tell: Tell,
) -> Plan:
    there = None
    if settings.is_existing:
        there = definition.types_there(target, settings.schema)
    plan = make_plan(
        reader,
        source,
        overrides=settings.overrides,
        policy=settings.policy,
        there=there,
        tell=tell,
    )
    if not settings.is_existing:
        _refuse_existing(target, settings.schema, plan)
    return plan


def _refuse_existing(target: Target, schema: str, plan: Plan) -> None:
    there = definition.types_there(target, schema)
    taken = [one.table.name for one in plan.tables if one.table.name in there]
    if taken:
        raise PromotionError(
            f"PostgreSQL has a table {taken[0]!r} in the schema {schema!r} already: name another"
            " schema with --schema, or say --existing-tables if migrations have made it"
        )


def _in_the_way(plan: Plan) -> str:
    first = plan.misfits[0]
    return (
        f"{first.count:,} values in {first.table}.{first.column} {first.text}"
        + (f", and {len(plan.misfits) - 1} more columns have such" if plan.misfits[1:] else "")
        + ": say --misfits widen, null or set-aside, or what is to be done in a file of overrides"
    )


def _lock(target: Target) -> None:
    row = target.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
    if row != (True,):
        raise PromotionError(
            "another oxlite promote is at work in that database: wait until it has ended"
        )


def _written(note: Note) -> list[str]:
    return [note.kind, note.table, note.column, note.text]


def _note_of(written: list[str]) -> Note:
    kind, table, column, text = written
    return Note(cast("Literal['lost']", kind), table, column, text)


@contextmanager
def _timed(spent: dict[str, float], what: str) -> Iterator[None]:
    """Add how long a block takes."""
    begun = time.monotonic()
    try:
        yield
    finally:
        spent[what] = spent.get(what, 0.0) + time.monotonic() - begun


@contextmanager
def _opened(database: Path) -> Iterator[Connection]:
    path = database.resolve()
    if not path.is_file():
        raise PromotionError(f"{database} is not there")
    connection = oxlite.connect(
        f"{path.as_uri()}?mode=rw",
        uri=True,
        journal="keep",
        isolation_level=None,
        timeout=_TIMEOUT_SECONDS,
        pragmas=_PRAGMAS,
    )
    try:
        connection.text_factory = _as_text
        register(connection)
        yield connection
    finally:
        connection.close()


def _as_text(raw: bytes) -> str | None:
    """A text; ``None`` for one that is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
