"""What replication costs writers, and whether the log stays short beside it, for long.

``python -m tests.replica_soak`` (``make replica-soak``): the same writers in turn without and with
``oxlite replicate``, at half of what they can write and at all of it.

- ``load``: the program of those who write.
- ``soak``: the parts, by turns, and what came of each.
"""
