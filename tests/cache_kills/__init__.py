"""Those who use a cache are killed in the midst of it; what was acknowledged is there.

``python -m tests.cache_kills`` (``make cache-kills``) does so until as many have been killed as one
likes (:mod:`tests.cache_kills.campaign`). What the processes do is in
:mod:`tests.cache_kills.worker`, what they say of it in :mod:`tests.cache_kills.board`, and what
must be left of it in :mod:`tests.cache_kills.judge`.
"""
