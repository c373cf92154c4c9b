"""The harness: what every workload is measured with.

``run`` interleaves the cells, ``processes`` starts and releases worker
processes (``bootstrap`` and ``worker`` are what they run, ``channel`` is how
they are spoken to), ``statistics`` reduces samples, ``model`` holds results,
``record`` writes and reads them, ``scratch`` and ``interrupts`` see to it that
nothing is left behind.
"""
