"""All that files say to one host of a project: its own and Dragoman's, and which servers may be started.

Read at one moment and kept; nothing of what they say is run here. A project's own file starts nothing
and allows nothing before a person has said yes to the folder or to the server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, get_args

from dragoman.host.config import claude, codex
from dragoman.host.config.record import (
    Problem,
    Scope,
    ServerConfig,
    Setup,
    Situation,
    Source,
    Standing,
)
from dragoman.host.locations import Machine
from dragoman.host.reading import read_own, read_setup

PROJECT: Final[tuple[Scope, ...]] = ("project", "local")
"""The scopes of files that lie in a project's folder."""

OUTSIDE: Final[tuple[Scope, ...]] = tuple(scope for scope in get_args(Scope) if scope not in PROJECT)
"""The scopes of all others."""

# Hosts that write down themselves which folders the person trusts, in files that are the person's.
_RECORDS: Final = frozenset({claude.HOST, codex.HOST})
_UNTRUSTED: Final = "a project's file: nobody has trusted the folder or approved the server"


@dataclass(frozen=True, slots=True)
class HostFiles:
    """What the files say, and how far they count.

    `setup` is the host's, `own` Dragoman's. `trusted`: the person's word on the folder, given here or in
    the host's own files. `mode` is the host's permission mode, "" for what its files set; `interactive`
    says whether there is a person to ask. `outside` is what the host's files come to without those of the
    project's folder; None where the folder is trusted, and they count like all others.
    """

    setup: Setup
    own: Setup
    machine: Machine
    trusted: bool = False
    mode: str = ""
    interactive: bool = False
    outside: Setup | None = None

    @property
    def host(self) -> str:
        """The dialect's name."""
        return self.setup.host

    @property
    def servers(self) -> dict[str, Standing]:
        """One entry for each name: the one that is used, else the first that waits, else the first."""
        best: dict[str, Standing] = {}
        for name, item in _named(self.setup.servers):
            held = best.get(name)
            if held is None or (_WEIGHT.get(item.state, 0) > _WEIGHT.get(held.state, 0)):
                best[name] = item
        return best

    @property
    def problems(self) -> Iterator[Problem]:
        """What is wrong with the files, and what their authors should know of the entries."""
        yield from self.setup.problems
        yield from self.own.problems
        for item in self.servers.values():
            config = item.config
            for text in config.warnings:
                yield Problem(f"server {config.name!r}: {text}", config.origin, config.name)

    def situation(self, now: float = 0.0) -> Situation:
        """What calls are decided in."""
        return Situation(
            folder=str(self.machine.folder),
            trusted=self.trusted,
            interactive=self.interactive,
            mode=self.mode,
            env=self.machine.env,
            home=str(self.machine.home),
            now=now,
        )

    def approve(self, yes: Mapping[str, ServerConfig], *, why: str = "approved by a person") -> HostFiles:
        """The same, with a person's yes to entries that wait for one; `why` is what is then said of them.

        An entry that the yes is for is used in place of a weaker one of its name.
        """
        standing: list[Standing] = []
        for item in self.setup.servers:
            name = item.config.name
            if item.state == "pending" and yes.get(name) == item.config:
                standing.append(Standing(item.config, "active", why))
            elif item.state == "active" and name in yes and yes[name] != item.config:
                why = f"the entry in {yes[name].origin} is used"
                standing.append(Standing(item.config, "shadowed", why, yes[name].origin))
            else:
                standing.append(item)
        return replace(self, setup=replace(self.setup, servers=tuple(standing)))


_WEIGHT: Final = {"active": 2, "pending": 1}


def _named(servers: Iterable[Standing]) -> Iterator[tuple[str, Standing]]:
    """Entries by name. Of a host for which two files' servers of one name are two, the second has its file's
    name too.
    """
    used: set[str] = set()
    for item in servers:
        name = item.config.name
        if item.state == "active":
            if name in used:
                name = f"{name} ({item.config.origin.file})"
            used.add(name)
        yield name, item


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the files of a host are read: the same way each time.

    `trusted` is the caller's word on the folder, None for what the host's own files say. Without `user`,
    files of the project's folder alone are read. `more` are texts beside the files.
    """

    host: str
    machine: Machine
    trusted: bool | None = None
    interactive: bool = False
    mode: str = ""
    user: bool = True
    more: tuple[Source, ...] = field(default=())

    def __call__(self) -> HostFiles:
        """Read them.

        Raises:
            UsageError: the host is not known.
        """
        setup = self._setup(None if self.user else PROJECT)
        recorded = self.host in _RECORDS and setup.settings.get("trusted") is True
        trusted = recorded if self.trusted is None else self.trusted
        own = read_own(self.machine, trusted=trusted, scopes=None if self.user else PROJECT)
        outside = None if trusted else self._setup(OUTSIDE if self.user else ())
        if outside is not None:
            setup = guarded(setup, outside, interactive=self.interactive)
        return HostFiles(setup, own, self.machine, trusted, self.mode, self.interactive, outside)

    def _setup(self, scopes: Collection[Scope] | None) -> Setup:
        return read_setup(
            self.host,
            self.machine,
            trusted=self.trusted,
            interactive=self.interactive,
            mode=self.mode,
            more=self.more,
            scopes=scopes,
        )


def guarded(setup: Setup, outside: Setup, *, interactive: bool) -> Setup:
    """The servers of all files, where those of the project's folder start nothing by themselves.

    `outside` is what all other files come to: its servers are used as they stand there, whatever a
    project's file would put in their place. Claude Code keeps approvals of single servers, of which those
    that count without trust are the person's own: where it would have asked, what it lets pass has been
    approved.
    """
    used = {item.config.name: item for item in outside.servers if item.state == "active"}
    asks = interactive and setup.host == claude.HOST
    standing = [_guarded(item, used.get(item.config.name), asks=asks) for item in setup.servers]
    told = [item.config for item in standing]
    standing += [item for item in used.values() if item.config not in told]
    return replace(setup, servers=tuple(_once(standing)))


def _guarded(item: Standing, own: Standing | None, *, asks: bool) -> Standing:
    """How an entry fares, given the one of its name that is used without the project's files."""
    same = own is not None and own.config == item.config
    if item.state == "active" and not same and not (asks and item.config.scope == "project"):
        return Standing(item.config, "pending", _UNTRUSTED)
    if item.state == "shadowed" and same:
        return Standing(item.config)
    return item


def _once(standing: Iterable[Standing]) -> Iterator[Standing]:
    """One entry in use for each name: an approved one before those behind it."""
    winner: dict[str, ServerConfig] = {}
    for item in standing:
        config = item.config
        first = winner.setdefault(config.name, config) if item.state == "active" else config
        if first is config:
            yield item
        else:
            yield Standing(config, "shadowed", f"the entry in {first.origin} is used", first.origin)
