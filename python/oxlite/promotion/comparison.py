"""Whether PostgreSQL has what the file has: counts, and a checksum of each table on either side.

A row's checksum is the first half of the MD5 of its values; a table's is the sum of those, so that
neither order matters nor a row that is there twice goes unseen. PostgreSQL computes its own from
what it stores.
"""

import hashlib
import struct
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from oxlite.promotion.errors import VerificationDiffers
from oxlite.promotion.names import identifier, table_name
from oxlite.promotion.noted import set_aside_count
from oxlite.promotion.plan import TablePlan
from oxlite.promotion.rows import compared_here, compared_there
from oxlite.promotion.target import Target
from oxlite.sqlite3 import Connection

__all__ = ["compare"]

_ROWS_AT_ONCE: Final = 1000
_SHOWN: Final = 3
_SHOWN_CHARACTERS: Final = 120
_SUMMED: Final = "sum(('x' || left({md5}, 16))::bit(64)::bigint::numeric)"


def compare(
    connection: Connection,
    target: Target,
    schema: str,
    plan: TablePlan,
    tell: Callable[[int], object],
) -> int:
    """Compare a table on both sides; both are of one moment, and nobody writes there.

    Args:
        connection: In a transaction.
        target: Where the copy is.
        schema: Of the table there.
        plan: What became of it.
        tell: Is called with how many rows were read here.

    Returns:
        How many rows there are.

    Raises:
        VerificationDiffers: They are not the same; the message says which rows.
    """
    name = table_name(schema, plan.table.name)
    md5 = f"md5({compared_there(plan)})"
    with ThreadPoolExecutor(1) as beside:  # PostgreSQL counts while this side does
        asked = beside.submit(
            lambda: target.execute(
                f"SELECT count(*), coalesce({_SUMMED.format(md5=md5)}, 0) FROM {name}"
            ).fetchone()
        )
        count, total, set_aside = _sum(connection, plan, tell)
        row = asked.result()
    assert row is not None
    if (count, total) != (int(row[0]), int(row[1])):
        raise VerificationDiffers(
            f"{plan.table.name!r} is not the same: {count:,} rows in SQLite, {row[0]:,} in"
            f" PostgreSQL; {_differences(connection, target, name, plan)}. Begin anew after"
            " --abort"
        )
    kept = set_aside_count(target, plan.table.name)
    if kept != set_aside:
        raise VerificationDiffers(
            f"of {plan.table.name!r} {set_aside:,} rows do not fit, and {kept:,} were set aside:"
            " begin anew after --abort"
        )
    return count


def _sum(
    connection: Connection, plan: TablePlan, tell: Callable[[int], object]
) -> tuple[int, int, int]:
    """How many rows fit, the sum of their checksums, and how many do not."""
    count = total = set_aside = 0
    rows = connection.execute(f"SELECT {compared_here(plan)} FROM {identifier(plan.table.name)}")
    digests: list[bytes] = []
    for (compared,) in rows:
        if compared is None:
            set_aside += 1
        else:
            digests.append(hashlib.md5(compared, usedforsecurity=False).digest())
        if len(digests) == _ROWS_AT_ONCE:
            count, total = count + len(digests), total + _sum_of(digests)
            digests.clear()
            tell(count + set_aside)
    count, total = count + len(digests), total + _sum_of(digests)
    tell(count + set_aside)
    return count, total, set_aside


def _sum_of(digests: list[bytes]) -> int:
    """The sum of their first halves."""
    return sum(struct.unpack(f">{'q8x' * len(digests)}", b"".join(digests)))


def _differences(connection: Connection, target: Target, name: str, plan: TablePlan) -> str:
    """Which rows are on one side alone, in words: looked for in one of 256 parts at a time."""
    md5 = f"md5({compared_there(plan)})"
    there: dict[str, tuple[int, int]] = {
        part: (int(count), int(total))
        for part, count, total in target.execute(
            f"SELECT left({md5}, 2), count(*), {_SUMMED.format(md5=md5)} FROM {name} GROUP BY 1"
        )
    }
    here: dict[str, tuple[int, int]] = {}
    every = f"SELECT {compared_here(plan)} FROM {identifier(plan.table.name)}"
    for (compared,) in connection.execute(every):
        if compared is not None:
            digest = hashlib.md5(compared, usedforsecurity=False).digest()
            part = digest[:1].hex()
            count, total = here.get(part, (0, 0))
            here[part] = (count + 1, total + _sum_of([digest]))
    said: list[str] = []
    for part in sorted(there.keys() | here.keys()):
        if there.get(part) == here.get(part) or len(said) >= _SHOWN:
            continue
        ours: dict[bytes, int] = {}
        for (compared,) in connection.execute(every):
            if compared is not None and _part(compared) == part:
                ours[compared] = ours.get(compared, 0) + 1
        for (text,) in target.execute(
            f"SELECT {compared_there(plan)} FROM {name} WHERE left({md5}, 2) = '{part}'"
        ):
            compared = text.encode()
            ours[compared] = ours.get(compared, 0) - 1
        said += [_in_words(compared, number) for compared, number in ours.items() if number]
    return "; ".join(said[:_SHOWN])


def _part(compared: bytes) -> str:
    return hashlib.md5(compared, usedforsecurity=False).hexdigest()[:2]


def _in_words(compared: bytes, number: int) -> str:
    values = compared.decode(errors="replace").replace("\x1f", " | ").replace("\x1e", "NULL")
    if len(values) > _SHOWN_CHARACTERS:
        values = values[:_SHOWN_CHARACTERS] + "…"
    return f"{'SQLite' if number > 0 else 'PostgreSQL'} alone has ({values})"
