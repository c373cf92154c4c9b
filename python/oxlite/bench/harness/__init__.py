"""The harness: what every workload is measured with.

``cells`` says which scenarios a run has and ``installed`` what is there to run them; ``run``
interleaves them. ``session`` and ``task`` are what workloads have in common, in the lab and in its
workers. ``processes`` starts and releases workers (``bootstrap`` and ``worker`` are what they run,
``channel`` is how they are spoken to, ``threads`` lets those of one process begin together);
``programs`` runs what is no worker, by ``launch``, and ``postgresql`` is one of those.
``statistics`` and ``outcomes`` reduce what was measured, ``model`` holds results, ``record`` puts
them into JSON and reads it, ``files`` is where a report goes; ``databases`` makes what is started
from, ``machine`` says what misleads; ``scratch`` and ``interrupts`` see to it that nothing is left
behind.
"""
