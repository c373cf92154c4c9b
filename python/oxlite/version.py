"""The version of the package's Python files.

The native module has the same, or it is another installation's: `oxlite` compares them when it is
imported.
"""

__all__ = ["VERSION"]

VERSION = "0.1.0"
