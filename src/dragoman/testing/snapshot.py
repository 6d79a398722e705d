"""Snapshots: a JSON value beside the test, and a test that fails where the value is another one now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from dragoman.schema.difference import differences


def check_snapshot(value: Any, path: Path | str, *, update: bool = False) -> None:
    """Hold a value, such as what `client.list_tools()` returned, against the file; with `update`, write it.

    `value` is anything that can be encoded as JSON. Members are in order of their names in the file, so that
    their order in the program makes no difference.

    Raises:
        AssertionError: there is no file, or the value is another one; says where, what it was and is.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    path = Path(path)
    plain = msgspec.json.decode(msgspec.json.encode(value))
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(plain, order="sorted"), indent=2) + b"\n")
        return
    if not path.exists():
        raise AssertionError(f"there is no snapshot {path} yet: run pytest --mcp-update to write it")
    found = differences(msgspec.json.decode(path.read_bytes()), plain)
    if found:
        lines = "\n".join(f"  {line}" for difference in found for line in str(difference).splitlines())
        raise AssertionError(
            f"{path} is another one now:\n{lines}\n"
            "run pytest --mcp-update if that is meant (-: no longer there, +: new, ~: changed)"
        )
