"""What shapes a run of ``web``; this module is loaded where Django need not be installed."""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.parameters import Parameters, parameter, seed

ATOMIC = ("views", "requests")
POOL = 5
"""As many connections as the framework of the published benchmark gives a process by itself."""


@dataclass(frozen=True)
class WebParameters(Parameters):
    """What shapes the work."""

    clients: Sequence[int] = parameter(
        (1, 2, 4, 8, 16, 32, 64),
        "Clients at once",
        quick=(32,),
        published=(1, 2, 4, 8, 16, 32, 64, 128),
        least=1,
        most=1024,
    )
    workers: int = parameter(2, "Processes of the server", least=1, most=64)
    threads: int = parameter(4, "Threads of each", least=1, most=256)
    pool: int = parameter(
        POOL, "Connections of each process where they are in pools", least=2, most=64
    )
    duration_seconds: float = parameter(
        10.0, "Seconds of each scenario", quick=1.5, least=0.2, most=3600
    )
    rate: int = parameter(
        0,
        "Requests per second of all clients, their latencies counted from when each was due; "
        "0: a client asks again as soon as it is answered",
        most=100_000,
    )
    tasks: int = parameter(
        0,
        "Tasks a second that another process enqueues and runs in the file of Oxlite's rows",
        most=10_000,
    )
    users: int = parameter(100, "Users of the blog", least=1, most=100_000)
    posts: int = parameter(1000, "Posts, each with 5 to 15 comments", least=1, most=1_000_000)
    seed: int = seed("Of the blog's content")
    atomic: str = parameter("views", "What is a transaction: views or requests", choices=ATOMIC)
    generator: str = parameter("oha", "The load generator oha: a path, or a name on the PATH")
