"""Prompts and resources of all servers of a group: what each said last, and at which server something is.

It does not know how servers are started, and nothing of tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Generic, TypeVar, Unpack

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.client.client import Client
from dragoman.client.member import Member
from dragoman.client.session import RequestKeywords
from dragoman.errors import LocalError, RemoteError, UsageError
from dragoman.model import (
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ServerCapabilities,
)
from dragoman.model.skills_extension import NAME, Skill
from dragoman.protocol.naming import Name, Names
from dragoman.protocol.uritemplate import UriTemplate

log = logging.getLogger("dragoman.client")

T = TypeVar("T")

_LISTED: Final = 10  # names that the error for an unknown one lists at most


class Merged(Generic[T]):
    """What each server lists of one kind, by its name; `ask` lists it, anew where it is told so."""

    def __init__(
        self,
        noun: str,
        *,
        ask: Callable[[Client, bool], Awaitable[list[T]]],
        offered: Callable[[ServerCapabilities], object],
    ) -> None:
        self._noun = noun
        self._ask = ask
        self._offered = offered
        self._lists: dict[str, list[T]] = {}

    async def refresh(self, member: Member, *, anew: bool) -> None:
        """List one server again; never raises. What it listed before stays known where it does not answer."""
        client = member.client
        if client is None:
            return
        try:
            found = await self._ask(client, anew) if self._offered(client.capabilities) is not UNSET else []
        except (LocalError, RemoteError) as exc:
            log.warning("the %s of server %r could not be read: %s", self._noun, member.name, exc)
            member.suspect(exc)
        else:
            self._lists[member.name] = found

    def of(self, members: Iterable[Member]) -> dict[str, list[T]]:
        """What is known of those that are connected, by server."""
        return {
            member.name: list(self._lists[member.name])
            for member in members
            if member.client is not None and member.name in self._lists
        }

    def forget(self, server: str) -> None:
        """The server is none of the group's any more."""
        self._lists.pop(server, None)


class MergedVerbs:
    """The verbs of `ClientGroup` for prompts and resources, and what all its verbs need to find a server."""

    def __init__(self, *, patience: float) -> None:
        self._patience = patience
        self._members: dict[str, Member] = {}
        self._prompt_names = Names()
        self._prompts = Merged[Prompt](
            "prompts",
            ask=lambda client, anew: client.list_prompts(refresh=anew),
            offered=lambda offers: offers.prompts,
        )
        self._resources = Merged[Resource](
            "resources",
            ask=lambda client, anew: client.list_resources(refresh=anew),
            offered=lambda offers: offers.resources,
        )
        self._templates = Merged[ResourceTemplate](
            "resource templates",
            ask=lambda client, anew: client.list_resource_templates(refresh=anew),
            offered=lambda offers: offers.resources,
        )
        self._skills = Merged[Skill](
            "skills",
            ask=lambda client, anew: client.list_skills(refresh=anew),
            offered=lambda offers: offers.extensions.get(NAME, UNSET) if offers.extensions else UNSET,
        )

    def member(self, name: str) -> Member:
        """One server, and how it fares. Raises UsageError if there is none of that name."""
        member = self._members.get(name)
        if member is None:
            raise UsageError(f"there is no server {name!r}; there is {', '.join(self._members) or 'none'}")
        return member

    async def _patiently(self, works: Iterable[Coroutine[Any, Any, Any]]) -> None:
        """Await all of them, for at most `patience` seconds; none of them raises."""
        tasks = [asyncio.ensure_future(work) for work in works]
        if not tasks:
            return
        try:
            await asyncio.wait(tasks, timeout=self._patience)
        finally:
            late = [task for task in tasks if not task.done()]
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    async def _at(self, server: str, work: Callable[[Client], Awaitable[T]]) -> T:
        """What `work` comes to at that server, which is looked after if it turns out to be gone."""
        member = self.member(server)
        client = await member.ready()
        try:
            return await work(client)
        except LocalError as exc:
            member.suspect(exc)
            raise

    async def _listed(self, kind: Merged[T], *, refresh: bool) -> dict[str, list[T]]:
        members = list(self._members.values())
        await self._patiently(kind.refresh(member, anew=refresh) for member in members)
        return kind.of(self._members.values())

    # Prompts -----------------------------------------------------------------------------------------

    @property
    def prompt_names(self) -> Names:
        """The two-way table of prompts: as `names`, where `tool` is the name of the prompt."""
        return self._prompt_names

    async def list_prompts(self, *, refresh: bool = False) -> list[Prompt]:
        """The prompts of all servers that are connected, under the names by which this group gets them.

        In the manner of `list_tools`.
        """
        lists = await self._listed(self._prompts, refresh=refresh)
        pairs = [(server, prompt) for server, found in lists.items() for prompt in found]
        self._prompt_names = table = Names(
            ((server, prompt.name) for server, prompt in pairs), keep=self._prompt_names
        )
        found = ((table.of(server, prompt.name), prompt) for server, prompt in pairs)
        return [replace(prompt, name=name.model) for name, prompt in found if name is not None]

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **keywords: Unpack[RequestKeywords],
    ) -> GetPromptResult:
        """A prompt by the name under which this group lists it. As `Client.get_prompt`.

        Raises:
            UsageError: no prompt has this name.
            ConnectError: its server is not connected; says why, and when it is tried again.
            RemoteError, LocalError: as `Client.get_prompt`.
        """
        if self._prompt_names.find(name) is None:
            await self.list_prompts()
        found = sought(name, self._prompt_names, servers=self._members, noun="prompt")
        return await self._at(
            found.server, lambda client: client.get_prompt(found.tool, arguments, **keywords)
        )

    # Resources ---------------------------------------------------------------------------------------

    async def list_resources(self, *, refresh: bool = False) -> dict[str, list[Resource]]:
        """The resources of all servers that are connected, by server: two of them may have the same URI.

        Of a server that does not answer within `patience`, those that were listed last.
        """
        return await self._listed(self._resources, refresh=refresh)

    async def list_resource_templates(self, *, refresh: bool = False) -> dict[str, list[ResourceTemplate]]:
        """The families of resources of all servers that are connected; as `list_resources`."""
        return await self._listed(self._templates, refresh=refresh)

    async def list_skills(self, *, refresh: bool = False) -> dict[str, list[Skill]]:
        """The skills that the servers list, by server; as `list_resources`, and no file of them is read.

        Names and URIs of skills are only their server's: `group[server].load_skill(entry)` loads one.
        """
        return await self._listed(self._skills, refresh=refresh)

    async def read_resource(
        self, uri: str, *, server: str | None = None, **keywords: Unpack[RequestKeywords]
    ) -> ReadResourceResult:
        """What stands at `uri`, at `server`, or where that is not said, at the one server that has it in its
        lists, else in its templates. As `Client.read_resource`.

        Raises:
            UsageError: no server has it, or several do.
            ConnectError: its server is not connected; says why, and when it is tried again.
            RemoteError, LocalError: as `Client.read_resource`.
        """
        at = await self._home(uri) if server is None else server
        return await self._at(at, lambda client: client.read_resource(uri, **keywords))

    async def _home(self, uri: str) -> str:
        """The server to read a URI from."""
        homes = self._homes(uri)
        if len(homes) != 1 or not self._all_known():
            await self.list_resources()
            await self.list_resource_templates()
            homes = self._homes(uri)
        if len(homes) == 1:
            return homes[0]
        hint = "read_resource(uri, server=...)"
        if not homes:
            raise UsageError(f"no server lists {uri!r}, or has a template for it", stage="call", hint=hint)
        raise UsageError(f"several servers have {uri!r}: {', '.join(homes)}", stage="call", hint=hint)

    def _homes(self, uri: str) -> list[str]:
        """The servers that have it in their lists, else those with a template for it, as far as known."""
        listed = self._resources.of(self._members.values())
        homes = [server for server, found in listed.items() if any(one.uri == uri for one in found)]
        families = {} if homes else self._templates.of(self._members.values())
        return homes or [
            server for server, found in families.items() if any(_covers(one, uri) for one in found)
        ]

    def _all_known(self) -> bool:
        up = [member for member in self._members.values() if member.client is not None]
        return len(self._resources.of(up)) == len(self._templates.of(up)) == len(up)


def _covers(template: ResourceTemplate, uri: str) -> bool:
    try:
        return UriTemplate(template.uri_template).match(uri) is not None
    except UsageError:  # one that can only be filled in
        return False


def sought(name: str, names: Names, *, servers: Mapping[str, Member], noun: str) -> Name:
    """What a group calls by this name. Raises UsageError if that is nothing, with what it may have meant."""
    found = names.find(name)
    if found is None or found.server not in servers:
        known = [entry.model for entry in names if entry.server in servers]
        near = get_close_matches(name, known, n=1)
        listed = ", ".join(known[:_LISTED]) or "none"
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = f"did you mean {near[0]!r}?" if near else f"there is {listed}{more}"
        absent = next(
            (one for one in servers.values() if one.why and name.startswith(f"mcp__{one.name}__")), None
        )
        if absent is not None and absent.state != "connected":  # nobody knows what it has
            hint = f"server {absent.name!r} is {absent.state}: {absent.why}"
        raise UsageError(f"no {noun} is called {name!r}", stage="call", hint=hint)
    return found
