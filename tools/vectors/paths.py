"""Cases of where a host keeps its files."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, Final

from dragoman.host.locations import Machine, locations

from .expecting import Fact
from .forms import Case, is_list, table

_SYSTEMS: Final = {
    **dict.fromkeys(("macos", "darwin", "mac", "osx"), "darwin"),
    **dict.fromkeys(("windows", "win32", "win"), "win32"),
    "linux": "linux",
    "": "linux",
}
_HOME: Final = "/home/u"


def claude(given: Case) -> dict[str, Any]:
    """Claude Code's files."""
    return found("claude-code", given)


def codex(given: Case) -> dict[str, Any]:
    """Codex' files."""
    return found("codex", given)


def found(host: str, given: Case) -> dict[str, Any]:
    """The files of a host on a system; `path` is the one that is asked for, or any."""
    said = str(given.get("os", given.get("platform", given.get("system", "")))).lower()
    if said not in _SYSTEMS:
        raise ValueError(f"os {said!r} is not known: expected one of {', '.join(_SYSTEMS)}")
    env = {name: str(value) for name, value in table(given.get("env")).items()}
    told = Machine(Path(str(given.get("cwd", "/p"))), Path(_HOME), env, _SYSTEMS[said])
    places = [(place.path.as_posix(), place) for place in locations(host, told)]
    wanted = str(given.get("file", given.get("name", "")))
    scope = str(given.get("scope", ""))
    places = [(path, place) for path, place in places if not scope or place.scope == scope]
    kept = [path for path, _ in places if not wanted or path.endswith(wanted)]
    out: dict[str, Any] = {
        **dict.fromkeys(("path", "file", "paths", "files", "location"), _Paths(kept)),
        **{
            place.scope: _Paths([path for path, other in places if other.scope == place.scope])
            for _, place in places
        },
    }
    return out | {PurePosixPath(path).name: _Paths([path]) for path, _ in places}


class _Paths(Fact):
    """Files of which a case names one or some, with `~`, `%APPDATA%` and either slash."""

    def fits(self, wanted: Any) -> bool:
        if is_list(wanted):
            return bool(wanted) and all(self.fits(item) for item in wanted)
        text = str(wanted).replace("\\", "/").removeprefix("C:")
        text = text.replace("%APPDATA%", f"{_HOME}/AppData/Roaming").replace("~", _HOME, 1)
        return any(text in (path, f"{path}/", path.removeprefix("/p/")) for path in self.value)
