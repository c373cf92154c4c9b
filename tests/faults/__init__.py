"""Faults: memory that is refused and system calls that fail, at every place where they can.

``python -m tests.faults`` (``make faults``) plays a representative session in chapters
(:mod:`tests.faults.chapters`), once for each allocation that SQLite makes and each system call
that the extension module makes in it, with that one call failing, or with all from that one on.
What must hold afterwards stands in :mod:`tests.faults.judge`.

The extension module is the one that was built for the package, unchanged: the faults come from a
library of their own (``interposer``), which exchanges the addresses that the dynamic linker has put
into the module's slots.
"""
