"""The crash laboratory: what a power cut may leave, and whether Oxlite's databases survive it.

``python -m tests.crash`` (``make crash``) plays workloads in processes of their own and records,
below everything of ours, what they do to their files (:mod:`tests.crash.recorder`). From that come
images of what a disk may hold when the power fails at any moment of it (:mod:`tests.crash.disk`,
:mod:`tests.crash.shapes`). Each image is opened as after a reboot, and must hold what was promised
(:mod:`tests.crash.verdict`, :mod:`tests.crash.ledger`).

The same workloads are played with calls that fail and with processes that are killed
(:mod:`tests.crash.trouble`), and in ways that must lose something, to see that it is noticed
(:mod:`tests.crash.controls`).
"""
