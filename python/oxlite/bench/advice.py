"""What to set on this machine, from what was measured on it and nothing else.

A question is about one setting: rows that differ in one axis alone, in a workload where that axis
matters, compared by one figure. The answer is a candidate whose whole interval is better than the
default, or else the default, with "no difference" as the reason. A question of which no rows are
there is not answered: the command that would measure it is named instead.

Two settings are not chosen by speed alone. What a commit survives (``profile``) is answered with
its price, and the safer one is advised where it costs less than :data:`CHEAP`, or where the
interval does not show that it costs anything; ``durable_commit`` matters with the durable profile
only. Nothing is decided by fewer than three repeats.

Beside the settings it says how many writes a second the advised ones have reached, and how much of
that an application takes, if its own writes are known.

Invariants: every advice carries its rows and ratio; runs of another machine or file system are
refused, unless asked for; the mix of reads and writes is that of the run, or the question is open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlencode

from oxlite.bench.conditions import conditions
from oxlite.bench.contest import FEWEST_REPEATS, at_work
from oxlite.bench.errors import UsageError, require_at_least, require_between, unknown
from oxlite.bench.harness.model import Metric, Result, Row
from oxlite.bench.harness.statistics import Summary
from oxlite.bench.layout import number, spread_of
from oxlite.bench.workloads.catalogue import WORKLOADS

CHEAP = 1.1
"""Safety that costs less than this is advised."""

MIX_TOLERANCE = 0.5
"""How far the part of writes may be from the one asked for, in parts of the larger."""

DEFAULTS = "default"

TODAY: Mapping[str, Mapping[str, str]] = {
    "stdlib": {"driver": "stdlib", "journal_mode": "DELETE", "profile": "durable"},
    "tuned": {"driver": "stdlib", "journal_mode": "WAL", "profile": "web"},
    "oxlite": {
        "driver": "oxlite",
        "journal_mode": "WAL",
        "profile": "web",
        "busy": "gate",
        "durable_commit": "each",
        "durable_commit of Database": "group",
    },
}
"""What an application runs before anything is changed: Python's sqlite3 as it comes or with WAL and
synchronous=NORMAL, or Oxlite as it comes."""

WRITES_ONLY = frozenset({"gate", "inserts", "shared"})
"""Workloads in which nothing reads."""


@dataclass(frozen=True)
class Question:
    """One setting, and the rows that answer what it should be.

    Attributes:
        setting: an argument of ``oxlite.connect`` or ``oxlite.Database``, or ``driver``.
        workload: which measures it.
        metric: the name of the figure that decides.
        where: the axes' values that the rows have in common.
        axis: in which they differ.
        default: the value of that axis that is advised unless another is better: Oxlite's default,
            but of the profile the one that loses nothing.
        candidates: its other values.
        means: what to write for a value of the axis, if it is not the value.
        rests_on: another setting and the value that it must have been advised, before this one is.
    """

    setting: str
    workload: str
    metric: str
    where: Mapping[str, str]
    axis: str
    default: str
    candidates: Sequence[str]
    means: Mapping[str, str] = field(default_factory=dict)
    rests_on: tuple[str, str] | None = None


_TUNED = {"journal": "wal", "pragmas": "tuned"}

QUESTIONS = (
    Question(
        "driver", "kv", "wall_seconds", _TUNED | {"busy": "backoff"}, "driver", "oxlite",
        ("stdlib",),
    ),
    Question(
        "journal_mode", "kv", "wall_seconds",
        {"driver": "stdlib", "pragmas": "stock", "busy": "backoff"}, "journal", "wal",
        ("rollback",), {"wal": "WAL", "rollback": "DELETE"},
    ),
    Question(
        "busy", "gate", "longest_wait_ms", _TUNED | {"driver": "oxlite", "disturbance": "calm"},
        "busy", "gate", ("fair", "backoff"),
    ),
    Question(
        "profile", "inserts", "inserts_per_second",
        {"driver": "oxlite", "busy": "gate", "style": "group"}, "pragmas", "durable", ("tuned",),
        {"durable": "durable", "tuned": "web"},
    ),
    Question(
        "durable_commit of Database", "inserts", "inserts_per_second",
        {"driver": "oxlite", "busy": "gate", "pragmas": "durable"}, "style", "each", ("group",),
        rests_on=("profile", "durable"),
    ),
    Question(
        "durable_commit", "shared", "writes_per_second",
        {"driver": "oxlite", "busy": "gate", "disturbance": "calm"}, "commit", "each", ("shared",),
        rests_on=("profile", "durable"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """What a setting should be here.

    Attributes:
        setting: as in the question.
        value: what to write.
        reason: a sentence with the rows and the ratio.
        today: what it is now, if that is known.
    """

    setting: str
    value: str
    reason: str
    today: str | None = None

    def change(self) -> str:
        """What becomes of it: ``profile = web, as today``, ``driver = oxlite, today stdlib``."""
        if self.today is None:
            return f"{self.setting} = {self.value}"
        if self.today == self.value:
            return f"{self.setting} = {self.value}, as today"
        return f"{self.setting} = {self.value}, today {self.today}"


@dataclass(frozen=True)
class Reached:
    """How many writes a second the advised settings have reached.

    Attributes:
        a_second: the median of a row.
        row: its name.
        used: what the application writes in a second, if that is known.
    """

    a_second: float
    row: str
    used: float | None = None

    def text(self) -> str:
        """A sentence, with the part that is used."""
        reached = (
            f"{number(self.a_second)} were reached with {self.row}, each a transaction of one"
            " small row; of larger ones there are fewer"
        )
        if self.used is None:
            return reached
        share = 100 * self.used / self.a_second
        return f"{reached}. The application's {number(self.used)} are {number(share)} % of that"


@dataclass(frozen=True)
class Recommendation:
    """All advice of some results.

    Attributes:
        advice: one for each setting that was measured.
        lacking: for the others, why, and the command that measures it.
        reached: how many writes a second were reached, if that was measured.
    """

    advice: Sequence[Advice]
    lacking: Mapping[str, str]
    reached: Reached | None = None

    def value(self, setting: str) -> str | None:
        """What to write for a setting, if it was measured."""
        return next((one.value for one in self.advice if one.setting == setting), None)

    def options(self) -> dict[str, str]:
        """Arguments of ``oxlite.connect``, as far as they were measured."""
        names = ["profile", "busy"]
        if self.value("profile") == "durable":
            names.append("durable_commit")  # without it, it would be a risk for no gain
        known = {name: self.value(name) for name in names}
        if self.value("journal_mode") == "DELETE":
            # Without WAL the profile's synchronous=NORMAL could corrupt the file.
            known |= {"journal": "keep", "profile": "durable"}
        return {name: value for name, value in known.items() if value is not None}

    def pragmas(self) -> list[str]:
        """Pragmas for any driver; synchronous=NORMAL in WAL mode only."""
        journal, profile = self.value("journal_mode"), self.value("profile")
        if journal is None and profile == "web":
            journal = "WAL"
        lines = [] if journal is None else [f"PRAGMA journal_mode={journal};"]
        if profile is not None:
            is_normal = profile != "durable" and journal == "WAL"
            lines.append(f"PRAGMA synchronous={'NORMAL' if is_normal else 'FULL'};")
        return lines

    def forms(self) -> dict[str, str]:
        """The same advice in the words of each framework, by its name."""
        found = {}
        if self.value("driver") == "stdlib":
            options = {"transaction_mode": "IMMEDIATE"}
            if self.pragmas():
                options["init_command"] = " ".join(self.pragmas())
            found["Django"] = _django("django.db.backends.sqlite3", options)
        else:
            options = self.options()
            query = f"?{urlencode(options)}" if options else ""
            found["Django"] = _django("oxlite.django.sqlite3", options)
            found["SQLAlchemy"] = f'create_engine("sqlite+oxlite:///app.db{query}")'
            commit = self.value("durable_commit of Database")
            if commit is not None:
                profile = self.value("profile") or "web"
                found["oxlite.Database"] = (
                    f'oxlite.Database("app.db", "{profile}", durable_commit="{commit}")'
                )
        if self.pragmas():
            found["SQL"] = " ".join(self.pragmas())
        return found


def _django(engine: str, options: Mapping[str, str]) -> str:
    added = f', "OPTIONS": {dict(options)!r}' if options else ""
    return f'{{"ENGINE": "{engine}", "NAME": "app.db"{added}}}'


def recommend(
    results: Sequence[Result],
    *,
    today: str = "stdlib",
    writes: float | None = None,
    writes_a_second: float | None = None,
    directory: Path,
    anyway: bool = False,
) -> Recommendation:
    """What to set on this machine.

    Args:
        results: of runs on it.
        today: what the application runs now: a name of :data:`TODAY`.
        writes: the part of the application's statements that write, if it is known.
        writes_a_second: what the application writes in a second, if that is known.
        directory: whose machine and file system are "here".
        anyway: take runs of another machine or file system too.

    Raises:
        UsageError: a run was made elsewhere, ``directory`` is none, ``writes`` is no part,
            ``writes_a_second`` is below 0, or ``today`` is unknown.
    """
    if today not in TODAY:
        raise unknown("value of --today", today, TODAY)
    if writes is not None:
        require_between("--writes", writes, 0, 1)
    if writes_a_second is not None:
        require_at_least("--writes-a-second", writes_a_second, 0)
    if not anyway:
        for result in results:
            _require_here(result, directory)
    advice: list[Advice] = []
    lacking = {}
    for question in QUESTIONS:
        if question.rests_on and question.rests_on not in {
            (one.setting, one.value) for one in advice
        }:
            name, value = question.rests_on
            lacking[question.setting] = f"not advised: it is for {name} = {value} only"
            continue
        suitable = [result for result in results if result.workload == question.workload]
        mixed = [result for result in suitable if _has_mix(result, writes)]
        answers = [one for result in mixed if (one := _answer(question, result)) is not None]
        if answers:
            answer = answers[-1] if writes is None else _of_writes(question, answers[-1])
            advice.append(replace(answer, today=TODAY[today].get(question.setting)))
        else:
            lacking[question.setting] = _wanted(question, suitable, writes)
    found = Recommendation(advice, lacking)
    return replace(found, reached=_reached(results, found, writes_a_second))


def _reached(
    results: Sequence[Result], found: Recommendation, used: float | None
) -> Reached | None:
    """What the advised settings have reached, with the most threads that were measured."""
    wanted = {
        "driver": "oxlite",
        "busy": "gate",
        "style": found.value("durable_commit of Database") or "group",
        "pragmas": "tuned" if found.value("profile") == "web" else "durable",
    }
    rows = [
        (result.workload, row)
        for result in results
        if result.workload == "inserts"
        for row in result.rows
        if wanted.items() <= row.scenario.items() and row.did_its_work()
    ]
    for workload, row in sorted(rows, key=lambda one: at_work(one[1]), reverse=True):
        rate = row.summary("inserts_per_second")
        if rate is not None and rate.count >= FEWEST_REPEATS:
            return Reached(rate.median, f"{workload}, {row.label}", used)
    return None


def _of_writes(question: Question, advice: Advice) -> Advice:
    """The advice, with a word that it is of writes where its workload has nothing else."""
    if question.workload not in WRITES_ONLY:
        return advice
    return replace(advice, reason=f"{advice.reason}; it is about writes only, whatever their part")


def _require_here(result: Result, directory: Path) -> None:
    from oxlite.environment import machine_report

    if not directory.is_dir():
        raise UsageError(f"{directory} is not a directory")
    machine = machine_report(directory)
    here = {
        "processor": machine["cpu"]["model"],
        "processors": machine["cpu"]["usable_cores"],
        "file system": machine["file_system"]["type"],
    }
    there = conditions(result)
    for name, value in here.items():
        if there.get(name) != value:
            where = "file system" if name == "file system" else "machine"
            raise UsageError(
                f"the run of {result.workload} was made on another {where}: {name} "
                f"{there.get(name)} there, {value} in {directory.resolve()} "
                f"(--anyway takes it all the same)"
            )


def _has_mix(result: Result, writes: float | None) -> bool:
    measured = result.parameters.get("write_ratio")
    if writes is None or not isinstance(measured, int | float):
        return True
    return abs(measured - writes) <= MIX_TOLERANCE * max(measured, writes)


def _wanted(question: Question, suitable: Sequence[Result], writes: float | None) -> str:
    command = f"oxlite bench {question.workload}"
    if question.workload == "kv" and writes is not None:
        command += f" --write-ratio {writes:g}"
    command += f" --json {question.workload}.json"
    if not suitable:
        return f"not measured; run `{command}`"
    if writes is not None and not any(_has_mix(result, writes) for result in suitable):
        return f"measured with another part of writes; run `{command}`"
    return (
        f"the file lacks the rows it takes, or has fewer than {FEWEST_REPEATS} repeats of them; "
        f"run `{command}`"
    )


def _answer(question: Question, result: Result) -> Advice | None:
    """The advice of one result; ``None`` if it lacks the rows."""
    metric = _metric(question)
    defaults = [
        row
        for row in result.rows
        if {**question.where, question.axis: question.default}.items() <= row.scenario.items()
    ]
    # Where several differ in how many are at work, the most decide: that is where it matters.
    for row in sorted(defaults, key=at_work, reverse=True):
        found = {}
        for value in question.candidates:
            other = result.row(_other(row, question.axis, value).label)
            times = None if other is None else result.improvement(other, metric, row.label)
            if times is not None and times.count >= FEWEST_REPEATS:
                found[value] = times
        if found:
            return _advice(question, result, row, found)
    return None


def _other(row: Row, axis: str, value: str) -> Row:
    from oxlite.bench.drivers.catalogue import DRIVERS

    changes = {axis: value}
    if axis == "driver":
        changes["build"] = DRIVERS.get(value).default_build
    return Row(row.scenario.but(**changes))


def _advice(question: Question, result: Result, row: Row, found: Mapping[str, Summary]) -> Advice:
    metric = _metric(question)
    best = max(found, key=lambda value: found[value].median)
    times = found[best]
    ratio = spread_of(times)
    shown = (
        f"{result.workload}, {row.label}: {metric.title}, {_mean(question, best)} is {ratio} times"
    )
    if question.setting == "profile":
        dear = times.median > CHEAP and times.interval.low > 1
        chosen = best if dear else question.default
        price = "what FULL costs: the last commits are not lost in a power cut"
        return Advice(question.setting, _mean(question, chosen), f"{shown} as good ({price})")
    default = _mean(question, question.default)
    if times.interval.low > 1:
        return Advice(question.setting, _mean(question, best), f"{shown} as good as {default}")
    if times.interval.high < 1:
        return Advice(question.setting, default, f"{shown} as good as {default}")
    reason = f"{shown} as good as {default}: no difference beyond the interval, so the {DEFAULTS}"
    return Advice(question.setting, default, reason)


def _mean(question: Question, value: str) -> str:
    return question.means.get(value, value)


def _metric(question: Question) -> Metric:
    return WORKLOADS.get(question.workload).metric(question.metric)
