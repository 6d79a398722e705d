"""Which files of Claude Code's plugins bring servers: those of plugins that are installed and switched on.

Pure: it is handed the texts that say so, and names further files. A project's own settings switch a plugin
on only in a folder that is trusted, and off always.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman.host.config.located import JsonError, parse
from dragoman.host.config.record import Scope, Source, named
from dragoman.host.locations import PLUGINS, Location, Machine
from dragoman.schema.shapes import is_array, is_object

MANIFEST: Final = ".claude-plugin/plugin.json"
_ORDER: Final[tuple[Scope, ...]] = ("user", "project", "local", "managed")
_OWN: Final = frozenset({"user", "managed"})
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")


def plugin_files(sources: Sequence[Source], machine: Machine, *, trusted: bool | None) -> list[Location]:
    """The files in which a plugin's servers stand, by the list of installed ones and all settings.

    `trusted` is the person's word on the folder, None for what the program's own state says.
    """
    if trusted is None:
        trusted = _accepted(sources, str(machine.folder))
    enabled = _enabled(sources, trusted=trusted)
    moved = machine.env.get("CLAUDE_CONFIG_DIR")
    home = Path(moved) if moved else machine.home / ".claude"
    found: list[Location] = []
    for source in named(sources, "plugins"):
        for plugin, root in _installed(_value(source), str(machine.folder)):
            if enabled.get(plugin) is not True:
                continue
            name = plugin.partition("@")[0]
            places = {
                "CLAUDE_PLUGIN_ROOT": str(root),
                "CLAUDE_PLUGIN_DATA": str(home / Path(PLUGINS).parent / "data" / _ODD.sub("-", plugin)),
            }
            for path, kind in ((root / ".mcp.json", "servers"), (root / MANIFEST, "manifest")):
                found.append(Location(path, "plugin", kind, name=name, variables=places))
    return found


def named_files(source: Source) -> Iterator[Location]:
    """The files that a plugin's manifest names for its servers; none outside of the plugin's folder."""
    if source.kind != "manifest":
        return
    value = _value(source)
    listed: Any = value.get("mcpServers") if is_object(value) else None
    root = Path(source.variables["CLAUDE_PLUGIN_ROOT"])
    for item in listed if is_array(listed) else [listed]:
        if isinstance(item, str) and not Path(item).is_absolute() and ".." not in Path(item).parts:
            yield Location(root / item, "plugin", name=source.name, variables=source.variables)


def _value(source: Source) -> Any:
    try:
        return parse(source.text).value
    except JsonError:
        return None


def _accepted(sources: Iterable[Source], folder: str) -> bool:
    for source in named(list(sources), "state"):
        value = _value(source)
        projects: Any = value.get("projects") if is_object(value) else None
        own: Any = projects.get(folder) if is_object(projects) else None
        if is_object(own) and own.get("hasTrustDialogAccepted") is True:
            return True
    return False


def _enabled(sources: Sequence[Source], *, trusted: bool) -> dict[str, bool]:
    """What the settings switch on and off, the strongest last."""
    enabled: dict[str, bool] = {}
    for scope in _ORDER:
        for source in named(sources, "settings", scope):
            value = _value(source)
            table: Any = value.get("enabledPlugins") if is_object(value) else None
            enabled |= {
                plugin: on
                for plugin, on in (table.items() if is_object(table) else ())
                if on is False or (on is True and (trusted or scope in _OWN))
            }
    return enabled


def _installed(value: Any, folder: str) -> Iterator[tuple[str, Path]]:
    """Each plugin and where it is, of both forms of the list; those that are another project's are not."""
    table: Any = value.get("plugins") if is_object(value) else None
    for plugin, entry in table.items() if is_object(table) else ():
        for item in entry if is_array(entry) else [entry]:
            if is_object(item) and _is_here(item, folder):
                yield plugin, Path(str(item["installPath"]))
                break


def _is_here(item: Mapping[str, Any], folder: str) -> bool:
    path, project = item.get("installPath"), item.get("projectPath")
    return isinstance(path, str) and Path(path).is_absolute() and project in (None, folder)
