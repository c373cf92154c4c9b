"""``async``: many tasks of one event loop read rows by their keys, or insert rows durably.

``work`` has the parameters, the table and what each task does with it, ``calls`` is how a
task calls for it, ``worker`` the process whose loop it is. ``figures`` reduces what was
measured, ``verify`` checks what came of it, ``claims`` judges, ``tables`` is what a report
shows, and ``workload`` ties these together.
"""
