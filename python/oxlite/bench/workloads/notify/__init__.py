"""``notify``: how fast, and how reliably, a listener in another process hears of a commit.

``work`` has the parameters and the messages, ``ways`` how each system publishes and listens,
``listeners`` and ``publisher`` are the processes. ``verify`` looks for what was written, and
``figures`` accounts for every message and reduces what was measured; ``claims`` judges, ``tables``
is what a report shows, and ``workload`` ties these together.
"""
