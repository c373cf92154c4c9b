"""``web``: a Django site under load, from stock settings to ``oxlite.django``.

``blog`` is the site; ``ladder`` says how its database is configured in each row, ``worker`` makes
the database all rows begin with, ``server`` runs the site and reads its account of what it has
done, ``generator`` runs the clients. ``verify`` compares the two accounts with the database;
``figures`` and ``claims`` are what comes of it.
"""
