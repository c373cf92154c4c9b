"""The blog once more, in Flask and SQLAlchemy: a site whose threads share a pool of connections.

Django has no pool, so what pools are worth is asked of this one. Its tables are those that ``blog``
has made, and so are its deeds and what its pages load; only how they look is its own. ``pools`` has
the engines, of which the environment says how many there are; ``deeds`` changes rows, ``pages``
shows them, ``application`` answers.

Invariant: nothing here knows the lab.
"""
