"""``gate``: writers that have nothing else to do, and who of them waits how long.

``work`` has the parameters, the seeded keys and the database,
``worker`` is a process that writes, ``figures`` reduces what it did, ``verify``
checks what came of it, ``workload`` ties these together, and ``tables`` is what
a report shows. Where writers are killed, ``kills`` forks and kills them, and
``victim`` is such a writer, with the memory by which they understand each other.
"""
