"""What is asked of a site, and how often: the mixes of a published benchmark of web applications.

``single_insert`` is none of them: one INSERT and nothing else, by nobody in particular.

Invariant: no framework is needed to read this, so that every site asks the same of itself.
"""

import random
from collections.abc import Mapping

ENDPOINTS = (
    "post_create",
    "comment_create",
    "post_destroy",
    "comment_destroy",
    "post_show",
    "posts_index",
    "user_show",
)

MIXES: Mapping[str, tuple[float, ...]] = {
    "read_heavy": (0.10, 0.10, 0.02, 0.03, 0.25, 0.25, 0.25),
    "write_heavy": (0.25, 0.25, 0.05, 0.20, 0.05, 0.15, 0.05),
    "balanced": (0.17, 0.17, 0.05, 0.11, 0.17, 0.17, 0.16),
}
"""The weights of the endpoints, in their order."""

SINGLE_INSERT = "single_insert"

TRIES = 5
"""How many posts are looked for before a page of one is given up."""

TEXT = "Something to say, with enough words for some lines of a page. " * 6


def pick_endpoint(mix: str) -> str:
    """One of the endpoints, by the weights of the mix."""
    [endpoint] = random.choices(ENDPOINTS, MIXES[mix])
    return endpoint
