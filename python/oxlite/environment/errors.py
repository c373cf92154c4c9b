"""The one error of the environment report: ``Exception → ReportError``.

Invariant: the message is a single line for a user and names the file or the
package that is at fault.
"""

__all__ = ["ReportError"]


class ReportError(Exception):
    """The report cannot be made as asked."""

    @classmethod
    def missing(cls, package: str) -> "ReportError":
        """The error for an optional package that is not installed."""
        return cls(f"{package} is not installed: pip install 'oxlite[cli]'")
