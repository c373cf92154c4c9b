"""Whether a cache keeps its limit however much is set, and how long a set takes meanwhile.

``python -m tests.cache_soak`` (``make cache-soak``): processes set values of random lengths
(:mod:`tests.cache_soak.setter`), and another one looks at the files (:mod:`tests.cache_soak.soak`).
What is kept is compared with what an exact LRU would have kept (:mod:`tests.cache_soak.traces`).
"""
