"""``python -m oxlite.cli``: the same as the command ``oxlite``."""

import sys

from oxlite.cli import main

if __name__ == "__main__":
    sys.exit(main())
