"""Deliberate mistakes in the product, each of which the tests of its own area must find.

``make mutants``: a mistake (*mutant*) is a small wrong change of the source, declared in
``areas/``: a limit off by one, a wake-up left out, an error dropped. The whole project is copied;
all mutants in Rust are compiled at once, each behind a number that the environment switches on
(``OXLITE_MUTANT``), and those in Python are put into the copy one at a time. Then the tests of the
mutant's area are run. A mutant that they let pass is behaviour without a test.

- ``declared``: what is declared in ``areas/``, one file for each area.
- ``place``: where in the source a mutant goes, found by its text, wherever that has moved to.
- ``copy_of_tree``: the copy, with all mutants in it.
- ``suite``: the tests of an area, run once.
- ``campaign``: every mutant against its area; ``report``: what came of it.
"""
