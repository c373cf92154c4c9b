"""The fuzzer: random scripts against the standard library's ``sqlite3``, step by step.

A *case* is a list of *steps*, each a line or a block of Python on names such as ``c0`` (a
connection) and ``k0`` (a cursor). ``generator`` makes cases from a seed, of the kinds of moves in
``moves``; ``child`` plays one on one driver and writes down what can be seen after each step;
``campaign`` plays cases on both drivers, each in a process of its own, and ``compare`` looks for
the first difference; ``minimise`` deletes steps while it remains; ``script`` prints a case as a
program that runs by itself. Differences that are meant are listed in ``intended``, with their
reasons.

Invariants: a case depends on its seed and on the features both drivers have, on nothing else; the
two drivers never share a process, so neither a crash nor a lock of one concerns the other.
"""
