"""``python -m tests.soak --minutes 10``: the log beside each kind of reader, and what came of it.

Writes ``docs/evidence/wal.md``; the exit code is 1 where the bound was neither kept nor its breach
told.
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from tests.soak.wal import CHECKPOINT_SECONDS, KINDS, WRITERS, Outcome, soak

import oxlite

EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "wal.md"
LIMIT_BYTES = 64 << 20


def mebibytes(size: int) -> str:
    """A size in words."""
    return f"{size / (1 << 20):,.1f} MiB"


def is_kept(outcome: Outcome) -> bool:
    """Whether the log stayed within its bound, or it was told why not."""
    return not outcome.errors and (
        outcome.largest_bytes <= outcome.bound_bytes or outcome.names > 0
    )


def table(outcomes: list[Outcome]) -> str:
    """The table, as Markdown."""
    lines = [
        "| readers | writes/s | longest write | largest log | at the end | checkpoints |"
        " incomplete | waits | failed | readers named | bound |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for one in outcomes:
        is_below = one.largest_bytes <= one.bound_bytes
        verdict = "kept" if is_below else "passed, and told" if one.names else "passed"
        cells = [
            one.readers.name,
            f"{one.writes / one.seconds:,.0f}",
            f"{one.longest_write_seconds * 1000:,.0f} ms",
            mebibytes(one.largest_bytes),
            mebibytes(one.last_bytes),
            f"{one.checkpoints:,}",
            f"{one.incomplete:,}",
            f"{one.waits:,}",
            str(len(one.errors)),
            str(one.names),
            verdict,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Soaks, shows and writes."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=10)
    minutes: float = parser.parse_args().minutes
    seconds = minutes * 60 / len(KINDS)
    outcomes = []
    for readers in KINDS:
        print(f"{seconds:.0f} s beside readers: {readers.name}", flush=True)
        with tempfile.TemporaryDirectory(prefix="oxlite-soak-") as folder:
            outcomes.append(soak(Path(folder), readers, seconds, LIMIT_BYTES))
    example = next((text for one in outcomes for text in one.told), "")
    text = f"""\
**wal: how long the write-ahead log becomes**

- `make soak MINUTES={minutes:g}`: {WRITERS} processes write single rows as fast as they can,
  {seconds:.0f} s beside each kind of reader
- the limit of the log is {mebibytes(LIMIT_BYTES)} (`journal_size_limit` of the profile `web`);
  "kept" is a log that was never longer than twice that and what was written in
  {CHECKPOINT_SECONDS:g} s; "waits" are checkpoints for which nobody could write while readers were
  waited for
- oxlite {oxlite.__version__}, SQLite {oxlite.sqlite_version}, Python {platform.python_version()},
  {platform.system()} {platform.machine()}

{table(outcomes)}
"""
    if example:
        # The folder is of no interest, nor which Python it was.
        shown = example.replace(sys.executable, "python")
        for part in [word for word in shown.split() if "oxlite-soak-" in word]:
            shown = shown.replace(part, Path(part).name)
        text += f"\nWhat was logged, the first time:\n\n> {' '.join(shown.split())[:400]} …\n"
    EVIDENCE.write_text(text)
    print(text)
    return 0 if all(map(is_kept, outcomes)) else 1


if __name__ == "__main__":
    sys.exit(main())
