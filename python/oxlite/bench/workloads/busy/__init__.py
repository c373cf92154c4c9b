"""``busy``: who waits how long behind a long transaction.

``parameters`` shapes the run, ``worker`` is the parent and its children,
``workload`` starts them and says what a report shows, with the published
figures beside its own.
"""
