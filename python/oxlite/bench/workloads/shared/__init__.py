"""``shared``: processes whose every commit is durable, and who shares whose sync.

The work, its checks and its figures are those of ``gate``; ``parameters`` shapes
the run, ``workload`` says what is compared, ``tables`` what a report shows, ``bars``
what it is measured against. Where writers are killed, ``killing`` meets them in their
syncs, which ``syncing`` finds, and ``entries`` is what they write and what must be left of it.
"""
