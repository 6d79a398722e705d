"""Where each host keeps its files, on each system. Opens none.

A file that is named here need not be there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from dragoman.host.config.record import Scope


@dataclass(frozen=True, slots=True)
class Machine:
    """What paths depend on: the project's folder, the person's home, the environment, the system.

    `system` is as `sys.platform` has it. `root` stands before the paths that are the machine's.
    """

    folder: Path
    home: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    system: str = "linux"
    root: Path = Path("/")


@dataclass(frozen=True, slots=True)
class Location:
    """A file, or with `many` all files of a folder that end so; `scope` and `kind` are its dialect's.

    A `many` with `*` in it is a pattern below the folder, and the first of its folders is a file's `name`.
    `name` is the plugin's, where one brought the file; `variables` are places that its entries refer to.
    """

    path: Path
    scope: Scope
    kind: str = "servers"
    many: str = ""
    name: str = ""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


PLUGINS: Final = "plugins/installed_plugins.json"
"""Where Claude Code keeps, below its home, which plugins are installed and where."""

Finder: TypeAlias = Callable[[Machine], Iterator[Location]]


def locations(host: str, machine: Machine) -> list[Location]:
    """The files of a host; none for one that has none that are known."""
    finder = _FINDERS.get(host)
    return [] if finder is None else list(finder(machine))


def own(machine: Machine) -> list[Location]:
    """The files of Dragoman's own rules."""
    home = Path(machine.env.get("XDG_CONFIG_HOME") or machine.home / ".config")
    return [
        Location(machine.root / "etc/dragoman/permissions.toml", "managed", "permissions"),
        Location(home / "dragoman/permissions.toml", "user", "permissions"),
        Location(machine.folder / ".dragoman/permissions.toml", "project", "permissions"),
    ]


def _claude(machine: Machine) -> Iterator[Location]:
    moved = machine.env.get("CLAUDE_CONFIG_DIR")
    home = Path(moved) if moved else machine.home / ".claude"
    organisation = {
        "darwin": machine.root / "Library/Application Support/ClaudeCode",
        "win32": machine.root / "Program Files/ClaudeCode",
    }.get(machine.system, machine.root / "etc/claude-code")
    yield Location(organisation / "managed-mcp.json", "managed", "exclusive")
    yield Location(organisation / "managed-settings.json", "managed", "settings")
    yield Location((Path(moved) if moved else machine.home) / ".claude.json", "user", "state")
    yield Location(machine.folder / ".mcp.json", "project")
    yield Location(machine.folder / ".claude/settings.local.json", "local", "settings")
    yield Location(machine.folder / ".claude/settings.json", "project", "settings")
    yield Location(home / "settings.json", "user", "settings")
    yield Location(home / PLUGINS, "user", "plugins")


def _codex(machine: Machine) -> Iterator[Location]:
    moved = machine.env.get("CODEX_HOME")
    home = Path(moved) if moved else machine.home / ".codex"
    yield Location(machine.root / "etc/codex/config.toml", "system", "config")
    yield Location(machine.root / "etc/codex/requirements.toml", "managed", "requirements")
    yield Location(machine.root / "etc/codex/managed_config.toml", "managed", "config")
    yield Location(home / "config.toml", "user", "config")
    yield Location(machine.folder / ".codex/config.toml", "project", "config")


def _cursor(machine: Machine) -> Iterator[Location]:
    home, project = machine.home / ".cursor", machine.folder / ".cursor"
    yield Location(home / "mcp.json", "user")
    yield Location(project / "mcp.json", "project")
    yield Location(home / "permissions.json", "user", "permissions")
    yield Location(project / "permissions.json", "project", "permissions")
    yield Location(home / "cli-config.json", "user", "cli")
    yield Location(project / "cli.json", "project", "cli")


def _editor(machine: Machine, name: str) -> Path:
    """The folder of the settings of an editor."""
    if machine.system == "darwin":
        return machine.home / "Library/Application Support" / name
    if machine.system == "win32":
        return Path(machine.env.get("APPDATA") or machine.home / "AppData/Roaming") / name
    return Path(machine.env.get("XDG_CONFIG_HOME") or machine.home / ".config") / name


def _vscode(machine: Machine) -> Iterator[Location]:
    user = _editor(machine, "Code") / "User"
    yield Location(user / "mcp.json", "user")
    yield Location(machine.folder / ".vscode/mcp.json", "project")
    yield Location(machine.folder / ".mcp.json", "project", "root")
    yield Location(machine.folder / ".devcontainer/devcontainer.json", "project", "devcontainer")
    yield Location(user / "settings.json", "user", "settings")
    yield Location(machine.folder / ".vscode/settings.json", "project", "settings")


def _desktop(machine: Machine) -> Iterator[Location]:
    yield Location(_editor(machine, "Claude") / "claude_desktop_config.json", "user")


def _gemini(machine: Machine) -> Iterator[Location]:
    everyone = {
        "darwin": machine.root / "Library/Application Support/GeminiCli",
        "win32": machine.root / "ProgramData/gemini-cli",
    }.get(machine.system, machine.root / "etc/gemini-cli")
    home = machine.home / ".gemini"
    yield Location(everyone / "system-defaults.json", "cloud", "settings")
    yield Location(home / "settings.json", "user", "settings")
    yield Location(machine.folder / ".gemini/settings.json", "project", "settings")
    yield Location(everyone / "settings.json", "system", "settings")
    yield Location(home / "extensions/extension-enablement.json", "user", "enablement")
    yield Location(home / "extensions", "plugin", "extension", many="*/gemini-extension.json")
    yield Location(home / "policies", "user", "policy", many=".toml")
    yield Location(home / "extensions", "plugin", "policy", many="*/policies/*.toml")
    yield Location(everyone / "policies", "managed", "policy", many=".toml")


def _opencode(machine: Machine) -> Iterator[Location]:
    home = Path(machine.env.get("XDG_CONFIG_HOME") or machine.home / ".config") / "opencode"
    for name in ("opencode.json", "opencode.jsonc"):
        yield Location(home / name, "user", "config")
    for name in ("opencode.json", "opencode.jsonc"):
        yield Location(machine.folder / name, "project", "config")


def _zed(machine: Machine) -> Iterator[Location]:
    home = _editor(machine, "Zed" if machine.system == "win32" else "zed")
    if machine.system == "darwin":
        home = machine.home / ".config/zed"
    yield Location(home / "settings.json", "user", "settings")
    yield Location(machine.folder / ".zed/settings.json", "project", "settings")


def _extension(machine: Machine, name: str) -> Path:
    return _editor(machine, "Code") / "User/globalStorage" / name / "settings"


def _cline(machine: Machine) -> Iterator[Location]:
    yield Location(_extension(machine, "saoudrizwan.claude-dev") / "cline_mcp_settings.json", "user")
    yield Location(machine.home / ".cline/mcp.json", "user")


def _roo(machine: Machine) -> Iterator[Location]:
    yield Location(_extension(machine, "rooveterinaryinc.roo-cline") / "mcp_settings.json", "user")
    yield Location(machine.folder / ".roo/mcp.json", "project")


def _continue(machine: Machine) -> Iterator[Location]:
    yield Location(machine.home / ".continue/config.yaml", "user", "config")
    yield Location(machine.home / ".continue/mcpServers", "user", "servers", many=".json")
    yield Location(machine.folder / ".continue/mcpServers", "project", "servers", many=".json")


def _copilot(machine: Machine) -> Iterator[Location]:
    moved = machine.env.get("COPILOT_HOME")
    home = Path(moved) if moved else machine.home / ".copilot"
    yield Location(home / "mcp-config.json", "user")
    yield Location(machine.folder / ".mcp.json", "project")
    yield Location(machine.folder / ".github/mcp.json", "project")


_FINDERS: Final[Mapping[str, Finder]] = {
    "claude-code": _claude,
    "codex": _codex,
    "cursor": _cursor,
    "vscode": _vscode,
    "claude-desktop": _desktop,
    "gemini-cli": _gemini,
    "opencode": _opencode,
    "zed": _zed,
    "cline": _cline,
    "roo-code": _roo,
    "continue": _continue,
    "copilot-cli": _copilot,
}
