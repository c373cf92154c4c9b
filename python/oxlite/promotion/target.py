"""The PostgreSQL that data goes to: how it is reached, and what it has.

Invariants:
- A password is in no message.
- What is lost of a connection is an error that says to run the same command again: nothing that was
  acknowledged is sent twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from oxlite.promotion.errors import PromotionError

if TYPE_CHECKING:
    import psycopg

__all__ = ["Target", "connected", "is_lost", "shown"]

Target: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"

_CONNECT_SECONDS: Final = 10
_LEAST_VERSION: Final = 130000
"""``trim_scale`` and ``DROP DATABASE … WITH (FORCE)`` are there since 13."""


@contextmanager
def connected(url: str) -> Iterator[Target]:
    """A connection for the length of a block, in which each statement is a transaction of its own.

    Raises:
        PromotionError: It cannot be reached, or is not what is needed; it was lost in the block.
    """
    psycopg = _psycopg()
    if not url.startswith(("postgresql://", "postgres://")):
        raise PromotionError(
            f"{shown(url)!r} is no URL of PostgreSQL's: postgresql://user@host/database"
        )
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name="oxlite promote",
            options="-c statement_timeout=0 -c idle_in_transaction_session_timeout=0",
        )
    except psycopg.Error as error:
        raise PromotionError(f"{shown(url)} cannot be reached: {_reason(error)}") from None
    try:
        with connection:
            _check(connection)
            yield connection
    except psycopg.Error as error:
        if not is_lost(error):
            raise PromotionError(f"{shown(url)}: {_reason(error)}{_advice(error)}") from error
        raise PromotionError(
            f"the connection to {shown(url)} was lost ({_reason(error)}): run the same command"
            " again, and it goes on where it was"
        ) from error


def is_lost(error: Exception) -> bool:
    """Whether an error says nothing against what was asked, and the same may succeed later."""
    import psycopg

    # Class 54 are limits, such as how long an entry of an index may be.
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "")[:2] != "54"


def _advice(error: Exception) -> str:
    import psycopg

    is_about_rights = isinstance(error, psycopg.errors.InsufficientPrivilege)
    return ": grant it, or use the owner" if is_about_rights else ""


def _psycopg() -> ModuleType:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise PromotionError(
            "PostgreSQL is reached by psycopg: pip install 'oxlite[postgresql]'"
        ) from None
    return psycopg


def _check(connection: Target) -> None:
    if connection.info.server_version < _LEAST_VERSION:
        raise PromotionError(
            f"PostgreSQL {connection.info.server_version // 10000} is too old: 13 or later"
        )
    # A query would answer in bytes where the encoding is SQL_ASCII.
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise PromotionError(
            f"the database has the encoding {encoding}, and SQLite's texts are"
            " UTF-8: make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
        )
    connection.execute("SET client_encoding = 'UTF8'")
    # As those texts are written that are compared.
    connection.execute("SET datestyle = 'ISO, YMD'")
    connection.execute("SET intervalstyle = 'postgres'")
    connection.execute("SET timezone = 'UTC'")
    connection.execute("SET standard_conforming_strings = on")


def shown(url: str) -> str:
    """A URL without its password."""
    before, at, host = url.rpartition("@")
    scheme, slashes, user = before.partition("://")
    name = user.partition(":")[0]
    place = host.partition("?")[0]
    return f"{scheme}{slashes}{name}{at}{place}" if at else place


def _reason(error: Exception) -> str:
    diagnosis = getattr(error, "diag", None)
    primary = getattr(diagnosis, "message_primary", None)
    detail = getattr(diagnosis, "message_detail", None)
    text = " ".join(str(primary or error).split())
    return f"{text} ({detail})" if detail else text
