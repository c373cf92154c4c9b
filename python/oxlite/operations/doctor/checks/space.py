"""The planner's statistics, and room that is not used."""

from collections.abc import Iterator
from typing import Final

from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.schema import Table
from oxlite.operations.doctor.subject import Inside
from oxlite.operations.verification import quoted

__all__ = ["CHECKS", "ILLNESSES"]

_NONE: Final = Illness(
    "statistics-missing",
    "warning",
    "The query planner guesses how many rows an index finds, and may choose the wrong one.",
    is_safe=True,
)
_STALE: Final = Illness(
    "statistics-stale",
    "warning",
    "The query planner takes the table for a small one, and may read all of it.",
    is_safe=True,
)
_FREE: Final = Illness(
    "free-pages",
    "warning",
    "The file keeps the pages of deleted rows: backups and copies carry them. New rows use them"
    " first.",
)
_HALF_EMPTY: Final = Illness(
    "half-empty-pages",
    "hint",
    "Scans read, and the cache keeps, pages of which the greater part is empty.",
)

_ANALYZE: Final = "PRAGMA analysis_limit = 1000; ANALYZE;"
_MANY_ROWS: Final = 10_000
_READ_AT_MOST: Final = 1_000_000
_STALE_FACTOR: Final = 10
_FREE_SHARE: Final = 0.25
_UNUSED_SHARE: Final = 0.5
_MANY_BYTES: Final = 8 << 20


def _check_statistics(inside: Inside) -> Iterator[Finding]:
    """Whether the planner knows how large tables are: https://sqlite.org/lang_analyze.html."""
    content = inside.content
    has = content.value("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'")
    known: dict[str, int] = {}
    if has:
        for table, stat in content.rows("SELECT tbl, stat FROM sqlite_stat1"):
            first = str(stat).partition(" ")[0]
            if first.isdigit():
                known[str(table).lower()] = max(known.get(str(table).lower(), 0), int(first))
    without, stale = [], []
    for name, table in inside.schema.tables.items():
        if not table.indexes:
            continue  # there is nothing to choose
        if name not in known:
            if _rows(inside, table, _MANY_ROWS) >= _MANY_ROWS:
                without.append(table.name)
        else:
            grown = max(_MANY_ROWS, _STALE_FACTOR * known[name])
            is_cheap = grown <= _READ_AT_MOST or not content.is_quick
            if is_cheap and _rows(inside, table, grown) >= grown:
                stale.append(table.name)
    if without:
        yield _NONE.found(
            f"No statistics of tables with {_MANY_ROWS:,} rows or more: {_listed(without)}.",
            _ANALYZE,
        )
    if stale:
        yield _STALE.found(
            f"Ten times as many rows as the statistics say, or more: {_listed(stale)}.", _ANALYZE
        )


def _check_free_pages(inside: Inside) -> Iterator[Finding]:
    """How much of the file is free: https://sqlite.org/pragma.html#pragma_freelist_count."""
    content = inside.content
    size = content.value("PRAGMA page_size")
    free, pages = content.value("PRAGMA freelist_count"), content.value("PRAGMA page_count")
    if free * size >= _MANY_BYTES and free >= _FREE_SHARE * pages:
        yield _FREE.found(
            f"{free:,} of {pages:,} pages are free ({free * size >> 20:,} MiB).",
            "VACUUM;  -- it needs twice the room, and keeps writers waiting as long as it takes",
        )


def _check_pages(inside: Inside) -> Iterator[Finding]:
    """How full pages are, in a full examination: https://sqlite.org/dbstat.html."""
    if inside.content.is_quick:
        return
    unused, size = inside.content.rows("SELECT sum(unused), sum(pgsize) FROM dbstat")[0]
    if unused and unused >= _MANY_BYTES and unused >= _UNUSED_SHARE * size:
        yield _HALF_EMPTY.found(
            f"{unused >> 20:,} of {size >> 20:,} MiB in use are empty.",
            "VACUUM;  -- it needs twice the room, and keeps writers waiting as long as it takes",
        )


def _rows(inside: Inside, table: Table, at_most: int) -> int:
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table.name)} LIMIT ?)"
    return int(inside.content.value(sql, at_most))


def _listed(names: list[str]) -> str:
    more = len(names) - 5
    return ", ".join(names[:5]) + (f" and {more:,} more" if more > 0 else "")


CHECKS: Final = (_check_statistics, _check_free_pages, _check_pages)

ILLNESSES: Final = (_NONE, _STALE, _FREE, _HALF_EMPTY)
