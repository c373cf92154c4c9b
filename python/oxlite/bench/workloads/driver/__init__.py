"""``driver``: what each thing a driver does costs, in one thread of one process.

``operation`` says what an operation is, ``catalogue`` lists them all, and the modules named after
a subject (``reads``, ``writes``, …) declare them, with the ``bodies`` that several share. ``peers``
is where drivers differ, ``database`` the file that is read, ``worker`` times, ``workload`` takes
turns among the drivers, and ``table`` says what a report shows.

To add an operation: declare it in the module of its subject.
"""
