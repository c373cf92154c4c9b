"""The kinds of moves: each module writes the steps of one subject.

A move is a function that draws from a ``Hand`` and returns the source of a step.
"""
