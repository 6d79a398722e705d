"""Whether handlers may have dependencies at all: as long as nobody wrote `Depends`, none can.

So that servers without them do not load what resolves them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.server.depends import Injection


def find_injection() -> Injection | None:
    """Who finds the dependencies of a handler while its signature is read; None where there can be none."""
    module = sys.modules.get("dragoman.server.depends")
    return None if module is None else module.Injection()
