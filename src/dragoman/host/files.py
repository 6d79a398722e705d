"""A project's files on disk: which of them are read, in what order, and what is wrong with them.

What `Host` reads by itself; `reading` has all files of every host. What they mean is for `config`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman.host.config.claude import read_rules, read_servers
from dragoman.host.config.record import Origin, Problem, Rule, Scope, ServerConfig

SERVERS: Final = ".mcp.json"
_SETTINGS: Final[tuple[tuple[str, Scope], ...]] = (
    (".claude/settings.local.json", "local"),
    (".claude/settings.json", "project"),
)


@dataclass(frozen=True, slots=True)
class Project:
    """What the files of a project say, as written: its servers and the permission rules for their tools."""

    folder: Path
    servers: tuple[ServerConfig, ...]
    rules: tuple[Rule, ...]
    problems: tuple[Problem, ...]


def read_project(
    folder: Path | str, *, servers: str = SERVERS, user: bool = True, env: Mapping[str, str] | None = None
) -> Project:
    """Read `.mcp.json` and the settings of a project, and with `user` those of the person.

    `servers` is another file in place of `.mcp.json`, relative to the folder. A file that is missing or
    broken is a problem, never an exception. Lists of rules merge over all files.
    """
    folder = Path(folder).resolve()
    problems: list[Problem] = []
    found: tuple[ServerConfig, ...] = ()
    text = _read(folder / servers, servers, problems=problems, needed=True)
    if text is not None:
        file = read_servers(text, servers)
        found = file.servers
        problems += file.problems
    rules: list[Rule] = []
    for path, shown, scope in _settings(folder, os.environ if env is None else env, user=user):
        text = _read(path, shown, problems=problems, needed=False)
        if text is not None:
            settings = read_rules(text, shown, scope=scope)
            rules += settings.rules
            problems += settings.problems
    return Project(folder, found, tuple(rules), tuple(problems))


def _settings(folder: Path, env: Mapping[str, str], *, user: bool) -> list[tuple[Path, str, Scope]]:
    files: list[tuple[Path, str, Scope]] = [(folder / name, name, scope) for name, scope in _SETTINGS]
    if user:
        moved = env.get("CLAUDE_CONFIG_DIR")
        home = Path(moved) if moved else Path.home() / ".claude"
        shown = f"{moved}/settings.json" if moved else "~/.claude/settings.json"
        files.append((home / "settings.json", shown, "user"))
    return files


def _read(path: Path, shown: str, *, problems: list[Problem], needed: bool) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        if needed:
            problems.append(Problem(f"no such file ({path})", Origin(shown)))
    except OSError as exc:
        problems.append(Problem(f"cannot be read: {exc.strerror}", Origin(shown)))
    except UnicodeDecodeError as exc:
        problems.append(
            Problem(f"not UTF-8: byte {exc.object[exc.start]:#04x} at offset {exc.start}", Origin(shown))
        )
    return None
