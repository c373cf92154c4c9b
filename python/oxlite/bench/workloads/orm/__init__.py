"""``orm``: what objects and their relations cost through an object-relational mapper.

``operations`` lists what is done and how often, ``parameters`` shapes the run, ``mapper`` makes
operations ready, which ``sqlalchemy`` and ``django`` do (``django_app`` has the latter's tables).
``worker`` is the process that does an operation, ``session`` has all workers do it one after the
other. ``figures`` are what comes of it and how it is compared, ``table`` and ``published`` are what
a report shows, and ``workload`` ties these together.
"""
