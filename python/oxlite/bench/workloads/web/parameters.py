"""What shapes a run of ``web``.

The mixes, by the names on the axis ``mix``, are in ``blog.benchmark``; this module is loaded where
Django need not be installed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from oxlite.bench.errors import UsageError, require_between, unknown

ATOMIC = ("views", "requests")
MAXIMUM_CLIENTS = 1024
MAXIMUM_WORKERS = 64
MAXIMUM_THREADS = 256
SHORTEST_SECONDS = 0.2
MAXIMUM_SECONDS = 3600
MAXIMUM_RATE = 100_000


@dataclass(frozen=True)
class WebParameters:
    """What shapes the work.

    Attributes:
        clients: how many ask at once, each number a scenario.
        workers: processes of the server.
        threads: of each process.
        duration_seconds: how long the clients ask.
        rate: requests per second that all clients together are to send, latencies counted from when
            each should have been sent; 0: a client asks again as soon as it is answered.
        users: of the blog that every scenario begins with.
        posts: likewise, each with 5 to 15 comments.
        seed: of the blog.
        atomic: what is a transaction: what the ``views`` read and write, or whole ``requests``.
        generator: the load generator ``oha``: a path, or a name to look for.
    """

    clients: Sequence[int] = (1, 2, 4, 8, 16, 32, 64)
    workers: int = 2
    threads: int = 4
    duration_seconds: float = 10.0
    rate: int = 0
    users: int = 100
    posts: int = 1000
    seed: int = 1
    atomic: str = "views"
    generator: str = "oha"

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        object.__setattr__(self, "clients", tuple(dict.fromkeys(self.clients)))
        if not self.clients:
            raise UsageError("--clients must be at least one number")
        for count in self.clients:
            require_between("--clients", count, 1, MAXIMUM_CLIENTS)
        require_between("--workers", self.workers, 1, MAXIMUM_WORKERS)
        require_between("--threads", self.threads, 1, MAXIMUM_THREADS)
        require_between("--duration", self.duration_seconds, SHORTEST_SECONDS, MAXIMUM_SECONDS)
        require_between("--rate", self.rate, 0, MAXIMUM_RATE)
        if self.atomic not in ATOMIC:
            raise unknown("value of --atomic", self.atomic, ATOMIC)
        require_between("--users", self.users, 1, 100_000)
        require_between("--posts", self.posts, 1, 1_000_000)
