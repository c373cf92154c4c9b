"""What a driver can do, asked of the driver itself: a new feature is fuzzed once it exists."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

Features = dict[str, Any]


def _detect_types(driver: ModuleType) -> bool:
    driver.connect(":memory:", detect_types=driver.PARSE_DECLTYPES).close()
    return True


def _adapters(driver: ModuleType) -> bool:
    class Own:
        pass

    driver.register_adapter(Own, lambda own: 7)
    connection = driver.connect(":memory:")
    answer: tuple[int] = connection.execute("SELECT ?", (Own(),)).fetchone()
    connection.close()
    return answer == (7,)


def _converters(driver: ModuleType) -> bool:
    driver.register_converter("fuzz_probe", lambda text: text)
    return _detect_types(driver)


def _iterdump(driver: ModuleType) -> bool:
    connection = driver.connect(":memory:")
    dumped = list(connection.iterdump())
    connection.close()
    return bool(dumped)


def _iterdump_filter(driver: ModuleType) -> bool:
    connection = driver.connect(":memory:")
    list(connection.iterdump(filter="t%"))
    connection.close()
    return True


def _autocommit(driver: ModuleType) -> bool:
    connection = driver.connect(":memory:", autocommit=True)
    answer: bool = connection.autocommit
    connection.close()
    return answer is True


def _call(driver: ModuleType) -> bool:
    connection = driver.connect(":memory:")
    connection("SELECT 1")
    connection.close()
    return True


def _load_extension(driver: ModuleType) -> bool:
    connection = driver.connect(":memory:")
    connection.enable_load_extension(False)
    connection.close()
    return True


PROBES: dict[str, Callable[[ModuleType], bool]] = {
    "detect_types": _detect_types,
    "adapters": _adapters,
    "converters": _converters,
    "iterdump": _iterdump,
    "iterdump_filter": _iterdump_filter,
    "autocommit": _autocommit,
    "call": _call,
    "load_extension": _load_extension,
    "adapt": lambda driver: driver.adapt(1) == 1,
    "complete_statement": lambda driver: bool(driver.complete_statement("SELECT 1;")),
    "constants": lambda driver: driver.SQLITE_DENY == 1 and driver.SQLITE_LIMIT_LENGTH == 0,
    "config": lambda driver: hasattr(driver.Connection, "getconfig"),
}


def probe(driver: ModuleType) -> Features:
    """The driver's features, its SQLite and its Python."""
    features: Features = {}
    for name, asks in PROBES.items():
        try:
            features[name] = asks(driver)
        except Exception:
            features[name] = False
    features["sqlite_version"] = driver.sqlite_version
    return features


def shared(first: Features, second: Features) -> frozenset[str]:
    """The names of what both can do."""
    return frozenset(name for name in PROBES if first[name] and second[name])
