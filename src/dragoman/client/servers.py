"""What a group of servers is made from: a mapping or a file, read to one target a name.

An entry that cannot be used hurts itself alone: it becomes the reason why that server is not there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec

from dragoman.client.target import TargetLike
from dragoman.errors import UsageError
from dragoman.protocol.variables import Expansion
from dragoman.schema.shapes import is_array, is_object

SERVERS: Final = "mcpServers"

ServersLike: TypeAlias = Mapping[str, TargetLike] | Mapping[str, Any] | str | Path


@dataclass(frozen=True, slots=True)
class Unusable:
    """An entry from which no server can be started, and why."""

    why: str


def read(config: ServersLike, env: Mapping[str, str] | None = None) -> dict[str, TargetLike | Unusable]:
    """One target for each server of `config`, in its order.

    `config` maps names to targets, or is what a configuration file holds (`{"mcpServers": {...}}`), or the
    path of one. In entries, `${NAME}` and `${NAME:-default}` are replaced from `env`, the process's own
    environment without it; toward another machine the credentials of this one read as empty.

    Raises:
        UsageError: the file cannot be read, or `config` as a whole is none of these.
    """
    table: Any = _file(Path(config)) if isinstance(config, str | Path) else config
    where = str(config) if isinstance(config, str | Path) else "servers"
    if is_object(table) and SERVERS in table:
        table = table[SERVERS]
        where += f": `{SERVERS}`"
    elif isinstance(config, str | Path):
        raise UsageError(f"{where}: expected an object with `{SERVERS}`")
    if not isinstance(table, Mapping):
        raise UsageError(f"{where}: expected an object of servers by name; received {type(table).__name__}")
    environment = os.environ if env is None else env
    entries: Mapping[Any, Any] = cast("Any", table)
    for name in entries:
        if not isinstance(name, str) or not name:
            raise UsageError(f"{where}: expected a name for each server; received {name!r}")
    return {name: entry(value, environment) for name, value in entries.items()}


def entry(value: Any, env: Mapping[str, str]) -> TargetLike | Unusable:
    """A target as it was given, a configuration entry with its references replaced."""
    if not isinstance(value, Mapping):
        return (
            cast("TargetLike", value) if value is not None else Unusable("expected a target, received null")
        )
    given = cast("Mapping[str, Any]", value)
    if given.get("disabled") is True:
        return Unusable("it is disabled in the configuration")
    here, there = Expansion(env, remote=False), Expansion(env, remote=True)
    full = {
        name: _expand(inner, there if name in ("url", "headers") else here) for name, inner in given.items()
    }
    missing = dict.fromkeys((*here.missing, *there.missing))
    if missing:
        return Unusable(f"no value for the environment variable {', '.join(missing)}")
    return full


def _expand(value: Any, expansion: Expansion) -> Any:
    if isinstance(value, str):
        return expansion.text(value)
    if is_array(value):
        return [_expand(item, expansion) for item in value]
    if is_object(value):
        return {name: _expand(item, expansion) for name, item in value.items()}
    return value


def _file(path: Path) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes())
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as exc:
        raise UsageError(f"{path}: not JSON: {exc}") from None
