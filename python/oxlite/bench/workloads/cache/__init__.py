"""``cache``: keys and values, beside Redis, diskcache and Django's own caches.

``work`` has the parameters, the keys, the values and the traces; ``systems`` and ``site`` how each
system is asked, by its own client and by Django's interface. The processes are in ``worker``, which
times single operations, and ``limits``, which fills a cache beyond its limit, and counts what it
has beside an exact ``lru``. ``figures`` reduces what was measured, ``claims`` judges, ``tables`` is
what a report shows, and ``workload`` ties these together.
"""
