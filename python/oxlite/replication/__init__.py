"""A database replicated to another machine by Litestream, and proof that the copy restores.

Guide: docs/replication.md. On the command line: ``oxlite replicate``, ``oxlite restore --from``.
"""

from oxlite.replication.claim import State, is_claimed, read_state
from oxlite.replication.configuration import Settings
from oxlite.replication.deployment import entry_point, systemd_unit
from oxlite.replication.errors import (
    AlreadyReplicated,
    LitestreamFailed,
    LitestreamUnusable,
    NoReplica,
    NotProved,
    ReplicaOccupied,
    ReplicationError,
    StoreUnreachable,
)
from oxlite.replication.litestream import (
    LEAST_VERSION,
    Litestream,
    find_litestream,
    read_credentials,
)
from oxlite.replication.proof import Proof, last_proof, prove
from oxlite.replication.recovery import make_ready, point_in_time, restore_from
from oxlite.replication.replica import Held, Replica, held, replicas_of
from oxlite.replication.replicator import Pace, Replicator
from oxlite.replication.status import (
    Status,
    replication_status,
    status_as_prometheus,
    status_as_text,
)
from oxlite.replication.store import SCHEMES, Store, store_of

__all__ = [
    "LEAST_VERSION",
    "SCHEMES",
    "AlreadyReplicated",
    "Held",
    "Litestream",
    "LitestreamFailed",
    "LitestreamUnusable",
    "NoReplica",
    "NotProved",
    "Pace",
    "Proof",
    "Replica",
    "ReplicaOccupied",
    "ReplicationError",
    "Replicator",
    "Settings",
    "State",
    "Status",
    "Store",
    "StoreUnreachable",
    "entry_point",
    "find_litestream",
    "held",
    "is_claimed",
    "last_proof",
    "make_ready",
    "point_in_time",
    "prove",
    "read_credentials",
    "read_state",
    "replicas_of",
    "replication_status",
    "restore_from",
    "status_as_prometheus",
    "status_as_text",
    "store_of",
    "systemd_unit",
]
