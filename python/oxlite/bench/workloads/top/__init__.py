"""``top``: what it costs to be watched, or to have slow statements logged; how right top is.

``work`` has the parameters and the operations, ``ways`` how a connection is opened that is listened
to. ``worker`` is a process that works, ``watcher`` the one that watches. ``verify`` looks at what
was left, ``figures`` reduces what was measured and sets what was told beside what was counted,
``claims`` judges, ``tables`` is what a report shows, and ``workload`` ties these together.
"""
