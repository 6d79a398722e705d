"""One server as no host in particular has it: what is written for another host is made from this.

Pure. References are taken apart, and variables that an entry only names stand where their values go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.host.config.record import ServerConfig, Wire
from dragoman.host.export.templates import Ref, Template, parse


@dataclass(frozen=True, slots=True)
class Draft:
    """A server: members as in `ServerConfig`, texts as templates, times in seconds.

    `places` are the values of known places that texts may refer to. `rules` counts what the entry says of
    calls, which is not carried over.
    """

    name: str
    transport: Wire
    then_sse: bool = False
    command: Template = ()
    args: tuple[Template, ...] = ()
    env: Mapping[str, Template] = field(default_factory=dict[str, Template])
    cwd: Template = ()
    env_file: Template = ()
    url: Template = ()
    headers: Mapping[str, Template] = field(default_factory=dict[str, Template])
    timeout: float | None = None
    startup: float | None = None
    enabled: bool = True
    required: bool = False
    only_tools: tuple[str, ...] | None = None
    without_tools: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    rules: int = field(default=0, compare=False)


def draft(config: ServerConfig) -> Draft:
    """The server of an entry."""
    # Places of a plugin are known by names that look like variables; those of an editor are not.
    places = config.variables

    def take(text: str | None) -> Template:
        return () if text is None else parse(text, config.syntax, places=places)

    headers = {name: take(value) for name, value in config.headers.items()}
    headers |= {name: (Ref("env", variable),) for name, variable in config.header_env.items()}
    if config.bearer_env is not None:
        headers["Authorization"] = ("Bearer ", Ref("env", config.bearer_env))
    return Draft(
        name=config.name,
        transport=config.transport,
        then_sse=config.then_sse,
        command=take(config.command),
        args=tuple(take(word) for word in config.args),
        env={
            **{name: (Ref("env", name),) for name in config.env_names},
            **{name: take(value) for name, value in config.env.items()},
        },
        cwd=take(config.cwd),
        env_file=take(config.env_file),
        url=take(config.url),
        headers=headers,
        timeout=config.timeout,
        startup=config.startup_timeout,
        enabled=config.enabled,
        required=config.required,
        only_tools=config.only_tools,
        without_tools=config.without_tools,
        places=places,
        rules=len(config.rules),
    )
