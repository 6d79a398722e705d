"""What a client can be pointed at, and the transport that leads there.

It reads the target and nothing else: no file is run and nothing is connected to.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from dragoman.client.cache import AuthContext
from dragoman.client.options import ClientOptions
from dragoman.errors import UsageError
from dragoman.protocol.call import Kernel
from dragoman.schema.shapes import is_array, is_object
from dragoman.transports.base import Transport
from dragoman.transports.child import ChildTransport
from dragoman.transports.http_base import parse_address
from dragoman.transports.http_client import HttpTransport
from dragoman.transports.memory import MemoryTransport
from dragoman.transports.spawn import check_command
from dragoman.transports.sse_client import SseTransport
from dragoman.transports.ws_client import SCHEMES, WebSocketTransport, parse_ws


@runtime_checkable
class InProcess(Protocol):
    """A server in this process, such as `dragoman.Server`."""

    @property
    def name(self) -> str:
        """What the server is called."""
        ...

    @property
    def kernel(self) -> Kernel:
        """What answers admitted calls."""
        ...


TargetLike: TypeAlias = str | Path | Sequence[str] | Mapping[str, Any] | InProcess | Transport

_EXPECTED: Final = (
    "a URL, a command line (list or str), a path to a .py file, a server object, "
    "a configuration entry or a transport"
)
_SSE: Final = "sse"
_URL_TYPES: Final = frozenset({_SSE, "ws", "http", "streamable-http", "streamableHttp", "streamable_http"})
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BARE_ADDRESS: Final = re.compile(r"[A-Za-z0-9.-]+:\d+(/\S*)?")
_PYTHON_FILE: Final = re.compile(r"(?P<file>.*\.py)(:(?P<name>[A-Za-z_][A-Za-z0-9_.]*))?")


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect: `name` for errors, `make` for a new transport each time.

    `key` names the server as such, for what is remembered of it; None where nothing should be.
    `context` is what authorises the requests, for what is kept of the answers.
    `restarts` says whether a second `make` gives a second server. `ours`: it is a program of this
    package, which answers every question: where it ends, a second start would only say the same once more.
    `older` makes a transport of the kind that came before the one of `make`, for servers that have no other.
    """

    name: str
    make: Callable[[], Transport]
    key: str | None = field(default=None, repr=False)  # holds arguments, which may be secrets
    restarts: bool = False
    context: AuthContext = field(default_factory=AuthContext)
    ours: bool = False
    older: Callable[[], Transport] | None = None


def resolve(target: TargetLike, options: ClientOptions) -> Target:
    """What `target` means.

    Raises:
        UsageError: it means nothing, or more than one thing; the error says how it was understood.
    """
    if isinstance(target, str):
        return _text(target, options)
    if isinstance(target, Path):
        return _path(target, options)
    if isinstance(target, Mapping):
        return _entry(target, options)
    if isinstance(target, InProcess):
        _useless(options, "a server in this process", "env", "cwd", "headers", "http")
        return _in_process(target, options)
    if isinstance(target, Sequence):
        return _command(list(target), options)
    if hasattr(target, "exchange") and hasattr(target, "open"):
        _useless(options, "a transport", "env", "cwd", "headers", "http")
        return _transport(target, options)
    raise UsageError(f"target: expected {_EXPECTED}; received {type(target).__name__}")


def _text(text: str, options: ClientOptions) -> Target:
    text = text.strip()
    if _SCHEME.match(text) is not None:
        return _url(text, options)
    if _BARE_ADDRESS.fullmatch(text) and not _exists(text):
        raise UsageError(f"target {text!r}: an address without a scheme", hint=f"http://{text}")
    file = _file(text)
    if file is not None:
        return _python(Path(file["file"]), options, name=file["name"])
    words = _split(text)
    if words and words[0].endswith(".py"):
        # The arguments are not shown: they may be secrets.
        hint = f"a list: [sys.executable, {words[0]!r}, ...]"
        raise UsageError(f"target {words[0]!r}: a .py file with arguments is no command line", hint=hint)
    return _command(words, options)


def _file(text: str) -> re.Match[str] | None:
    """The parts of a text that names a Python file."""
    file = _PYTHON_FILE.fullmatch(text)
    return file if file is not None and (_exists(file["file"]) or not re.search(r"\s", text)) else None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as exc:
        # Not shown: a command line may hold secrets.
        raise UsageError(f"target: read as a command line, but {exc}") from None


def command_line(text: str) -> list[str] | None:
    """The words of a target that is read as a command line; None for an address or a Python file.

    Raises:
        UsageError: its quotes do not close.
    """
    text = text.strip()
    return None if _SCHEME.match(text) is not None or _file(text) is not None else _split(text)


def _exists(path: str) -> bool:
    # `os.path` says no where `pathlib` raises, as for a name that is too long.
    return os.path.exists(path)  # noqa: PTH110  # as just said


def _path(path: Path, options: ClientOptions) -> Target:
    if path.suffix == ".py":
        return _python(path, options)
    return _command([str(path)], options)


def _python(file: Path, options: ClientOptions, *, name: str | None = None) -> Target:
    base = Path(options.cwd) if options.cwd is not None else Path()
    if not os.path.isfile(base / file):  # noqa: PTH113  # as in `_exists`
        raise UsageError(f"target {str(file)!r}: no such file ({(base / file).absolute()})")
    _useless(options, "a program", "headers", "http")
    where = str(file) if name is None else f"{file}:{name}"
    # -P: only the file's own folder is on the path, as for any script, and not wherever this is started.
    words = [sys.executable, "-P", "-m", "dragoman", "run", where]
    return replace(_child(words, options, name=options.name or file.stem), ours=True)


def _command(words: Sequence[str], options: ClientOptions) -> Target:
    if not words:
        raise UsageError("target: a command line without a program")
    _useless(options, "a program", "headers", "http")
    return _child(check_command(words, options.name), options, name=options.name)


def _child(line: list[str], options: ClientOptions, *, name: str | None) -> Target:
    env, cwd, inherit = options.env, options.cwd, options.inherit_env

    def make() -> Transport:
        return ChildTransport(line, env=env, inherit=inherit, cwd=cwd, name=name)

    # The directory counts: the same words may be another program in another place.
    key = "\0".join([str(Path(cwd or ".").absolute()), *line])
    context = AuthContext(frozenset((env or {}).items()))
    return Target(name or make().name, make, key=key, restarts=True, context=context)


def _url(url: str, options: ClientOptions, *, kind: str | None = None) -> Target:
    _useless(options, "a URL", "env", "cwd")
    if url.partition(":")[0].lower() in SCHEMES:
        return _web_socket(url, options)
    address = parse_address(url)

    def make() -> Transport:
        return HttpTransport(url, headers=options.headers, name=options.name, options=options.http)

    def older() -> Transport:
        return SseTransport(url, headers=options.headers, name=options.name, options=options.http)

    # Without user and query: they may be secrets, and do not tell servers apart.
    key = f"{address.scheme}://{address.authority}{address.target.partition('?')[0]}"
    context = AuthContext(url, frozenset((options.headers or {}).items()))
    name = make().name
    if kind == _SSE:
        return Target(name, older, key=f"{_SSE} {key}", restarts=True, context=context)
    return Target(name, make, key=key, restarts=True, context=context, older=older)


def _web_socket(url: str, options: ClientOptions) -> Target:
    def make() -> Transport:
        return WebSocketTransport(url, headers=options.headers, name=options.name, options=options.http)

    context = AuthContext(url, frozenset((options.headers or {}).items()))
    address = parse_ws(url)
    key = f"ws {address.scheme}://{address.authority}{address.target.partition('?')[0]}"
    return Target(make().name, make, key=key, restarts=True, context=context)


def _entry(entry: Mapping[str, Any], options: ClientOptions) -> Target:
    """One entry of `mcpServers`, or a whole file of which there is only one."""
    servers = entry.get("mcpServers")
    if is_object(servers):
        if len(servers) != 1:
            names = ", ".join(map(str, servers)) or "none"
            raise UsageError(f"target: expected one entry of `mcpServers`; received {len(servers)} ({names})")
        ((name, inner),) = servers.items()
        return _entry({"name": name, **inner}, options)
    command, url = entry.get("command"), entry.get("url")
    kind = entry.get("type")
    if command is not None and url is not None:
        raise UsageError("target: a configuration entry with both `command` and `url`: which one is meant?")
    if url is not None:
        return _url_entry(entry, options)
    if command is None:
        raise UsageError("target: a configuration entry needs `command` or `url`; it has " + _members(entry))
    if kind not in (None, "stdio"):
        raise UsageError(f"target: type {kind!r} in a configuration entry with `command`: expected 'stdio'")
    arguments: list[str] = _member(entry, "args", kind=list) or []
    env: Mapping[str, str] = _member(entry, "env", kind=Mapping) or {}
    words: list[Any] = [*command, *arguments] if is_array(command) else [command, *arguments]
    merged = {**env, **(options.env or {})} or None
    cwd = options.cwd or entry.get("cwd")
    return _command(words, replace(_named(entry, options), env=merged, cwd=cwd))


def _url_entry(entry: Mapping[str, Any], options: ClientOptions) -> Target:
    kind = entry.get("type")
    if kind is not None and kind not in _URL_TYPES:
        text = f"target: type {kind!r} in a configuration entry with `url`: expected 'http', 'sse' or 'ws'"
        raise UsageError(text)
    url = entry["url"]
    if not isinstance(url, str):
        raise UsageError(f"target: `url`: expected a string; received {type(url).__name__}")
    headers: Mapping[str, str] = _member(entry, "headers", kind=Mapping) or {}
    merged = {**headers, **(options.headers or {})} or None
    return _url(url, replace(_named(entry, options), headers=merged), kind=kind)


def _named(entry: Mapping[str, Any], options: ClientOptions) -> ClientOptions:
    name = entry.get("name")
    return replace(options, name=name) if options.name is None and isinstance(name, str) else options


def _in_process(server: InProcess, options: ClientOptions) -> Target:
    name = options.name or server.name
    return Target(name, lambda: MemoryTransport(server.kernel, name))


def _transport(transport: Transport, options: ClientOptions) -> Target:
    return Target(options.name or transport.name, lambda: transport)


def _member(entry: Mapping[str, Any], name: str, *, kind: type) -> Any:
    value = entry.get(name)
    if value is not None and not isinstance(value, kind):
        expected = "a list" if kind is list else "an object"
        raise UsageError(f"target: `{name}`: expected {expected}; received {type(value).__name__}")
    return value


def _members(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in entry) or "nothing"


def _useless(options: ClientOptions, kind: str, *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise UsageError(f"{name}: of no use for {kind}")
