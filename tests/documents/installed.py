"""What stands in for ``pip`` on pages that make no environment of their own.

It installs nothing. It says whether all that a page asks for is in the environment of the tests:
the distribution, in a version that fits, and the extra with all that it needs.
"""

import sys
from importlib import metadata

from packaging.requirements import Requirement


def missing(requirement: Requirement) -> list[str]:
    """What of a requirement is not here."""
    try:
        found = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        return [str(requirement)]
    lacking = [] if requirement.specifier.contains(found.version, True) else [str(requirement)]
    offered = set(found.metadata.get_all("Provides-Extra") or [])
    for extra in requirement.extras:
        if extra.replace("_", "-").lower() not in {name.replace("_", "-") for name in offered}:
            lacking.append(f"the extra {extra} of {requirement.name}")
        for text in found.requires or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                continue
            if needed.marker.evaluate({"extra": extra}):
                needed.marker = None
                lacking += missing(needed)
    return lacking


def main(arguments: list[str]) -> int:
    """Answers ``pip install REQUIREMENT…``."""
    if not arguments or arguments[0] != "install":
        print("a page that makes no environment of its own only installs", file=sys.stderr)
        return 2
    wanted = [Requirement(argument) for argument in arguments[1:] if not argument.startswith("-")]
    lacking = [text for requirement in wanted for text in missing(requirement)]
    for text in lacking:
        print(f"not in the environment of the tests: {text}", file=sys.stderr)
    return 1 if lacking or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
