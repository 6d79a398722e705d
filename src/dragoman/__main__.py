"""`python -m dragoman`: the command line, for where the `dragoman` program is not on the path."""

from __future__ import annotations

import sys

from dragoman.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
