"""What is found: illnesses, findings, and the report.

Invariant: all text of a finding is harmless for a terminal; a report holds only what JSON holds.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from oxlite import harmless

__all__ = ["SCHEMA", "SEVERITIES", "Finding", "Illness", "Report", "Severity"]

SCHEMA: Final = "oxlite.doctor/1"
"""The value of ``schema`` in a report as JSON: its form, and the version of that form."""

Severity = Literal["error", "warning", "hint"]
"""How bad a finding is."""

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "hint")
"""The worst first: data is lost or wrong; it will hurt one day; it could be better."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a database.

    Attributes:
        code: Which illness; it stays the same between versions.
        severity: ``error``, ``warning`` or ``hint``.
        what: What was found, here.
        why: Why that matters.
        mend: How it is mended: SQL that ends with a semicolon, a command, or a sentence.
        is_safe: Whether ``mend`` (``--fix``) does it.
    """

    code: str
    severity: Severity
    what: str
    why: str
    mend: str
    is_safe: bool = False


@dataclass(frozen=True, slots=True)
class Illness:
    """A kind of finding, as the page docs/doctor.md lists it.

    Attributes:
        code: Its name.
        severity: How bad it is, unless a finding says otherwise.
        why: Why it matters.
        is_safe: Whether ``mend`` can do what is to be done, where nobody is in the way.
    """

    code: str
    severity: Severity
    why: str
    is_safe: bool = False

    def found(
        self,
        what: str,
        mend: str,
        *,
        severity: Severity | None = None,
        is_safe: bool | None = None,
    ) -> Finding:
        """A finding of this kind; what others have written is made harmless."""
        return Finding(
            self.code,
            severity or self.severity,
            harmless(what),
            self.why,
            "\n".join(map(harmless, mend.split("\n"))),
            self.is_safe if is_safe is None else is_safe,
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What an examination has found.

    Attributes:
        path: The database's file, resolved.
        profile: The profile that it was compared with.
        is_quick: Whether only the quick checks were made.
        facts: What is so, well or not: size, page size, journal mode, file system and so on.
        doors: For each door of Oxlite, the pragmas with which it would open the file.
        processes: Who has it open.
        findings: The worst first.
        notes: What could not be looked at, and why.
    """

    path: str
    profile: str
    is_quick: bool
    facts: Mapping[str, Any]
    doors: tuple[Mapping[str, Any], ...] = ()
    processes: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def is_well(self) -> bool:
        """Whether there are no errors and no warnings; hints are no illness."""
        return all(finding.severity == "hint" for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON can hold it."""
        return {"schema": SCHEMA, "is_well": self.is_well, **asdict(self)}
