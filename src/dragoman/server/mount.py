"""One server inside another: what it offers shows up there, and is answered at its home.

A live view: what is added or taken away later comes and goes. It knows registries, and refuses to
know how tools, prompts and resources work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.errors import Refusal, UsageError
from dragoman.model import Result
from dragoman.protocol.call import Call
from dragoman.server.asking import Suspend
from dragoman.server.completion import Completed, Completions, Suggest
from dragoman.server.context import Context
from dragoman.server.kernel import Kernel
from dragoman.server.middleware import Handler, fold
from dragoman.server.prompts import Prompt
from dragoman.server.registry import Offered, Registry
from dragoman.server.resources import Resource
from dragoman.server.templates import Template
from dragoman.server.tool import Tool

E = TypeVar("E", bound=Offered)


class Inner:
    """A mounted server, as a way to have calls answered at its home.

    Its own middleware stands around what it offers, and its own rules say who sees what.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._folded: Handler | None = None
        self._layers = 0
        catalog = kernel.catalog
        self._routes: dict[str, Handler] = {
            **catalog.routes("prompts", self._answer),
            **catalog.routes("resources", self._answer),
            "tools/call": self._tool,
        }

    @property
    def limits(self) -> bool:
        """Whether it keeps something from some."""
        return self.kernel.sight is not None and self.kernel.sight.limits

    def sees(self, item: Any, principal: str | None) -> bool:
        """Whether `principal` sees this there."""
        return self.kernel.sight is None or self.kernel.sight.sees(item, principal)

    async def handle(self, call: Call, **subject: str) -> Result:
        """What it answers to the call, with `subject` in place of what the call names."""
        result: Result = await self.at_home(call, lambda: self._handler()(call), **subject)
        return result

    async def at_home(self, call: Call, work: Callable[[], Any], **subject: str) -> Any:
        """Do something for the call with what this server keeps for its handlers."""
        outside = call.params, call.home, call.lifespan, call.scope, call.reader
        call.params = msgspec.structs.replace(call.params, **subject)
        # What was supplied out there is not what handlers here would be supplied with.
        call.home, call.lifespan, call.scope = self.kernel.home, None, None
        call.reader = self.kernel.catalog.reading.within
        try:
            if self.kernel.home.life is not None:
                call.lifespan = await self.kernel.home.life.value()
            return await work()
        finally:
            call.params, call.home, call.lifespan, call.scope, call.reader = outside

    def _handler(self) -> Handler:
        layers = self.kernel.layers
        if self._folded is None or self._layers != len(layers):  # layers are only ever added
            self._folded, self._layers = fold(layers, self._route), len(layers)
        return self._folded

    async def _route(self, call: Call) -> Result:
        return await self._routes[call.method.name](call)

    async def _tool(self, call: Call) -> Result:
        name = call.params.name
        tool = self.kernel.tools.get(name)
        if tool is None or not self.sees(tool, call.principal):
            raise Refusal(-32602, f"Unknown tool: {name}", {"name": name})
        return await self._answer(call, tool.run)

    @staticmethod
    async def _answer(call: Call, handle: Handler) -> Result:
        # The rounds of a call are the outer server's.
        try:
            return await handle(call)
        except Suspend as suspend:
            return suspend.result()


class MountedTool(Tool, kw_only=True, eq=False):
    """A tool of another server under a name of this one's."""

    origin: Tool
    inner: Inner

    async def run(self, call: Call) -> Result:
        """What the tool answers at its home."""
        return await self.inner.handle(call, name=self.origin.name)

    def open_to(self, principal: str | None) -> bool:
        """Whether its own server lets this principal see it."""
        return self.inner.sees(self.origin, principal)


class MountedPrompt(Prompt, kw_only=True, eq=False):
    """A prompt of another server under a name of this one's."""

    origin: Prompt
    inner: Inner

    async def get(self, call: Call) -> Result:
        """What the prompt gives at its home."""
        return await self.inner.handle(call, name=self.origin.name)

    def open_to(self, principal: str | None) -> bool:
        """Whether its own server lets this principal see it."""
        return self.inner.sees(self.origin, principal)


class MountedResource(Resource, kw_only=True, eq=False):
    """A resource of another server."""

    origin: Resource
    inner: Inner

    async def produce(self, call: Call, context: Context, *, arguments: Mapping[str, Any]) -> Any:
        """What it holds, read at its home."""
        return await _produce(self, call, context=context, arguments=arguments)

    def open_to(self, principal: str | None) -> bool:
        """Whether its own server lets this principal see it."""
        return self.inner.sees(self.origin, principal)


class MountedTemplate(Template, kw_only=True, eq=False):
    """A resource template of another server."""

    origin: Template
    inner: Inner

    async def produce(self, call: Call, context: Context, *, arguments: Mapping[str, Any]) -> Any:
        """What a resource of it holds, read at its home."""
        return await _produce(self, call, context=context, arguments=arguments)

    def open_to(self, principal: str | None) -> bool:
        """Whether its own server lets this principal see it."""
        return self.inner.sees(self.origin, principal)


async def _produce(
    item: MountedResource | MountedTemplate, call: Call, *, context: Context, arguments: Mapping[str, Any]
) -> Any:
    if call.method.name == "resources/read":
        return await item.inner.handle(call)
    # A handler of the outer server reads it: that is no call of its own.
    return await item.inner.at_home(call, lambda: item.origin.produce(call, context, arguments=arguments))


class _Suggested(Mapping[str, Suggest]):
    """What the inner server suggests for one of its prompts or templates."""

    def __init__(self, completions: Completions, item: Completed) -> None:
        self._completions = completions
        self._item = item

    def __getitem__(self, argument: str) -> Suggest:
        found = self._completions.source(self._item, argument)
        if found is None:
            raise KeyError(argument)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._item.arguments if self._completions.source(self._item, name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _parts(item: msgspec.Struct, base: type[msgspec.Struct], **changes: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in base.__struct_fields__} | changes


class Mount(Generic[E]):
    """Keeps one kind of the inner server in the outer one's list (`server.registry.Watcher`)."""

    def __init__(self, outer: Registry[E], source: Registry[E], *, show: Callable[[E], list[E]]) -> None:
        self._outer = outer
        self._source = source
        self._show = show

    def check_all(self) -> None:
        """Raise UsageError if something could not be shown."""
        for item in self._source:
            self.check(item)

    def open(self) -> None:
        """Show everything there is, and from now on whatever is added."""
        for item in self._source:
            self.added(item)
        self._source.watchers.append(self)

    def check(self, item: E) -> None:
        """Raise UsageError if the outer server has something of that name already."""
        for shown in self._show(item):
            there = self._outer.get(shown.name)
            if there is not None and _way(there) is not _way(shown):
                raise UsageError(
                    f"mount: {item.name!r} would be {shown.name!r}, and there is one of that name already",
                    hint="mount it with another prefix=, or rename one of the two",
                )

    def added(self, item: E) -> None:
        """Show it too."""
        for shown in self._show(item):
            self._outer.add(shown)

    def removed(self, item: E) -> None:
        """Show it no longer."""
        for shown in self._show(item):
            there = self._outer.get(shown.name)
            if there is not None and _way(there) is _way(shown):
                self._outer.remove(shown.name)


def _way(item: Any) -> Inner | None:
    """Where the outermost mount around it leads; None for something of the server's own."""
    while item is not None:
        inner: Inner | None = getattr(item, "inner", None)
        if inner is not None:
            return inner
        item = getattr(item, "origin", None)
    return None


def mounts(
    outer: Kernel, inner: Inner, *, prefix: str, reshape: Callable[[Tool], list[Tool]]
) -> list[Mount[Any]]:
    """What has to be opened for `outer` to offer what `inner` does. URIs have no prefix."""
    here, there = outer.catalog, inner.kernel.catalog

    def tool(item: Tool) -> list[Tool]:
        entry = msgspec.structs.replace(item.entry, name=prefix + item.name)
        return reshape(MountedTool(**_parts(item, Tool, entry=entry), origin=item, inner=inner))

    def prompt(item: Prompt) -> list[Prompt]:
        entry = msgspec.structs.replace(item.entry, name=prefix + item.name)
        parts = _parts(item, Prompt, entry=entry, completers=_Suggested(there.completions, item))
        return [MountedPrompt(**parts, origin=item, inner=inner)]

    def resource(item: Resource) -> list[Resource]:
        return [MountedResource(**_parts(item, Resource), origin=item, inner=inner)]

    def template(item: Template) -> list[Template]:
        parts = _parts(item, Template, completers=_Suggested(there.completions, item))
        return [MountedTemplate(**parts, origin=item, inner=inner)]

    return [
        Mount(outer.tools, inner.kernel.tools, show=tool),
        Mount(here.prompts, there.prompts, show=prompt),
        Mount(here.resources, there.resources, show=resource),
        Mount(here.templates, there.templates, show=template),
    ]


def has_inside(kernel: Kernel, wanted: Kernel) -> bool:
    """Whether `wanted` is `kernel`, or mounted in it at any depth."""
    homes = [kernel.home]
    while homes:
        home = homes.pop()
        if home is wanted.home:
            return True
        homes.extend(home.mounted)
    return False
