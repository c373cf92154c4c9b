"""The native module's declarations; a test holds them against the built module."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, Self, SupportsIndex, final, overload

__version__: str
sqlite_version: str
sqlite_source_id: str

type _IsolationLevel = Literal["", "DEFERRED", "IMMEDIATE", "EXCLUSIVE"]
type _Path = str | bytes | PathLike[str] | PathLike[bytes]

class _NamedParameters(Protocol):
    def __getitem__(self, name: str, /) -> Any: ...

type _Parameters = Sequence[Any] | Mapping[str, Any] | _NamedParameters

def profiles() -> dict[str, dict[str, int | str]]: ...
def sqlite_threadsafe() -> int: ...
def connect(
    database: _Path,
    timeout: float = 5.0,
    detect_types: int = 0,
    isolation_level: _IsolationLevel | None = "",
    check_same_thread: bool = True,
    factory: type[Connection] | None = None,
    cached_statements: int = 128,
    uri: bool = False,
    *,
    profile: str = "stock",
    pragmas: dict[str, bool | int | str] | None = None,
    journal: Literal["profile", "keep"] = "profile",
    busy: Literal["none", "backoff", "fair"] | None = None,
    allow_no_locking: bool = False,
) -> Connection: ...

class Warning(Exception): ...  # noqa: A001

class Error(Exception):
    sqlite_errorcode: int
    sqlite_errorname: str

class InterfaceError(Error): ...
class DatabaseError(Error): ...
class InternalError(DatabaseError): ...
class OperationalError(DatabaseError): ...
class ProgrammingError(DatabaseError): ...
class IntegrityError(DatabaseError): ...
class DataError(DatabaseError): ...
class NotSupportedError(DatabaseError): ...
