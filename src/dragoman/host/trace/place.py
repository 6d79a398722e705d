"""Where a trace is kept when nobody says where. It opens nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "DRAGOMAN_TRACE"


def usual_place(env: Mapping[str, str] | None = None) -> Path:
    """The file that `DRAGOMAN_TRACE` names, or `trace.jsonl` in the folder for the user's state."""
    named = (os.environ if env is None else env).get(VARIABLE)
    if named:
        return Path(named).expanduser()
    from platformdirs import user_state_path

    return user_state_path("dragoman", appauthor=False) / "trace.jsonl"
