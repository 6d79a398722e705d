"""References in the texts of a server's entry: which texts, and which of them leave this machine.

Pure: the environment is an argument. A reference that has no value is never passed on as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, cast

from dragoman.host.config.headers import is_value
from dragoman.host.config.record import ServerConfig
from dragoman.host.config.references import SYNTAXES, Replacing, named

_SHORT: Final = frozenset("HOME LOGNAME PATH SHELL USER LANG LC_ALL TERM TMPDIR TZ".split())
_BASELINE: Final = frozenset("HOME LOGNAME PATH SHELL TERM USER".split())
_CODEX: Final = _SHORT | {"__CF_USER_TEXT_ENCODING"}
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|KEY|AUTH|CREDENTIAL", re.IGNORECASE)
_WHOLE: Final = frozenset({"vscode", "zed", "opencode"})


def expand(config: ServerConfig, env: Mapping[str, str]) -> tuple[ServerConfig, tuple[str, ...]]:
    """The entry with every reference replaced, and the names of variables that have no value.

    While there are such names the entry must not be used: the references to them stand in it as text.
    Headers whose values are variables are among the headers then; one that has no value is left out.
    """
    syntax = SYNTAXES[config.syntax]
    here = Replacing(syntax, env, config.variables, remote=False)
    there = Replacing(syntax, env, config.variables, remote=True)
    headers = there.table(config.headers)
    for name, variable in config.header_env.items():
        if (value := env.get(variable, "").strip()) and is_value(value):
            headers[name] = value
    missing: list[str] = []
    if config.bearer_env is not None:
        if token := env.get(config.bearer_env):
            headers["Authorization"] = f"Bearer {token}"
        else:
            missing.append(config.bearer_env)
    full = replace(
        config,
        command=None if config.command is None else here.text(config.command),
        args=tuple(here.text(word) for word in config.args),
        env={**{name: env[name] for name in config.env_names if name in env}, **here.table(config.env)},
        cwd=None if config.cwd is None else here.text(config.cwd),
        env_file=None if config.env_file is None else here.text(config.env_file),
        url=None if config.url is None else there.text(config.url),
        headers=headers,
    )
    names = (*here.missing, *there.missing, *missing)
    return full, tuple(dict.fromkeys(names))


def references(config: ServerConfig) -> Iterator[str]:
    """The names of the variables that the entry refers to, in order, each as often as it stands there."""
    texts = (config.command, *config.args, *config.env.values(), config.url, *config.headers.values())
    for text in texts:
        yield from named(config.syntax, text or "")
    yield from config.env_names
    yield from config.header_env.values()
    if config.bearer_env is not None:
        yield config.bearer_env


def inherited(host: str, env: Mapping[str, str], *, folder: str = "", session: str = "") -> dict[str, str]:
    """What a program gets of the host's own environment, before anything that its entry says.

    Claude Code hands over all but `OTEL_*`, Codex a short list, Gemini CLI what does not sound like a
    secret. Where it is not known, little.
    """
    if host == "claude-code":
        return _claude(env, folder, session=session)
    if host == "codex":
        return {name: value for name, value in env.items() if name in _CODEX}
    if host == "gemini-cli":
        return {name: value for name, value in env.items() if _SECRET.search(name) is None}
    if host in _WHOLE:
        return dict(env)
    return {name: value for name, value in env.items() if name in _BASELINE}


def _claude(env: Mapping[str, str], folder: str, *, session: str) -> dict[str, str]:
    short = env.get("CLAUDE_CODE_MCP_ALLOWLIST_ENV") == "1"
    kept = {
        name: value
        for name, value in env.items()
        if (name in _SHORT if short else not name.startswith("OTEL_"))
    }
    kept["CLAUDECODE"] = "1"
    if folder:
        kept["CLAUDE_PROJECT_DIR"] = folder
    if session:
        kept["CLAUDE_CODE_SESSION_ID"] = session
    return kept


def environment(
    config: ServerConfig, env: Mapping[str, str], *, folder: str = "", session: str = ""
) -> dict[str, str]:
    """The whole environment of the program that an expanded entry starts; what the entry says wins."""
    whole = {**inherited(config.host, env, folder=folder, session=session), **config.env}
    if config.host == "vscode" and isinstance(said := config.raw.get("env"), Mapping):
        for name, value in cast("Mapping[str, object]", said).items():
            if value is None:  # which takes a variable away
                whole.pop(name, None)
    return whole
