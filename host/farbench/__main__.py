"""`python -m farbench` is the command `farbench`."""

from __future__ import annotations

import sys

from farbench.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
