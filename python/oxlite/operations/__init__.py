"""Looking after a database: each is a command, and a function behind it.

::

    files          how a database begins, and what lies beside it
    partial        a file that gets its name when it is whole
    online_copy    one snapshot of a database that others use
    niceness       work that gives way to others
    verification   whether a copy is whole, and what is in it
    compression    Zstandard
    manifest       what is known of a backup
    backups        made, listed, pruned
    holders        who has a database open, and what is locked; libraries: with which SQLite
    restore        a backup in the place of a database
    snapshots      backups beside a database, by name
    branches       a database for each git branch
    doctor/        whether a database is well
    top/           what goes on in it now

Invariant: a live database is read by SQLite alone, never by opening its file.
"""

from oxlite.operations.backups import Backup, backup, backups_in, prune
from oxlite.operations.errors import DatabaseInUse, OperationsError, VerificationFailed
from oxlite.operations.holders import Holder, look_for_holders
from oxlite.operations.manifest import Manifest, manifest_as_json
from oxlite.operations.restore import Restored, restore
from oxlite.operations.snapshots import (
    create_snapshot,
    list_snapshots,
    prune_snapshots,
    restore_snapshot,
)
from oxlite.operations.verification import Contents

__all__ = [
    "Backup",
    "Contents",
    "DatabaseInUse",
    "Holder",
    "Manifest",
    "OperationsError",
    "Restored",
    "VerificationFailed",
    "backup",
    "backups_in",
    "create_snapshot",
    "list_snapshots",
    "look_for_holders",
    "manifest_as_json",
    "prune",
    "prune_snapshots",
    "restore",
    "restore_snapshot",
]
