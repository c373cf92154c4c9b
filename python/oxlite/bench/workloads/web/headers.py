"""The headers by which an answer of a site says what was done: the server's account is of them.

``Blog-Changed`` is such as ``posts-1 comments-8``: by how many rows tables have grown.
"""

CHANGED = "Blog-Changed"
ENDPOINT = "Blog-Endpoint"
FAILURE = "Blog-Failure"
LONGEST_FAILURE = 200


def failure(error: BaseException | None) -> str:
    """What went wrong, in one line of such characters as a header can have."""
    kind = "unknown" if error is None else type(error).__name__
    text = f"{kind}: {' '.join(str(error).split())}"
    return text.encode("ascii", "backslashreplace").decode()[:LONGEST_FAILURE]
