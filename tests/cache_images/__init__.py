"""What a power cut leaves of a cache: each value that is read was once set for its key, or is none.

``python -m tests.cache_images`` (``make cache-images``) plays workloads on a cache
(:mod:`tests.cache_images.workloads`) and records what they do to its files, as :mod:`tests.crash`
does it. Nothing is synced there, so a disk may hold any mixture of all that was ever written. Each
image is opened as after a reboot and used (:mod:`tests.cache_images.verdict`): nothing may be
raised, hang, or be another value than one that its key has had (:mod:`tests.cache_images.history`).
"""
