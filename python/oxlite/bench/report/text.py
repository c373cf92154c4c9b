"""Text from files in a report: messages of errors, names of processors, notes.

Invariant: none of it commands a terminal, hides or turns round what stands beside it, or makes a
document invalid: control characters are written out, whatever the form of the report.
"""

from oxlite import harmless


def plain(text: str) -> str:
    """The text with its ends of lines, and no other control character."""
    return "\n".join(map(harmless, text.split("\n")))
