"""``orm``: what objects and their relations cost through an object-relational mapper.

``operations`` lists what is done and how often, ``parameters`` shapes the run, ``mapper`` is
what the lab needs of a mapper and ``sqlalchemy`` the one of that name; ``worker`` is the
process that does it, ``table`` what a report shows, and ``workload`` ties these together.
"""
