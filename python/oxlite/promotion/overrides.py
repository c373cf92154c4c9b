"""What a file says should be done otherwise than it would be.

::

    [tables.session]
    skip = true

    [tables.note.columns.created]
    type = "timestamptz"
    misfits = "null"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from oxlite.promotion.errors import PromotionError

__all__ = ["MISFITS", "ColumnOverride", "Misfits", "Overrides", "read_overrides"]

Misfits: TypeAlias = Literal["stop", "widen", "null", "set-aside"]
"""What is done about values that do not fit: nothing is begun; the column gets a type that holds
them; they become NULL; their rows are kept in a table of their own."""

MISFITS: Final[tuple[Misfits, ...]] = ("stop", "widen", "null", "set-aside")
"""All of them."""


@dataclass(frozen=True, slots=True)
class ColumnOverride:
    """Of one column; ``None`` where nothing is said."""

    type: str | None = None
    misfits: Misfits | None = None


@dataclass(frozen=True, slots=True)
class Overrides:
    """Of a file.

    Attributes:
        skipped: Tables that are left out.
        columns: By table and column.
    """

    skipped: frozenset[str] = frozenset()
    columns: Mapping[tuple[str, str], ColumnOverride] = field(default_factory=dict)

    def of(self, table: str, column: str) -> ColumnOverride:
        """Of one column."""
        return self.columns.get((table, column), ColumnOverride())

    def check(self, known: Mapping[str, tuple[str, ...]]) -> None:
        """Refuse names that the database does not have.

        Raises:
            PromotionError: There is one.
        """
        for table in {*self.skipped, *(table for table, _ in self.columns)}:
            if table not in known:
                raise PromotionError(f"the overrides name a table {table!r}, which is not there")
        for table, column in self.columns:
            if table not in self.skipped and column not in known[table]:
                raise PromotionError(
                    f"the overrides name a column {column!r} of {table!r}, which is not there"
                )


def read_overrides(path: Path) -> Overrides:
    """Read them.

    Raises:
        PromotionError: It says something that means nothing here.
        OSError: It cannot be read.
    """
    try:
        document = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PromotionError(f"{path} is no TOML: {error}") from None
    _require_keys(path, "the file", document, {"tables"})
    skipped, columns = set(), {}
    for table, said in _mapping(path, "tables", document.get("tables", {})).items():
        where = f"tables.{table}"
        said = _mapping(path, where, said)
        _require_keys(path, where, said, {"skip", "columns"})
        if said.get("skip", False) is True:
            skipped.add(table)
        for column, one in _mapping(path, where, said.get("columns", {})).items():
            inner = f"{where}.columns.{column}"
            one = _mapping(path, inner, one)
            _require_keys(path, inner, one, {"type", "misfits"})
            if not isinstance(one.get("type", ""), str):
                raise PromotionError(f'{path}: {inner}.type is a text, such as "timestamptz"')
            if one.get("misfits", "stop") not in MISFITS:
                choices = ", ".join(MISFITS)
                raise PromotionError(f"{path}: {inner}.misfits is one of {choices}")
            misfits = cast("Misfits | None", one.get("misfits"))
            columns[table, column] = ColumnOverride(one.get("type"), misfits)
    return Overrides(frozenset(skipped), columns)


def _mapping(path: Path, where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PromotionError(f"{path}: {where} is a table of TOML's")
    return value


def _require_keys(path: Path, where: str, said: Mapping[str, Any], known: set[str]) -> None:
    for key in said:
        if key not in known:
            raise PromotionError(f"{path}: {where} has {key!r}; known are {', '.join(known)}")
