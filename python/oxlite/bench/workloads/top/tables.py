"""What a report of ``top`` shows: what it costs to be listened to, what was told, and the bars."""

from oxlite.bench.claims import ClaimsTable
from oxlite.bench.layout import Drawable, Table, against, errors, median, percentile, spread
from oxlite.bench.workloads.top.claims import CLAIMS
from oxlite.bench.workloads.top.figures import (
    ADMISSIONS,
    COMMITS,
    DISAGREEMENT,
    LOOK,
    OPERATION,
    P99,
    RATE,
    STATEMENTS,
)
from oxlite.bench.workloads.top.ways import UNWATCHED, WATCHED
from oxlite.bench.workloads.top.work import READ, WRITE

NOTHING_DONE = (
    "What is called for each statement does nothing with it: traced is told its text, profiled its "
    "text and its time, all_logged makes a record of both with its plan, and a handler drops it."
)
ONE_IN_TWENTY = "One read in twenty is timed: a look at the clock costs a good part of one."
SAME_WINDOW = (
    "Told is the mean rate of all looks; counted is the rate of what the processes have done from "
    "the first look to the last one. 1 is right."
)

TABLES: tuple[Drawable, ...] = (
    *(
        Table(
            f"{title}; the ratio is of transactions/s, to the same driver's unwatched",
            (
                median("transactions/s", RATE),
                against("times unwatched", RATE, way=UNWATCHED),
                percentile("p50 ms", OPERATION, 50.0),
                median("p99 ms", P99),
                errors("errors"),
            ),
            {"load": load},
            ("processes", "driver"),
            remarks=remarks,
        )
        for load, title, remarks in (
            (WRITE, "Rows changed, one in a transaction", (NOTHING_DONE,)),
            (READ, "Rows read, one in a transaction", (NOTHING_DONE, ONE_IN_TWENTY)),
        )
    ),
    Table(
        "What top told, times what was counted",
        (
            spread("commits", COMMITS),
            spread("admissions", ADMISSIONS),
            spread("statements", STATEMENTS),
            median("wrong by at most", DISAGREEMENT),
            median("a look, ms", LOOK),
        ),
        {"way": WATCHED},
        remarks=(SAME_WINDOW,),
    ),
    ClaimsTable("The watch and the log against their bars", CLAIMS),
)
