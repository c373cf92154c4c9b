"""``gate``: writers that have nothing else to do, and who of them waits how long.

``parameters`` shapes the run, ``work`` makes the seeded keys and the database,
``worker`` is a process that writes, ``figures`` reduces what it did, ``verify``
checks what came of it, ``workload`` ties these together, and ``tables`` is what
a report shows. Where writers are killed, ``killing`` forks and kills them,
``victim`` is such a writer, and ``shared`` the memory by which they understand
each other.
"""
