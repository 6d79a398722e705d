"""How a server is reached: an entry with its references replaced, as a target and options of a client.

Here secrets become values, in the moment before a server is started; what has no value starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import msgspec

from dragoman.client.options import ClientKeywords
from dragoman.host.config.expand import environment, expand
from dragoman.host.config.limits import limits
from dragoman.host.config.record import ServerConfig
from dragoman.host.regular import read_regular
from dragoman.transports.base import Tap

_SPOKEN: Final = frozenset({"stdio", "http", "sse", "ws"})
_SCHEMES: Final[Mapping[str, tuple[str, ...]]] = {
    "http": ("http", "https"),
    "sse": ("http", "https"),
    "ws": ("ws", "wss"),
}
_LINE: Final = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(?P<value>.*)")
_COMMENT: Final = re.compile(r"\s+#.*")
_LARGEST: Final = 1 << 20  # bytes of a file of variables
_SESSION: Final = token_hex(16)  # of all that this process runs
_STARTUP: Final = 30.0  # seconds, where nothing is known of a host's
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One connection as it is to be made: `entry` and `options` are those of a `Client`.

    `startup` is in how many seconds the tools have to be listed. `tap` is shown every frame. One that is
    `alone` is nobody else's: it answers, or is looked at, for one host.
    """

    name: str
    entry: Mapping[str, Any] = field(repr=False)  # secrets are among it
    options: ClientKeywords = field(repr=False)
    startup: float = _STARTUP
    tap: Tap | None = None
    alone: bool = False

    @property
    def key(self) -> bytes:
        """What two plans have in common that come to the same server, reached in the same way."""
        parts = [self.name, self.entry, self.options]
        try:
            data = _encode(parts)
        except UnicodeEncodeError:  # half of a surrogate pair, which JSON lets people write
            data = repr(parts).encode("utf-8", "backslashreplace")
        return sha256(data).digest()

    @property
    def program(self) -> bool:
        """Whether a process is started."""
        return "command" in self.entry


def plan(
    config: ServerConfig, name: str, *, env: Mapping[str, str], folder: Path | None, protocol: str = "auto"
) -> Plan | str:
    """How the server of an entry is reached, or why it is not.

    `env` is where references are looked up. A file of variables is read here.
    """
    if config.transport not in _SPOKEN:
        return f"transport {config.transport!r} is not spoken here"
    full, missing = expand(config, env)
    if missing:
        return f"no value for the environment variable {', '.join(missing)}"
    times = limits(config, env)
    options: ClientKeywords = {"name": name, "protocol": protocol, "idle_timeout": times.idle}
    startup = times.startup or _STARTUP
    options["connect_timeout"] = startup
    if times.call is not None:
        options["timeout"] = times.call
    if full.transport == "stdio":
        return _program(full, options, env=env, folder=folder, startup=startup)
    scheme, colon, _ = (full.url or "").partition("://")
    if not colon or scheme.lower() not in _SCHEMES[full.transport]:
        expected = " or ".join(f"{word}://" for word in _SCHEMES[full.transport])
        return f"`url`: expected {expected} for transport {full.transport!r}"
    entry = {"type": full.transport, "url": full.url, "headers": dict(full.headers)}
    return Plan(name=name, entry=entry, options=options, startup=startup)


def _program(
    config: ServerConfig,
    options: ClientKeywords,
    *,
    env: Mapping[str, str],
    folder: Path | None,
    startup: float,
) -> Plan | str:
    base = folder or Path()
    if config.env_file is not None:
        try:
            text = read_regular(base / config.env_file, most=_LARGEST).decode("utf-8")
        except (OSError, ValueError) as exc:
            return f"`envFile` {config.env_file!r} cannot be read: {_reason(exc)}"
        config = replace(config, env={**variables(text), **config.env})
    whole = environment(config, env, folder="" if folder is None else str(folder), session=_SESSION)
    entry = {"command": config.command, "args": list(config.args)}
    cwd = str(base / config.cwd) if config.cwd else None if folder is None else str(folder)
    options = {**options, "env": whole, "inherit_env": False, "cwd": cwd}
    return Plan(name=options.get("name") or config.name, entry=entry, options=options, startup=startup)


def _reason(exc: OSError | ValueError) -> str:
    if isinstance(exc, OSError):
        return exc.strerror or ""
    return "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc)


def variables(text: str) -> dict[str, str]:
    """The variables of a file of them: `NAME=value` lines, `export`, quotes and comments as shells have them.

    Lines that are none of it are passed over, and nothing is expanded.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            continue
        value = match["value"]
        quote = value[:1]
        if quote in ("'", '"') and (end := value.find(quote, 1)) > 0:
            value = value[1:end]
            if quote == '"':
                value = value.replace("\\n", "\n")
        else:
            value = _COMMENT.sub("", value).strip()
        found[match["name"]] = value
    return found
