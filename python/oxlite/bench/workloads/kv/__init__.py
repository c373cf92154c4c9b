"""``kv``: many processes reading and writing one key-value table.

``work`` makes the seeded list of work and the database, ``worker`` does it,
``verify`` checks what came of it, ``figures`` reduces it, ``workload`` ties
these together and says what a report shows.
"""
