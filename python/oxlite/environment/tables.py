"""The environment report for a terminal.

Everything is laid out from the report alone, so one read back from a result
file looks like a fresh one. Pragmas and compile options flow into as many
columns as the terminal has room for.

Invariant: values are shown as text, never interpreted as rich's markup, nor obeyed by the
terminal: names of files and what a database or a stored report says are foreign text.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from oxlite import harmless

__all__ = ["tables"]

# What the numbers mean that SQLite answers with (https://sqlite.org/pragma.html).
_WORDS: dict[str, dict[int, str]] = {
    "auto_vacuum": {0: "NONE", 1: "FULL", 2: "INCREMENTAL"},
    "secure_delete": {0: "OFF", 1: "ON", 2: "FAST"},
    "synchronous": {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"},
    "temp_store": {0: "DEFAULT", 1: "FILE", 2: "MEMORY"},
}
_BYTES = frozenset(
    {"hard_heap_limit", "journal_size_limit", "mmap_size", "page_size", "soft_heap_limit"}
)


def tables(report: Mapping[str, Any]) -> RenderableType:
    """The report as one renderable.

    Args:
        report: an environment report, fresh or read back from JSON.
    """
    parts: list[RenderableType] = [
        _pairs("Connection", _connection_rows(report)),
        _pairs("Machine", _machine_rows(report["machine"])),
        _fsync(report["fsync"]),
    ]
    if report.get("profile"):
        parts.append(_profile(report["profile"]))
    if report.get("shared_commit"):
        parts.append(_pairs("Commits that share a sync", _shared_commit(report["shared_commit"])))
    parts += [
        _pragmas(report["connection"]),
        _compile_options(report["connection"]["compile_options"]),
    ]
    notes = [*report.get("database", {}).get("notes", ()), *_warnings(report)]
    if notes:
        parts.append(Group(_heading("Notes"), *(_indented(_text(f"• {note}")) for note in notes)))
    return Group(*(part for one in parts for part in (one, Text())))


def _heading(title: str) -> Text:
    return _text(title, style="bold")


def _text(value: object, style: str = "") -> Text:
    return Text(harmless(str(value)), style=style)


def _indented(content: RenderableType) -> Padding:
    return Padding(content, (0, 0, 0, 2), expand=False)


def _pairs(title: str, rows: Iterable[tuple[str, str]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(_text(name), _text(value))
    return Group(_heading(title), _indented(grid))


def _connection_rows(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    connection = report["connection"]
    rows = [
        ("driver", report["driver"]),
        ("SQLite", f"{connection['sqlite_version']} ({connection['sqlite_source_id']})"),
        ("threads", connection["threadsafe_mode"] or "unknown"),
        ("SQLCipher", connection["sqlcipher_version"] or "no"),
    ]
    if "database" in report:
        database = report["database"]
        rows.insert(0, ("database", f"{database['name']} ({database['access']})"))
    return rows


def _machine_rows(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    cpu, system, python = machine["cpu"], machine["operating_system"], machine["python"]
    mount = machine["file_system"]
    cores = f"{cpu['logical_cores']} logical, {cpu['physical_cores'] or '?'} physical"
    if cpu["usable_cores"] != cpu["logical_cores"]:
        cores += f", {cpu['usable_cores']} usable by this process"
    if cpu["quota_cores"]:
        cores += f", limited to {cpu['quota_cores']:g}"
    gil = "with the GIL" if python["gil_enabled"] else "without the GIL"
    if python["free_threaded_build"]:
        gil = f"free-threaded build, running {gil}"
    git = machine["git"]
    rows = [
        ("processor", f"{cpu['model'] or 'unknown'} ({cpu['architecture']})"),
        ("cores", cores),
        ("memory", _bytes(machine["memory_total_bytes"])),
        ("system", f"{system['name']} {system['kernel']}, {system['distribution'] or 'unknown'}"),
        ("file system", f"{mount['type'] or 'unknown'} on {mount['mount_point'] or 'unknown'}"),
        ("mount options", ",".join(mount["options"]) or "none"),
        ("Python", f"{python['implementation']} {python['version']}, {gil}"),
        ("Python build", f"{python['build']}, {python['compiler']}"),
    ]
    if git:
        rows.append(("source", git["revision"] + (", with changes" if git["dirty"] else "")))
    return [*rows, ("date", machine["date"])]


def _fsync(fsync: Mapping[str, Any]) -> RenderableType:
    if not fsync["measured"]:
        return _pairs("Cost of a sync", [("not measured", fsync["reason"])])
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("call", "after"):
        table.add_column(name)
    for name in ("median µs", "min µs", "max µs", "samples"):
        table.add_column(name, justify="right")
    for series in fsync["series"]:
        figures = (f"{series[key]:,.0f}" for key in ("median_us", "min_us", "max_us", "samples"))
        write = f"{series['write']} {fsync['block_bytes']} bytes"
        table.add_row(_text(series["call"]), _text(write), *figures)
    return Group(_heading("Cost of a sync"), _indented(table))


def _profile(profile: Mapping[str, Any]) -> RenderableType:
    title = _heading(f"Profile {profile['name']}")
    if not profile["settings"]:
        return Group(title, _indented(Text("sets no pragma: SQLite's own defaults")))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("pragma", "requested", "effective", "skipped because"):
        table.add_column(name, overflow="fold")
    for setting in profile["settings"]:
        table.add_row(
            _text(setting["name"]),
            _text(setting["requested"]),
            _text(setting["effective"]),
            _text(setting["skipped"] or ""),
            style="yellow" if setting["skipped"] else "",
        )
    return Group(title, _indented(table))


def _shared_commit(group: Mapping[str, Any]) -> list[tuple[str, str]]:
    members, commits, syncs = group["members"], group["commits"], group["syncs_led"]
    waiting = commits - group["commits_durable"]
    each = f", {commits / syncs:.1f} commits each" if syncs else ""
    return [
        ("processes", "unknown" if members is None else f"{members:,}" if members else "none now"),
        ("commits", f"{commits:,}" + (f", {waiting:,} not yet durable" if waiting else "")),
        ("syncs for all", f"{syncs:,}{each}"),
        ("leaders lost", f"{group['leaders_lost']:,}"),
        ("stopped", group["poisoned"] or "no"),
    ]


def _pragmas(connection: Mapping[str, Any]) -> RenderableType:
    values = dict(connection["pragmas"])
    shown = {name: _value(name, value) for name, value in values.items()}
    shown.update(dict.fromkeys(connection["pragmas_not_read"], "not run (--check)"))
    items = [
        Text.assemble(
            _text(name, "dim"), " ", _text(text, "red" if _is_problem(values.get(name)) else "")
        )
        for name, text in sorted(shown.items())
    ]
    flowing = Columns(items, padding=(0, 2), equal=True, column_first=True)
    return Group(_heading("Pragmas in force on this connection"), _indented(flowing))


def _compile_options(options: Iterable[str]) -> RenderableType:
    return Group(_heading("Compile options of this SQLite"), _indented(_text(", ".join(options))))


def _value(name: str, value: object) -> str:
    if value is None:
        return "no value"
    if isinstance(value, list):
        return "ok" if value == ["ok"] else f"{len(value)} problems"
    if isinstance(value, int):
        if value in _WORDS.get(name, {}):
            return f"{value} {_WORDS[name][value]}"
        if name in _BYTES and value > 0:
            return _bytes(value)
    return str(value)


def _is_problem(value: object) -> bool:
    return isinstance(value, list) and value != ["ok"]


def _bytes(count: int) -> str:
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    power = min(max(count.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{count / 1024**power:.1f}".removesuffix(".0") + f" {units[power]}"


def _warnings(report: Mapping[str, Any]) -> list[str]:
    mount = report["machine"]["file_system"]
    warnings = []
    if mount["network"]:
        warnings.append(
            f"{mount['type']} is a network file system: SQLite's locks and its write-ahead log"
            " are not safe across machines."
        )
    if mount["volatile"]:
        warnings.append(
            f"{mount['type']} lives in memory: a sync costs nothing here and a power cut loses"
            " everything."
        )
    problems = [
        f"{name}: {line}"
        for name, value in report["connection"]["pragmas"].items()
        if _is_problem(value)
        for line in value
    ]
    return warnings + problems
