"""``backup``: what a backup costs those who write meanwhile, and how long it takes.

``work`` has the parameters, the accounts and what is moved between them, ``writer`` is a process
that writes, ``maker`` the one that makes backups, in one of the ``ways``; ``flag`` is how it tells
the writers to end. ``verify`` looks at what was made, and at the database itself, ``figures``
reduces what was measured; ``claims`` judges, ``tables`` is what a report shows, and ``workload``
ties these together.
"""
