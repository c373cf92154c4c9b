"""A sample in Prometheus's text format, for node_exporter's textfile collector.

Sources: https://prometheus.io/docs/instrumenting/exposition_formats/ and, for the names,
https://prometheus.io/docs/practices/naming/: base units, and counters that end in ``_total``.

Invariant: no statement and no command line is in it, since it is kept in files.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from oxlite.operations.top.sample import GAUGES, Sample

__all__ = ["as_prometheus"]

_TOLD: Final = {
    "admissions": "Writers that were let through to the write lock.",
    "thread_waits": "Times that a thread stood in line behind others of its process.",
    "process_waits": "Times that the process stood in the queue behind others.",
    "queue_skips": "Times that it wrote before its turn had come.",
    "turns": "Turns that the process has had.",
    "commits": "Transactions that the process has committed.",
    "batches": "COMMITs that several writes have shared.",
    "batched_writes": "Writes in them.",
    "statements": "Statements that were run.",
    "checkpoints": "Checkpoints that were made.",
    "checkpoints_incomplete": "Checkpoints that could not copy all frames of the WAL.",
    "checkpoint_waits": "Times that a checkpoint waited for readers.",
    "checkpoint_errors": "Checkpoints that have failed.",
}
"""What a process of Oxlite has counted since it began to use the file."""

_Labels = Mapping[str, str]
_Series = list[tuple[_Labels, float]]


def as_prometheus(sample: Sample) -> str:
    """The lines, of which the last one ends as well. What is not known is left out."""
    lines = []
    for name, kind, text, series in _metrics(sample):
        if series:
            lines += [f"# HELP {name} {_escaped_text(text)}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{{{_labels(labels)}}} {_number(value)}" for labels, value in series]
    return "".join(f"{line}\n" for line in lines)


def _metrics(sample: Sample) -> Iterator[tuple[str, str, str, _Series]]:
    database = {"database": sample.path}

    def one(value: float | None) -> _Series:
        return [] if value is None else [(database, value)]

    def gauge(name: str, text: str, value: float | None) -> tuple[str, str, str, _Series]:
        return f"oxlite_{name}", "gauge", text, one(value)

    def counter(name: str, text: str, value: float | None) -> tuple[str, str, str, _Series]:
        return f"oxlite_{name}_total", "counter", text, one(value)

    wal, line, writer = sample.wal, sample.line, sample.writer
    yield gauge("database_size_bytes", "Size of the database's file.", sample.size_bytes)
    yield counter(
        "database_commits",
        "Transactions committed by whatever SQLite; begins anew with the WAL's index.",
        sample.commits,
    )
    if wal is not None:
        yield gauge("wal_size_bytes", "Size of the WAL's file.", wal.size_bytes)
        yield gauge("wal_frames", "Valid frames of the WAL.", wal.frames)
        yield gauge(
            "wal_checkpointed_frames",
            "Frames of the WAL that are in the database.",
            wal.checkpointed_frames,
        )
        yield gauge("wal_page_size_bytes", "Size of a page.", wal.page_bytes)
        yield counter("wal_restarts", "Times that the WAL was begun anew.", wal.begun_anew)
    yield gauge("write_lock_held", "Whether somebody has the write lock.", float(bool(writer)))
    yield gauge(
        "write_lock_held_seconds",
        "For how long it is held; 0 if it is not.",
        writer.held_seconds if writer else 0,
    )
    yield gauge("waiting_processes", "Processes in line for the write lock.", line.processes)
    yield gauge("waiting_threads", "Threads in line in processes of Oxlite.", line.threads)
    yield gauge("readers", "Snapshots that are read.", len(sample.readers))
    yield gauge(
        "oldest_snapshot_seconds",
        "Age of the oldest snapshot, at least; 0 if nothing is newer than any.",
        max((reader.age_seconds or 0 for reader in sample.readers), default=0),
    )
    yield gauge(
        "oldest_snapshot_frames",
        "Frames of the WAL that are newer than the oldest snapshot.",
        max((reader.frames_behind or 0 for reader in sample.readers), default=0),
    )
    if sample.processes is not None:
        yield gauge("processes", "Processes that have it open.", len(sample.processes))
        yield from _of_processes(sample, database)


def _of_processes(sample: Sample, database: _Labels) -> Iterator[tuple[str, str, str, _Series]]:
    for name, text in _TOLD.items():
        sums: dict[tuple[str, str], float] = {}
        for process in sample.processes or ():
            if name in process.counters and name not in GAUGES:
                # Two of two containers may have one number.
                key = str(process.process_id), process.pid_namespace
                sums[key] = sums.get(key, 0) + process.counters[name]
        series: _Series = [
            ({**database, "process_id": number, "pid_namespace": namespace}, value)
            for (number, namespace), value in sums.items()
        ]
        yield f"oxlite_process_{name}_total", "counter", text, series


def _labels(labels: _Labels) -> str:
    return ",".join(f'{name}="{_escaped_value(value)}"' for name, value in labels.items())


def _escaped_text(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escaped_value(text: str) -> str:
    return _escaped_text(text).replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
