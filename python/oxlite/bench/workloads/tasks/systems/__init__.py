"""How each system enqueues the tasks and runs their workers.

``base`` is what a system has to do, ``catalogue`` lists them without loading any. The others are
each the application of one system: what its workers import, and whoever enqueues.
"""
