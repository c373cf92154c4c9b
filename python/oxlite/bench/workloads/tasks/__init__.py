"""``tasks``: how soon, how many, and how surely tasks are run by workers in other processes.

``work`` has the parameters, ``functions`` the two functions that every system runs, which write
into a ``ledger`` of what has run. ``systems`` is how each system enqueues, and how its workers are
started. ``enqueuer`` is the process that enqueues, ``crew`` the programs of the workers.
``figures`` accounts for every task and reduces what was measured, ``verify`` looks into the file,
``claims`` judges, ``tables`` is what a report shows, and ``workload`` ties these together.
"""
