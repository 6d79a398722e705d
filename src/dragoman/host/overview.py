"""What one host's files come to, as a person looks at it: every entry, how it fares, and what to do about it.

Pure, and shows no secret. It starts nothing, so that it does not know which servers answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoman.host import masking
from dragoman.host.config.expand import expand
from dragoman.host.config.record import Origin, Problem, ServerConfig, Setup, Standing
from dragoman.host.permissions.checking import never
from dragoman.host.remedies import remedy, unset


@dataclass(frozen=True, slots=True)
class Row:
    """One entry: how it stands, over which others, and what to do where it is not used."""

    standing: Standing
    shadows: tuple[Origin, ...] = ()
    remedy: str = ""

    @property
    def config(self) -> ServerConfig:
        """The entry itself."""
        return self.standing.config

    @property
    def transport(self) -> str:
        """The transport in a word, with the one that is tried next."""
        return "http,sse" if self.config.then_sse else self.config.transport

    def record(self) -> dict[str, Any]:
        """The entry as JSON shows it."""
        config, standing = self.config, self.standing
        told: dict[str, Any] = {
            "name": config.name,
            "transport": config.transport,
            "then_sse": config.then_sse,
            "scope": config.scope,
            "source": place(config.origin),
            "state": standing.state,
            "why": standing.why,
            "by": None if standing.by is None else place(standing.by),
            "shadows": [place(origin) for origin in self.shadows],
            "remedy": self.remedy,
        }
        syntax = config.syntax
        if config.url is None:
            told["command"] = config.command
            told["args"] = masking.shown_args(config.args, syntax)
            told["env"] = masking.shown_table(config.env, syntax)
            told["env_names"] = config.env_names
            told["cwd"] = config.cwd
        else:
            told["url"] = masking.shown_url(config.url, syntax)
            told["headers"] = masking.shown_table(config.headers, syntax)
            told["header_env"] = config.header_env
            told["bearer_env"] = config.bearer_env
        return told


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong, and what to do about it where that does not go without saying."""

    problem: Problem
    remedy: str = ""

    def record(self) -> dict[str, Any]:
        """The problem as JSON shows it."""
        problem = self.problem
        return {
            "text": problem.text,
            "source": place(problem.origin),
            "server": problem.server,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True)
class Overview:
    """All of one host."""

    host: str
    rows: tuple[Row, ...]
    troubles: tuple[Trouble, ...]


def overview(setup: Setup, *, env: Mapping[str, str], folder: str = "") -> Overview:
    """Look at what a host's files come to.

    `env` is where variables are looked up, and `folder` the project's, for what is to be done about trust.
    """
    rows = [
        Row(standing, tuple(_shadowed(setup, standing)), remedy(standing, host=setup.host, folder=folder))
        for standing in setup
    ]
    troubles = [Trouble(problem) for problem in setup.problems if problem != setup.failure]
    if setup.failure is not None:
        text = f"the host does not start with this: {setup.failure.text}"
        troubles.insert(0, Trouble(Problem(text, setup.failure.origin, setup.failure.server)))
    for standing in setup:
        troubles += _of_entry(standing, env)
    troubles += [Trouble(problem) for problem in never(setup)]
    return Overview(setup.host, tuple(rows), tuple(dict.fromkeys(troubles)))


def place(origin: Origin) -> dict[str, Any]:
    """A place as JSON shows it."""
    return {"file": origin.file, "line": origin.line, "column": origin.column}


def _shadowed(setup: Setup, standing: Standing) -> Iterator[Origin]:
    if standing.state == "active":
        for other in setup:
            if other.state == "shadowed" and other.by == standing.config.origin:
                yield other.config.origin


def _of_entry(standing: Standing, env: Mapping[str, str]) -> Iterator[Trouble]:
    config = standing.config
    for warning in config.warnings:
        yield Trouble(_problem(config, warning))
    found = ", ".join(f"`{where}`" for where in masking.secrets(config))
    if found:
        yield Trouble(
            _problem(config, f"{found}: a secret stands in the file"),
            "refer to a variable of the environment, and change the secret if others can read the file",
        )
    if standing.state not in ("active", "pending", "untrusted"):
        return
    _, missing = expand(config, env)
    # Others are asked for, or read from a file, when the host starts the server.
    names = tuple(name for name in missing if ":" not in name)
    if names:
        yield Trouble(_problem(config, f"no value for {', '.join(names)}: it is not started"), unset(names))


def _problem(config: ServerConfig, text: str) -> Problem:
    return Problem(f"server {config.name!r}: {text}", config.origin, config.name)
