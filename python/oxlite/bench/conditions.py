"""What a run was made on, and in what the conditions of two runs differ.

Two runs are made under equal conditions if all is equal but Oxlite itself: the parameters and the
work, the machine, the Python, the file system, the settings, and the versions of other drivers.
"""

from collections.abc import Mapping
from typing import Any

from oxlite.bench.harness.model import JsonObject, Result, Row

SUBJECT = "oxlite"
"""The driver that changes from run to run."""

TRANSIENT = frozenset({"data_version", "freelist_count", "page_count"})
"""Pragmas that count what has happened, so that no two runs agree on them."""


def common_rows(old: Result, new: Result) -> list[tuple[Row, Row]]:
    """The rows that both runs have measured."""
    pairs = ((row, new.row(row.label)) for row in old.rows if row.failure is None)
    return [(before, after) for before, after in pairs if after is not None]


def differences(old: Result, new: Result) -> list[str]:
    """In which conditions two runs differ, in words; nothing about Oxlite itself."""
    found = [
        f"parameter {name} ({before} and {after})"
        for name, before, after in _unequal(plain(old.parameters), plain(new.parameters))
    ]
    if not found and old.work_digest != new.work_digest:
        found.append("the work (its digests)")
    facts, others = (conditions(result) for result in (old, new))
    found += [f"{name} ({before} and {after})" for name, before, after in _unequal(facts, others)]
    for before, after in common_rows(old, new):
        found += _row_differences(before, after)
    return list(dict.fromkeys(found))


def plain(parameters: Mapping[str, Any]) -> JsonObject:
    """Parameters as they are read back from a file: JSON knows no tuples."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in parameters.items()}


def _unequal(before: JsonObject, after: JsonObject) -> list[tuple[str, Any, Any]]:
    names = dict.fromkeys([*before, *after])
    return [
        (name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def conditions(result: Result) -> JsonObject:
    """What a run was made on, by names for a reader."""
    for row in result.rows:
        if row.environment is not None:
            machine = row.environment["machine"]
            cpu = machine["cpu"]
            files, system = machine["file_system"], machine["operating_system"]
            return {
                "processor": cpu["model"],
                "processors": cpu["usable_cores"],
                "memory": machine["memory_total_bytes"],
                "kernel": f"{system['name']} {system['kernel']}",
                "file system": files["type"],
                "mount options": ",".join(files["options"]),
            }
    return {}


def _row_differences(before: Row, after: Row) -> list[str]:
    first, second = before.environment or {}, after.environment or {}
    if not first or not second:
        return []
    found = []
    pythons = [
        (one["machine"]["python"]["version"], one["machine"]["python"]["gil_enabled"])
        for one in (first, second)
    ]
    if pythons[0] != pythons[1]:
        found.append(f"Python ({pythons[0][0]} and {pythons[1][0]})")
    driver = before.scenario.driver
    if driver != SUBJECT:
        versions = [_versions(row) for row in (before, after)]
        found += [f"{driver}'s {n} ({a} and {b})" for n, a, b in _unequal(versions[0], versions[1])]
    pragmas = [_pragmas(one) for one in (first, second)]
    found += [
        f"PRAGMA {name} of {before.label} ({a} and {b})"
        for name, a, b in _unequal(pragmas[0], pragmas[1])
    ]
    return found


def _pragmas(environment: JsonObject) -> JsonObject:
    pragmas = (environment.get("connection") or {}).get("pragmas") or {}
    return {name: value for name, value in pragmas.items() if name not in TRANSIENT}


def _versions(row: Row) -> JsonObject:
    """The driver's version and its SQLite's, as the samples say."""
    return dict(row.samples[0].detail.get("versions") or {}) if row.samples else {}


def subject(old: Result, new: Result) -> list[str]:
    """What of Oxlite itself differs, in words."""
    found: dict[str, None] = {}
    for before, after in common_rows(old, new):
        if before.scenario.driver == SUBJECT:
            for name, a, b in _unequal(_versions(before), _versions(after)):
                found[f"{SUBJECT}'s {name}: {a}, then {b}"] = None
            revisions = [_revision(row) for row in (before, after)]
            if revisions[0] != revisions[1]:
                found[f"revision: {revisions[0]}, then {revisions[1]}"] = None
    return list(found)


def _revision(row: Row) -> str:
    git = ((row.environment or {}).get("machine") or {}).get("git") or {}
    revision = str(git.get("revision") or "unknown")[:12]
    return f"{revision} with changes" if git.get("dirty") else revision
