"""The providers' published types, behind a function each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.needs import peer_python

SCRIPT = Path(__file__).parent / "peers" / "published.py"


class Published:
    """What the peer says of values: see its script."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _ask(self, what: str, api: str, value: Any) -> dict[str, Any]:
        self._process.stdin.write(json.dumps({"what": what, "api": api, "value": value}) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def request(self, api: str, value: Any) -> list[str]:
        return self._ask("request", api, value)["faults"]

    def event(self, api: str, value: Any) -> list[str]:
        return self._ask("event", api, value)["faults"]

    def message(self, api: str, value: Any) -> list[str]:
        return self._ask("message", api, value)["faults"]

    def openapi(self, value: Any) -> list[str]:
        return self._ask("openapi", "gemini", value)["faults"]

    def read(self, api: str, events: list[Any]) -> dict[str, Any]:
        said = self._ask("read", api, events)
        assert "message" in said, said
        return said["message"]


@pytest.fixture(scope="session")
def published() -> Iterator[Published]:
    command = [peer_python("providers"), str(SCRIPT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Published(process)
        process.stdin.close()
