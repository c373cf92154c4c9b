"""``web``: a Django site under load, from stock settings to ``oxlite.django``.

``blog`` is the site, and ``pooled`` another on its tables, which has pools; what both have in
common is in ``mixes`` and ``headers``. ``ladder`` says how the database is configured in each row,
``worker`` makes the one that all rows begin with, ``server`` runs the site and reads its account
of what it has done, ``generator`` runs the clients. ``verify`` compares the two accounts with the
database; ``figures`` and ``claims`` are what comes of it.
"""
