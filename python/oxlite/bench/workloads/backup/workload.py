"""The ``backup`` workload: what a backup costs those who write meanwhile, and how long it takes.

Processes do nothing but write, in a database of some size, while another process makes a backup of
it in one of several ways, or none. What it has made is then opened, and looked at.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from oxlite.bench.drivers.base import Connection, Driver
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Metric, Plan, Sample
from oxlite.bench.harness.outcomes import digest
from oxlite.bench.harness.processes import WorkerGroup
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import FreshSession, HandedOver
from oxlite.bench.layout import Drawable
from oxlite.bench.scenarios.axes import BUSY, DRIVER, JOURNAL, PRAGMAS, Axis
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.backup import figures, verify, work
from oxlite.bench.workloads.backup.flag import Flag
from oxlite.bench.workloads.backup.tables import TABLES
from oxlite.bench.workloads.backup.ways import COMPRESSED, NONE, OURS
from oxlite.bench.workloads.backup.work import BackupParameters
from oxlite.bench.workloads.base import Filter, Workload

HUNG_SECONDS_PER_MEBIBYTE = 0.5

WAY = Axis(
    "way",
    "how the backup is made",
    {
        NONE: "there is none",
        "oxlite": "by oxlite.operations.backup, with all of its checks",
        COMPRESSED: "the same, with compress=True",
        "shell": "by sqlite3 DB '.backup FILE', the program",
        "vacuum": "by VACUUM INTO of the standard library's sqlite3",
        "stdlib": "by Connection.backup of the standard library's sqlite3, all pages at once",
        "cp": "the file is copied, which is no backup",
    },
)


class BackupSession(FreshSession[BackupParameters, list[HandedOver]]):
    """Processes that write, and one that makes backups."""

    name = "backup"
    task = "oxlite.bench.workloads.backup.writer:WriterTask"
    maker: ClassVar[str] = "oxlite.bench.workloads.backup.maker:MakerTask"

    def __init__(self, parameters: BackupParameters, scratch: Scratch, exits: ExitStack) -> None:
        super().__init__(parameters, scratch, exits)
        self._digests = digests(parameters)

    def fill(self, connection: Connection, driver: Driver) -> None:
        """See the base class."""
        work.fill(connection, self.parameters)

    def work(self, group: WorkerGroup, database: Database) -> list[HandedOver]:
        """See the base class."""
        parameters, scenario = self.parameters, database.scenario
        flag = database.directory / "flag"
        Flag.make(flag)
        for process in range(parameters.processes):
            self.start(group, scenario, database.path, process=process, flag=str(flag))
        self.start(group, scenario, database.path, self.maker, flag=str(flag))
        seconds = (
            parameters.lead_seconds
            + parameters.least_seconds
            + parameters.limit_seconds
            + parameters.timeout_seconds
            + HUNG_SECONDS_PER_MEBIBYTE * parameters.size_mebibytes
        )
        return self.first_turn(group, self._digests, seconds)[1]

    def sample(self, database: Database, found: list[HandedOver]) -> Sample:
        """See the base class; a backup of ours that is none fails the row."""
        *writers, (maker, _) = found
        done = [figures.unpack(*each) for each in writers]
        verify.check(database.path, done, self.parameters.rows)
        flaws = self._flaws(database.scenario, maker)
        sample = figures.sample(done, maker, flaws)
        if sample.detail["wrong"] and database.scenario["way"] in OURS:
            sample.failed[figures.WHOLE.name] = ", ".join(sample.detail["wrong"])
        for left in database.directory.glob("copy-*"):
            left.unlink()  # it would be written to the disk while others are measured
        return sample

    def _flaws(self, scenario: Scenario, maker: Message) -> list[str | None]:
        compressed = scenario["way"] == COMPRESSED
        return [
            verify.flaw(Path(one["path"]), self.parameters.rows, compressed=compressed)
            for one in maker["attempts"]
            if one["why"] is None
        ]


def digests(parameters: BackupParameters) -> list[str]:
    """Of the work of each process."""
    return [digest(work.transactions(parameters, n)) for n in range(parameters.processes)]


class BackupWorkload(Workload[BackupParameters]):
    """See the module."""

    name = "backup"
    title = "what a backup costs those who write meanwhile"
    about = """\
A backup under full write load: what it costs those who write, and how long it takes.

Beside SQLite's own ways, and a copied file, which is no backup. All of it takes about half an hour,
with `--quick` less than one minute, and up to twenty times the size of the database of disk. The
program `sqlite3` is needed for one row, and for another, before Python 3.14,
zstandard (`pip install 'oxlite[operations]'`); without them these say so, and the rest goes on.
"""
    examples = (
        "--quick",
        "--size 4096 --directory /var/lib/app",
        "--scenario way=oxlite --scenario way=shell --size 64 --processes 1",
    )
    parameters_type = BackupParameters
    axes: ClassVar[Sequence[Axis]] = (
        DRIVER.of("oxlite"),
        JOURNAL.of("wal"),
        PRAGMAS.of("tuned"),
        BUSY.of("gate"),
        WAY,
    )
    baselines: ClassVar[Sequence[Filter]] = ({"way": NONE},)
    selection: ClassVar[Sequence[Filter]] = ({},)
    quick_selection: ClassVar[Sequence[Filter]] = ({},)
    # Nothing has to be warmed: each measurement has a database of its own, and a time before it.
    plan: ClassVar[Plan] = Plan(repeats=5, time_budget_seconds=3600.0, warm_ups=0)
    metrics: ClassVar[Sequence[Metric]] = figures.METRICS
    tables: ClassVar[Sequence[Drawable]] = TABLES
    session_type = BackupSession
    told: ClassVar = (
        (figures.COMMITS, "{} commits/s"),
        (figures.LONGEST, "the longest {} ms"),
        (figures.SECONDS, "a backup in {} s"),
    )

    def work(self, parameters: BackupParameters) -> object:
        """See the base class."""
        return (
            digests(parameters),
            parameters.rows,
            (parameters.lead_seconds, parameters.least_seconds, parameters.limit_seconds),
        )


WORKLOAD = BackupWorkload()
