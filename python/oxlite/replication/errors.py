"""What can go wrong in replicating a database."""

from oxlite.operations import OperationsError

__all__ = [
    "AlreadyReplicated",
    "LitestreamFailed",
    "LitestreamUnusable",
    "NoReplica",
    "NotProved",
    "ReplicaOccupied",
    "ReplicationError",
    "StoreUnreachable",
]


class ReplicationError(OperationsError):
    """What was asked for cannot be done; the message says why, and what to do."""


class LitestreamUnusable(ReplicationError):  # noqa: N818 - what is so, as in the standard library
    """Litestream is not installed, cannot be run, or is a version that loses data in silence."""


class LitestreamFailed(ReplicationError):  # noqa: N818 - what has happened
    """Litestream has ended with an error; the message is its own, without credentials."""


class StoreUnreachable(LitestreamFailed):
    """A store has not answered, or has refused. It is not known what is in it."""


class NoReplica(ReplicationError):  # noqa: N818
    """The store has answered, and has nothing of a database at that place."""


class NotProved(ReplicationError):  # noqa: N818
    """What a replica holds does not restore, or is not what the database holds."""


class AlreadyReplicated(ReplicationError):  # noqa: N818
    """Another process replicates the database, or to that place."""


class ReplicaOccupied(ReplicationError):  # noqa: N818
    """The place in the store holds something that is not known to be this database's."""
