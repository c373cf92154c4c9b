"""``shared``: processes whose every commit is durable, and who shares whose sync.

The work, its checks and its figures are those of ``gate``; ``workload`` says what is
compared, ``tables`` what a report shows, ``claims`` what it is measured against. Where
writers are killed, ``kills`` meets them in their syncs, which ``syncs`` finds, and
``entries`` is what they write and what must be left of it.
"""
