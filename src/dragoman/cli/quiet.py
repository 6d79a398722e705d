"""The library's log, where a command tells in its own words what goes wrong with servers."""

from __future__ import annotations

import logging


def quiet() -> None:
    """Show nothing of the log, which Python would otherwise print as the last resort."""
    logging.getLogger("dragoman").addHandler(logging.NullHandler())
