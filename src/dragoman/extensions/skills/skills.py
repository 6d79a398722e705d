"""`Skills`: the extension as a server takes it, and the answers to its requests."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import Refusal, UsageError
from dragoman.extensions.skills.folders import Root
from dragoman.extensions.skills.shelf import Rules, Shelf, among
from dragoman.extensions.skills.wire import METHODS
from dragoman.model import CacheScope, Resource, Result
from dragoman.model.skills_extension import (
    NAME,
    GetSkillParams,
    GetSkillResult,
    ReadDirectoryParams,
    ReadDirectoryResult,
)
from dragoman.protocol.call import Call
from dragoman.server.extension import Extension, Services
from dragoman.server.lifespan import Lifespan
from dragoman.server.registry import Paging, Registry
from dragoman.server.resources import Hints

IGNORED = (".*", "__pycache__")


class Skills:
    """The extension `io.modelcontextprotocol/skills`: `Server("billing", extensions=[Skills("skills/")])`.

    Each folder in `folders`, at any depth, that has a SKILL.md is a skill, and so is one of `folders`
    itself that has one. `skills/refunds/SKILL.md` is served as `skill://refunds/SKILL.md`; `prefix`,
    such as `"acme/billing"`, stands before all paths. Names that fit a pattern of `ignore` are left out.

    Files are looked at every `watch` seconds and when a client asks for skills, and clients are told of
    changes; None: only at the start. `tags` are words by which the server says who sees what. `ttl_ms`
    and `cache_scope` say how long and by whom all this may be cached, instead of what the server says.

    The folders are read when the server is made. Raises UsageError then, with a line for everything
    that cannot be served; what goes wrong later is logged, and not served until it is mended.
    """

    def __init__(
        self,
        *folders: str | PathLike[str],
        prefix: str = "",
        watch: float | None = 2.0,
        ignore: Iterable[str] = IGNORED,
        tags: Iterable[str] = (),
        ttl_ms: int | None = None,
        cache_scope: CacheScope | None = None,
    ) -> None:
        if not folders:
            raise UsageError('Skills needs a folder: Skills("skills/")')
        if watch is not None and watch < 0.001:
            raise UsageError(f"watch: expected at least 0.001 seconds, received {watch!r}")
        before = prefix.removeprefix("skill://").strip("/")
        if any(part in ("", ".", "..") for part in before.split("/")) and before:
            raise UsageError(f'prefix: expected a path such as "acme/billing", received {prefix!r}')
        hints = Hints(UNSET if ttl_ms is None else ttl_ms, UNSET if cache_scope is None else cache_scope)
        roots = tuple(Root(_folder(folder), before) for folder in folders)
        self._rules = Rules(roots, tuple(ignore), watch, frozenset(tags), hints)

    def extension(self, services: Services) -> Extension:
        """The record for one server. Raises UsageError for skills that cannot be served."""
        hints = self._rules.hints
        paging = services.paging.of("skills/list")
        if hints.ttl_ms is not UNSET:
            paging = replace(paging, ttl_ms=hints.ttl_ms)
        if hints.cache_scope is not UNSET:
            paging = replace(paging, cache_scope=hints.cache_scope)
        shelf = Shelf(services, self._rules, paging=paging)
        shelf.open()
        answers = _Answers(shelf, services, paging=paging)
        return Extension(
            name=NAME,
            settings={"directoryRead": True},
            methods=METHODS,
            routes={
                "skills/list": answers.list,
                "skills/get": answers.get,
                "resources/directory/read": answers.read_directory,
            },
            life=None if self._rules.watch is None else Lifespan(lambda _: shelf.watched(), None),
        )


def _folder(given: str | PathLike[str]) -> str:
    place = fspath(given)
    return place.rstrip("/") or place


class _Child(msgspec.Struct, frozen=True, eq=False):
    """Something in a directory."""

    entry: Resource

    @property
    def name(self) -> str:
        """Its URI."""
        return self.entry.uri


class _Answers:
    """What is answered to the requests of the extension."""

    def __init__(self, shelf: Shelf, services: Services, *, paging: Paging) -> None:
        self._shelf = shelf
        self._paging = paging
        self._services = services

    async def list(self, call: Call) -> Result:
        """`skills/list`. Raises Refusal -32602 for a cursor that is not of this list."""
        await self._shelf.refresh()
        cursor = None if call.params.cursor is UNSET else call.params.cursor
        seen = self._services.seen(call.principal)
        return self._shelf.skills.page(cursor, None if seen is None else lambda each: seen(each.manifest))

    async def get(self, call: Call) -> Result:
        """`skills/get`. Raises Refusal -32602 for a URI that is no skill's, or none that they see."""
        params: GetSkillParams = call.params
        await self._shelf.refresh()
        found = self._shelf.skills.get(params.uri)
        seen = self._services.seen(call.principal)
        if found is None or (seen is not None and not seen(found.manifest)):
            raise Refusal(-32602, f"No skill is served at {params.uri}", {"uri": params.uri})
        scope = self._paging.cache_scope if seen is None else "private"
        return GetSkillResult(skill=found.entry, ttl_ms=self._paging.ttl_ms, cache_scope=scope)

    async def read_directory(self, call: Call) -> Result:
        """`resources/directory/read`. Raises Refusal -32602 for what is no directory."""
        params: ReadDirectoryParams = call.params
        shelf = self._shelf
        await shelf.refresh()
        path = shelf.folders.get(params.uri)
        visible = shelf.visible(call.principal)
        if path is None or not among(path, visible):
            raise Refusal(-32602, self._no_directory(params.uri, visible), {"uri": params.uri})
        children = Registry[_Child](
            "resource", member="resources", result=ReadDirectoryResult, paging=self._paging
        )
        for child in sorted(shelf.shown.children[path]):
            if among(child, visible):
                children.add(_Child(shelf.entry(child)))
        page = children.page(None if params.cursor is UNSET else params.cursor)
        # What is there now: nothing to be kept.
        return replace(page, ttl_ms=0, cache_scope="private")

    def _no_directory(self, uri: str, visible: tuple[str, ...] | None) -> str:
        for file in self._shelf.shown.files.values():
            if file.uri == uri and among(file.path, visible):
                return f"{uri} is a file and no directory: resources/read reads it"
        return f"No directory is served at {uri}"
