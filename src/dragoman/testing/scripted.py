"""`ScriptedServer`: a server that does as the test says, line by line, however wrong that is.

It writes the script; `actor` plays it in a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Self, overload

import msgspec

from dragoman.errors import UsageError
from dragoman.revisions import BY_VERSION, LATEST

_ACTOR: Final = Path(__file__).with_name("actor.py")
_LONGEST: Final = 100_000  # bytes that one argument of a program may have everywhere

Body = Mapping[str, Any]


class ScriptedServer(Sequence[str]):
    """A command line that starts a server with a script: a target for `Client`, or for any other host.

    Each method adds a step and returns the server, so that a script reads from top to bottom::

        server = ScriptedServer().greet().expect("tools/call").complain("out of memory").exit(3)

        async with Client(server) as client:
            with pytest.raises(ClosedError, match="exit status 3"):
                await client.call_tool("any")

    After its last step it does nothing more, and ends when its input does. A client that does anything
    else than what is expected ends it with exit status 97 and a line on stderr that says what came.
    With `log`, each line it receives is added to that file: `heard()` reads them.
    """

    def __init__(self, *, log: Path | str | None = None) -> None:
        self._steps: list[tuple[str, dict[str, Any]]] = []
        self._log = None if log is None else Path(log)

    # Steps -------------------------------------------------------------------------------------------

    def greet(
        self,
        revision: str = LATEST.version,
        *,
        capabilities: Mapping[str, Any] | None = None,
        name: str = "scripted",
    ) -> Self:
        """Agree on `revision` and go on with the first request that is not part of that.

        Raises:
            UsageError: there is no such revision.
        """
        record = BY_VERSION.get(revision)
        if record is None:
            raise UsageError(f"revision: expected one of {', '.join(BY_VERSION)}; received {revision!r}")
        offered: dict[str, Any] = {"tools": {}} if capabilities is None else dict(capabilities)
        hello: dict[str, Any]
        info = {"name": name, "version": "1"}
        if record.handshake:
            hello = {"protocolVersion": revision, "capabilities": offered, "serverInfo": info}
            missing = {"code": -32601, "message": "Method not found"}
            return self.serve({"initialize": hello}, errors={"server/discover": missing})
        hello = {
            "resultType": "complete",
            "supportedVersions": [revision],
            "capabilities": offered,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": info},
        }
        return self.serve({"server/discover": hello})

    def expect(self, method: str, params: Mapping[str, Any] | None = None) -> Self:
        """Wait for a request or notification of this method, with these members in its params."""
        return self._step("expect", method=method, params=None if params is None else dict(params))

    def serve(self, results: Mapping[str, Body], *, errors: Mapping[str, Body] | None = None) -> Self:
        """Answer requests by their method, until one comes that is in neither table."""
        table = {method: {"result": dict(result)} for method, result in results.items()}
        table |= {method: {"error": dict(error)} for method, error in (errors or {}).items()}
        return self._step("serve", methods=table)

    def answer(self, result: Body | None = None, *, error: Body | None = None, to: int = -1) -> Self:
        """Answer the request that was expected last, or the one at place `to` of all that were expected."""
        if (result is None) is (error is None):
            raise UsageError("answer: expected a result or an error")
        body = {"result": dict(result)} if result is not None else {"error": dict(error or {})}
        return self._step("answer", body=body, to=to)

    def say(self, line: str | bytes | Body, *, end: str = "\n", times: int = 1) -> Self:
        """Write a line: text or bytes as they are, or a message.

        `$id` in it becomes the id of the request that was expected last. `end=""` leaves the line unfinished.
        """
        if isinstance(line, bytes):
            text = line.decode("latin-1")
        else:
            data = line.encode() if isinstance(line, str) else msgspec.json.encode(line)
            text = data.decode("latin-1")
        return self._step("say", text=text + end, times=times)

    def complain(self, text: str) -> Self:
        """Write a line to stderr."""
        return self._step("complain", text=f"{text}\n")

    def pause(self, seconds: float) -> Self:
        """Do nothing for a while."""
        return self._step("pause", seconds=seconds)

    def hang(self, *, stubborn: bool = False) -> Self:
        """Do nothing more, until the input ends; or, `stubborn`, until it is killed."""
        return self._step("hang", stubborn=stubborn)

    def close(self, stream: Literal["stdin", "stdout", "stderr"]) -> Self:
        """Close one of the standard streams."""
        return self._step("close", stream=stream)

    def exit(self, status: int = 0) -> Self:
        """End with this status."""
        return self._step("exit", status=status)

    def kill(self, number: int = 9) -> Self:
        """End by this signal."""
        return self._step("kill", number=number)

    def _step(self, name: str, **arguments: Any) -> Self:
        self._steps.append((name, arguments))
        return self

    # As a target -------------------------------------------------------------------------------------

    @property
    def command(self) -> list[str]:
        """The command line that starts it. Raises UsageError for a script that is too long for one."""
        script = {"log": None if self._log is None else str(self._log.absolute()), "steps": self._steps}
        text = msgspec.json.encode(script).decode()
        if len(text.encode()) > _LONGEST:
            hint = 'say("x" * 1000, end="", times=1000) writes long lines'
            raise UsageError(f"a script of more than {_LONGEST} bytes", hint=hint)
        return [sys.executable, "-P", str(_ACTOR), text]

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return self.command[index]

    def __len__(self) -> int:
        return len(self.command)

    def __iter__(self) -> Iterator[str]:
        return iter(self.command)

    def __repr__(self) -> str:
        return f"<ScriptedServer {', '.join(name for name, _ in self._steps)}>"

    def heard(self) -> list[dict[str, Any]]:
        """The messages that it has received so far. Raises UsageError without a `log`."""
        if self._log is None:
            raise UsageError("heard: expected ScriptedServer(log=...), a file to keep what is received")
        if not self._log.exists():
            return []
        return [msgspec.json.decode(line) for line in self._log.read_bytes().splitlines() if line.strip()]
