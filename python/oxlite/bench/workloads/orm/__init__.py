"""``orm``: what objects and their relations cost through an object-relational mapper.

``operations`` lists what is done and how often, ``parameters`` shapes the run, ``mapper`` is
what the lab needs of a mapper, ``sqlalchemy`` and ``django`` are the two (``django_app`` has the
latter's tables, ``threads`` runs the threads of both), and ``opening`` connects the one that a
scenario names. ``worker`` is the process that does an operation, ``session`` has all workers do
it one after the other. ``figures`` are what comes of it, ``ratio`` compares them, ``table`` and
``published`` are what a report shows, and ``workload`` ties these together.
"""
