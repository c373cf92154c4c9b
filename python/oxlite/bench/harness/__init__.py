"""The harness: what every workload is measured with.

``run`` interleaves the cells, ``processes`` starts and releases worker
processes (``bootstrap`` and ``worker`` are what they run, ``channel`` is how
they are spoken to, ``threads`` lets those of one process begin together),
``statistics`` reduces samples, ``model`` holds results, ``record`` puts them
into JSON and reads it, ``files`` is where a report goes, ``scratch`` and
``interrupts`` see to it that nothing is left behind.
"""
