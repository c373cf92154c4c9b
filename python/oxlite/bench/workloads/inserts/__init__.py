"""``inserts``: one row per transaction, up a ladder of settings and from many threads.

``work`` has the parameters, the seeded rows and the table that they are inserted into.
``steps`` is the ladder, climbed by one thread; ``styles`` is how threads come by a
connection. ``parts`` is what a thread does, ``worker`` the process that it does it in.
``figures`` reduces what was measured, ``verify`` checks what came of it, ``tables`` is
what a report shows, ``claims`` judges, and ``workload`` ties these together.
"""
