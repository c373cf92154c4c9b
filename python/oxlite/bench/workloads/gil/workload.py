"""The ``gil`` workload: how kind a driver is to the other threads of its process.

One worker process per driver lives through the whole run and has its own copy
of the database; they take turns, so that one alone is at work at any time. The
file is in WAL mode with the ``tuned`` pragmas, as in an application.

The axis ``interpreter`` is there if the run names interpreters: each is the
executable of workers, which need Oxlite installed there.
"""

from collections.abc import Sequence
from typing import ClassVar

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.contest import Contest
from oxlite.bench.driver_table import AXES, BASELINES, PEERS, DriverTable
from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.model import Plan, Sample
from oxlite.bench.harness.outcomes import unpacked
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.session import KeptSession
from oxlite.bench.scenarios.axes import Axis
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.base import Filter, Workload
from oxlite.bench.workloads.gil import turns, work
from oxlite.bench.workloads.gil.claims import CLAIMS
from oxlite.bench.workloads.gil.work import GilParameters

HUNG_BASE_SECONDS = 20.0
HUNG_SECONDS = 20.0
REHEARSED_SCALE = 0.02


class GilTable(DriverTable):
    """All figures of all drivers."""

    title: ClassVar[str] = "Medians of the repeats, and times better than each peer"
    heading: ClassVar[str] = "measure"


class GilSession(KeptSession[GilParameters]):
    """A worker per driver."""

    name = "gil"
    task = "oxlite.bench.workloads.gil.worker:GilTask"

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection)

    def limit_seconds(self) -> float:
        """See the base class."""
        return HUNG_BASE_SECONDS + HUNG_SECONDS * self.parameters.scale

    def rehearse(self, group: WorkerGroup) -> None:
        """So that the first sample meets the same interpreter and files as the others."""
        group.release(HUNG_BASE_SECONDS, {"scale": min(self.parameters.scale, REHEARSED_SCALE)})
        group.collect()

    def sample(self, scenario: Scenario, facts: Message, payload: bytes) -> Sample:
        """See the base class."""
        late_ns = unpacked(payload, [("Q", count) for count in facts["ticks"].values()])
        return Sample(
            facts["figures"],
            latencies_ns=dict(zip(facts["ticks"], late_ns, strict=True)),
            detail=facts["detail"],
            absent=facts["absent"],
            failed=facts["failed"],
        )


class GilWorkload(Workload[GilParameters]):
    """See the module."""

    name = "gil"
    title = "how kind a driver is to the other threads"
    about = """\
What a driver leaves to the other threads of its process: the standard library, apsw, Oxlite.

Look-ups stand beside a CPU-bound thread and an idle one. All of it takes about a minute and a
half, with `--quick` a quarter of a minute.
"""
    examples = (
        "",
        "--interpreter .venvs/3.13/bin/python --json gil.json",
    )
    parameters_type = GilParameters
    axes: ClassVar[Sequence[Axis]] = AXES
    baselines: ClassVar[Sequence[Filter]] = BASELINES
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({},)
    # Workers rehearse when they start. Five repeats bound a median with 94 %; a turn must be
    # long enough for many hand-overs of the GIL, 5 ms each, and the whole run is to be short.
    plan: ClassVar[Plan] = Plan(repeats=5, warm_ups=0)
    metrics: ClassVar = turns.METRICS
    session_type = GilSession
    told: ClassVar = (
        (turns.LOOKUPS_BESIDE[1], "{} look-ups/s beside the CPU thread"),
        (turns.WAKE_P99[max(turns.IDLE_READERS)], "{} ms late"),
    )
    contest: ClassVar = Contest(
        turns.METRICS, "measures", {"driver": "oxlite"}, [{"driver": PEERS[0]}], counted=True
    )
    tables: ClassVar = (
        GilTable(turns.METRICS, PEERS),
        ClaimsTable("What the driver leaves to other threads, against its bars", CLAIMS),
    )

    def work(self, parameters: GilParameters) -> object:
        """See the base class."""
        readers = [work.lookups(parameters.seed, reader) for reader in range(max(turns.READERS))]
        return readers, [metric.name for metric in turns.METRICS], parameters.scale


WORKLOAD = GilWorkload()
