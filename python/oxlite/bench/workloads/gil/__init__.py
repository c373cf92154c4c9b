"""``gil``: how kind a driver is to the interpreter, that is, to all other threads.

``turns`` says what is measured, ``parts`` what each thread of a turn does, ``work`` is what shapes
a run, with the file and the keys, ``worker`` runs the turns in one process, ``workload`` takes
turns among the drivers, and ``claims`` says what is claimed of them.

To add a measurement: declare its metrics and its turn in ``turns``, and the bar it has to meet, if
there is one, in ``claims``.
"""
