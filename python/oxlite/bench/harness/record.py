"""A run as a JSON file: the stored schema, version 1.

::

    format            "oxlite-bench"
    version           1
    workload          its name
    parameters        {name: value}
    plan              {repeats, time_budget_seconds, warm_ups, least_repeats}
    repeats           measured rounds
    baselines         [label]
    compared          {label: [label]}: the baselines of each row; all, if it is not named
    work_digest       sha256 of the list of work
    command           the command line that repeats it
    started_at        ISO 8601, UTC
    duration_seconds
    notes             [sentence]
    orders            [[label]]: the turns of each measured round, in order; where rounds
                      have parts, the turns of all of them
    left              [label]: possible, and not in the workload's own selection
    interrupted       whether a signal ended the run early
    metrics           [{name, title, better, of_all_work}], for readers of the file
    rows              [{scenario: {axis: value}, label, failure,
                        samples: [{figures: {metric: number}, asked,
                                   errors: {text: count}, detail,
                                   absent: {metric: reason}, failed: {metric: reason}}],
                        latencies: {kind: {count, maximum_ns,
                                           percentiles_ns: {"99.9": ns or null}}},
                        summaries: {metric: {count, median, minimum, maximum, noise}},
                        improvements: {baseline: {metric: the same, of paired ratios}},
                        environment: the report, or null}]
    impossible        [{scenario, label, reason}]

``summaries``, ``improvements`` and ``label`` are for other readers; reading a
file back computes them anew from the samples. Where a file calls a row by another label than this
lab does, the row is what its ``baselines``, ``compared`` and ``orders`` mean.

``orders``, ``left``, ``compared`` and ``interrupted``, and ``absent`` and ``failed`` of a sample,
are missing from the earliest files, and ``least_repeats`` from those before it.

Invariants: a field is never removed nor its meaning changed without raising
the version; a file of a later version is refused, one of an earlier is read; every number that is
read is finite; every row is there once, with a sample for each measured round, unless it failed or
was never begun.
"""

import json
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from oxlite.bench.errors import FutureRecordError, LabError, MalformedRecordError, UsageError
from oxlite.bench.harness.cells import Cell
from oxlite.bench.harness.model import JsonObject, Metric, Plan, Result, Row, Sample
from oxlite.bench.harness.statistics import Latencies, Summary
from oxlite.bench.scenarios.scenario import Scenario

FORMAT = "oxlite-bench"
VERSION = 1

LEAST_FIGURE, LARGEST_FIGURE = 1e-75, 1e75
"""Between them lies every figure that is not 0, whatever its sign."""

MALFORMED = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError,
)  # fmt: skip
"""What using a file raises that has another shape than a result."""


def to_json(result: Result, metrics: Sequence[Metric]) -> JsonObject:
    """The JSON object of a run."""
    return {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(result, name) for name in _RESULT},
        "plan": asdict(result.plan),
        "metrics": [asdict(metric) for metric in metrics],
        "rows": [_row_to_json(result, row, metrics) for row in result.rows],
        "impossible": [
            {"scenario": dict(cell.scenario), "label": cell.scenario.label, "reason": cell.reason}
            for cell in result.impossible
        ],
    }


def from_json(data: object) -> Result:
    """The run that a JSON object describes.

    Raises:
        FutureRecordError: it was written by a later lab.
        MalformedRecordError: it is not a run.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise MalformedRecordError("this is not a result of oxlite bench")
    version = data.get("version")
    if isinstance(version, int) and version > VERSION:
        raise FutureRecordError(
            f"the result has schema version {version}, this oxlite reads up to {VERSION}; "
            f"upgrade oxlite to read it"
        )
    if version != VERSION:
        raise MalformedRecordError(f"the result has no valid schema version: {version!r}")
    try:
        fields, labels = _read(_RESULT, data), _labels(data)
        for name in ("baselines", "compared", "orders"):
            fields[name] = _renamed(fields[name], labels)
        result = Result(
            **fields,
            rows=[_row_from_json(row) for row in data["rows"]],
            impossible=[
                Cell(_scenario(cell["scenario"]), str(cell["reason"]))
                for cell in data["impossible"]
            ],
        )
        _require_whole(result)
        return result
    except KeyError as error:
        raise MalformedRecordError(f"the result lacks the field {error}") from None
    except (*MALFORMED, LabError) as error:
        raise MalformedRecordError(f"the result is malformed: {error}") from None


def _labels(data: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a file's rows, by those that are written there."""
    every = (*data["rows"], *data["impossible"])
    return {str(one["label"]): _scenario(one["scenario"]).label for one in every if "label" in one}


def _renamed(value: Any, labels: Mapping[str, str]) -> Any:  # noqa: ANN401
    """Lists and objects of labels, with other labels."""
    if isinstance(value, dict):
        return {labels.get(one, one): _renamed(others, labels) for one, others in value.items()}
    if isinstance(value, list):
        return [_renamed(one, labels) for one in value]
    return labels.get(value, value)


def _require_whole(result: Result) -> None:
    """Refuse rows whose samples do not pair: ratios and counts of repeats would be of others."""
    labels = set()
    for row in result.rows:
        if row.label in labels:
            raise ValueError(f"the row {row.label} is there twice")
        labels.add(row.label)
        # What was interrupted in its first round has nothing of the rows whose turn had not come.
        whole = {result.repeats, 0} if result.interrupted else {result.repeats}
        if row.failure is None and len(row.samples) not in whole:
            raise ValueError(
                f"the row {row.label} has {len(row.samples)} samples of {result.repeats} repeats"
            )


def dumps(result: Result, metrics: Sequence[Metric]) -> str:
    """The text of the file that describes a run."""
    return json.dumps(to_json(result, metrics), indent=1) + "\n"


def read(path: Path) -> Result:
    """Read a run from ``path``.

    Raises:
        UsageError: the file cannot be read.
        FutureRecordError: it was written by a later lab.
        MalformedRecordError: it is not a run.
    """
    try:
        data = json.loads(
            path.read_bytes(), parse_constant=_finite, parse_float=_finite, parse_int=_whole
        )
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise MalformedRecordError(f"{path} is not JSON: {error}") from None
    try:
        return from_json(data)
    except LabError as error:
        raise type(error)(f"{path}: {error}") from None


def _row_to_json(result: Result, row: Row, metrics: Sequence[Metric]) -> JsonObject:
    def present(summaries: dict[str, Summary | None]) -> JsonObject:
        return {name: asdict(found) for name, found in summaries.items() if found is not None}

    return {
        "scenario": dict(row.scenario),
        "label": row.label,
        "failure": row.failure,
        "samples": [{name: getattr(sample, name) for name in _SAMPLE} for sample in row.samples],
        "latencies": {
            kind: {
                "count": found.count,
                "maximum_ns": found.maximum_ns,
                "percentiles_ns": {f"{p:g}": value for p, value in found.percentiles.items()},
            }
            for kind, found in row.latencies.items()
        },
        "summaries": present({metric.name: row.summary(metric.name) for metric in metrics}),
        "improvements": {
            baseline: present(
                {metric.name: result.improvement(row, metric, baseline) for metric in metrics}
            )
            for baseline in result.compared.get(row.label, result.baselines)
        },
        "environment": row.environment,
    }


def _row_from_json(data: dict[str, Any]) -> Row:
    return Row(
        scenario=_scenario(data["scenario"]),
        samples=[Sample(**_read(_SAMPLE, sample)) for sample in data["samples"]],
        latencies={
            str(kind): Latencies(
                count=int(found["count"]),
                percentiles={_percent(p): _known(v) for p, v in found["percentiles_ns"].items()},
                maximum_ns=_known(found["maximum_ns"]),
            )
            for kind, found in data["latencies"].items()
        },
        environment=data["environment"],
        failure=None if data["failure"] is None else str(data["failure"]),
    )


def _scenario(data: dict[str, Any]) -> Scenario:
    for axis, value in data.items():
        if not isinstance(value, str):
            raise TypeError(f"the axis {axis} has the value {value!r}")
    return Scenario(**data)


def _plan(data: dict[str, Any]) -> Plan:
    plan = Plan(**data)
    return Plan(
        int(plan.repeats),
        _finite(plan.time_budget_seconds),
        int(plan.warm_ups),
        int(plan.least_repeats),
    )


def _command(text: object) -> str:
    shlex.split(str(text))
    return str(text)


def _known(value: Any) -> int | None:  # noqa: ANN401
    return None if value is None else int(value)


def _finite(value: Any) -> float:  # noqa: ANN401
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{str(value)[:40]} is no finite number")
    return number


def _percent(value: Any) -> float:  # noqa: ANN401
    percent = _finite(value)
    if not 0 <= percent < 100:
        raise ValueError(f"there is no percentile {percent:g}: it is from 0 to less than 100")
    return percent


def _figure(value: Any) -> float:  # noqa: ANN401
    number = _finite(value)
    # The sums, ratios and squares of what is in here are finite too.
    if number != 0 and not LEAST_FIGURE <= abs(number) <= LARGEST_FIGURE:
        raise ValueError(f"{str(value)[:40]} is no figure of a measurement")
    return number


def _whole(text: str) -> int:
    _finite(text)
    return int(text)


def _texts(values: Sequence[object]) -> list[str]:
    return [str(value) for value in values]


_Readers = Mapping[str, Callable[[Any], Any]]
"""What makes the value of each field of what JSON has, in the order in which they are written."""

_RESULT: _Readers = {
    "workload": str,
    "parameters": dict,
    "plan": _plan,
    "repeats": int,
    "baselines": _texts,
    "compared": lambda found: {str(one): _texts(others) for one, others in dict(found).items()},
    "work_digest": str,
    "command": _command,
    "started_at": str,
    "duration_seconds": _finite,
    "notes": _texts,
    "orders": lambda found: [_texts(turns) for turns in found],
    "left": _texts,
    "interrupted": bool,
}
_SAMPLE: _Readers = {
    "figures": lambda found: {str(name): _figure(value) for name, value in found.items()},
    "asked": int,
    "errors": lambda found: {str(text): int(count) for text, count in found.items()},
    "detail": dict,
    "absent": dict,
    "failed": dict,
}
_LATER = {"orders", "left", "compared", "interrupted", "absent", "failed"}
"""The fields that the earliest files lack; they are empty there."""


def _read(readers: _Readers, data: Mapping[str, Any]) -> JsonObject:
    return {
        name: read(data.get(name, ()) if name in _LATER else data[name])
        for name, read in readers.items()
    }
