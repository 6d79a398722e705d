"""The skills of one server while it runs: shown as resources, read, and looked at again.

What is on the disk is looked at in a thread; what clients see changes in the event loop, all at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

import msgspec

from dragoman.errors import DragomanError, ResourceNotFound, UsageError
from dragoman.extensions.skills.files import contents, digest, read
from dragoman.extensions.skills.folders import Found, Root, Snapshot, look
from dragoman.extensions.skills.wire import uri_of
from dragoman.model import Annotations, ResourceContents
from dragoman.model import Resource as Entry
from dragoman.model.skills_extension import FOLDER, MANIFEST, ListSkillsResult, Skill, SkillResource
from dragoman.protocol.call import Call
from dragoman.server.context import Context
from dragoman.server.extension import Services
from dragoman.server.function import in_thread
from dragoman.server.registry import Paging, Registry
from dragoman.server.resources import Hints, Resource, ResourceOptions
from dragoman.server.templates import Template
from dragoman.server.templates import build as build_template

log = logging.getLogger("dragoman.skills")

TRIES: Final = 3  # to read a file that changes

_thread: list[ThreadPoolExecutor] = []


class Listed(msgspec.Struct, frozen=True, eq=False):
    """A skill as the list shows it; `manifest` is the resource that is its SKILL.md."""

    path: str
    entry: Skill
    manifest: Resource
    template: Template | None

    @property
    def name(self) -> str:
        """Its URI."""
        return self.entry.uri


class Rules(msgspec.Struct, frozen=True):
    """How the skills of a server are looked for and shown. `watch` is in seconds; None: never again."""

    roots: tuple[Root, ...]
    ignore: tuple[str, ...]
    watch: float | None
    tags: frozenset[str]
    hints: Hints


class Shelf:
    """The skills of one server."""

    def __init__(self, services: Services, rules: Rules, *, paging: Paging) -> None:
        self._services = services
        self._rules = rules
        self._latest = Snapshot()  # of the thread that looks
        self._looked = 0  # when that look began
        self._paging = paging
        self._offered: dict[str, Listed] = {}  # by path
        self.shown = Snapshot()
        self.skills = self._registry()
        self.folders: dict[str, str] = {}  # path by URI

    # Looking -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Look for the first time. Raises UsageError for whatever cannot be served."""
        snapshot = self._look(0, "")
        if snapshot.faults:
            told = "".join(f"\n- {fault}" for fault in snapshot.faults)
            raise UsageError(f"skills that cannot be served:{told}")
        self._show(snapshot)

    async def refresh(self, doubt: str = "") -> None:
        """Show what is on the disk now; what is wrong there is logged, and not shown."""
        if self._rules.watch is None:
            return
        if not _thread:
            # One at a time: whoever waits for it gets what the one before found, if that is new enough.
            _thread.append(ThreadPoolExecutor(1, thread_name_prefix="dragoman-skills"))
        work = partial(self._look, time.monotonic_ns(), doubt)
        self._show(await asyncio.get_running_loop().run_in_executor(_thread[0], work))

    def _look(self, asked: int, doubt: str) -> Snapshot:
        if doubt or not asked or self._looked <= asked:
            self._looked = time.monotonic_ns()
            rules = self._rules
            self._latest = look(rules.roots, ignore=rules.ignore, before=self._latest, doubt=doubt)
        return self._latest

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None, None]:
        """Look again every now and then, so that clients are told of changes that they did not ask for."""
        watch = self._rules.watch
        task = None if watch is None else asyncio.create_task(self._watch(watch), name="dragoman-skills")
        try:
            yield
        finally:
            if task is not None:
                task.cancel()
                await asyncio.wait([task])

    async def _watch(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
            except Exception as exc:  # the next look may be better
                log.error("the skills could not be looked at", exc_info=exc)

    # Showing -------------------------------------------------------------------------------------

    def _registry(self) -> Registry[Listed]:
        return Registry("skill", member="skills", result=ListSkillsResult, paging=self._paging)

    def _show(self, new: Snapshot) -> None:
        old = self.shown
        if new.number <= old.number:
            return
        self.shown = new
        for fault in new.faults:
            if fault not in old.faults:
                log.warning("not served: %s", fault)
        changed = [path for path, found in old.skills.items() if new.skills.get(path) != found]
        added = [path for path, found in new.skills.items() if old.skills.get(path) != found]
        with _silent(self._services.resources()), _silent(self._services.templates()):
            for path in changed:
                self._withdraw(path)
            for path in added:
                self._offer(new.skills[path])
        # Made anew, so that the order is that of the folders in every process that serves them.
        self.skills = self._registry()
        for path in new.skills:
            if path in self._offered:
                self.skills.add(self._offered[path])
        self.folders = {uri_of(path): path for path in new.children}
        _warn_of_names(new)
        self._services.changed("resources")
        for path, file in old.files.items():
            now = new.files.get(path)
            if now is None or now.digest != file.digest:
                self._services.updated(file.uri)

    def _withdraw(self, path: str) -> None:
        listed = self._offered.pop(path, None)
        if listed is None:  # it could not be offered
            return
        self._services.resources().remove(listed.name)
        if listed.template is not None:
            self._services.templates().remove(listed.template.name)

    def _offer(self, found: Found) -> None:
        manifest = Resource(
            entry=self.entry(found.files[0].path),
            source=self._source(found.files[0].path),
            hints=self._rules.hints,
            tags=self._rules.tags,
        )
        template = self._template(found.path, found.frontmatter["name"]) if len(found.files) > 1 else None
        try:
            self._services.resources().add(manifest)
            if template is not None:
                self._services.templates().add(template)
        except UsageError as exc:
            if self._services.resources().get(manifest.name) is manifest:
                self._services.resources().remove(manifest.name)
            if not self._offered and self.shown.number == 1:
                raise
            log.error("not served: %s", exc)
            return
        self._offered[found.path] = Listed(found.path, _entry(found), manifest, template)

    def _source(self, path: str) -> Callable[[Call, Context], Any]:
        return lambda call, context: self.read(path, call.principal)

    def _template(self, root: str, name: str) -> Template:
        async def file(path: str, ctx: Context) -> ResourceContents:
            return await self.read(f"{root}/{path}", ctx.principal)

        def paths(value: str, ctx: Context) -> list[str]:
            known = self.shown.skills.get(root)
            if known is None or not among(root, self.visible(ctx.principal)):
                return []
            own = [each.path.removeprefix(f"{root}/") for each in known.files]
            return [path for path in own if path.startswith(value)]

        options = ResourceOptions(
            name=f"{name}-files",
            description=f"The files of the skill {name}, by their paths in it",
            tags=self._rules.tags,
            complete={"path": paths},
        )
        template = build_template(f"{uri_of(root)}/{{+path}}", file, options=options)
        template.hints = self._rules.hints
        return template

    def entry(self, path: str) -> Entry:
        """A file, or a folder, as lists of resources show it."""
        file = self.shown.files.get(path)
        if file is None:
            return Entry(uri=uri_of(path), name=path.rpartition("/")[2], mime_type=FOLDER)
        folder, _, name = path.rpartition("/")
        said: dict[str, Any] = {"name": name}
        if name == MANIFEST and folder in self.shown.skills:
            fields = self.shown.skills[folder].frontmatter
            said = {"name": fields["name"], "description": fields["description"]}
        return Entry(
            uri=file.uri,
            mime_type=file.mime_type,
            size=file.size,
            annotations=Annotations(last_modified=file.modified),
            **said,
        )

    # Who sees what, and reading ------------------------------------------------------------------

    def visible(self, principal: str | None) -> tuple[str, ...] | None:
        """The paths of the skills that they see; None where everybody sees all."""
        seen = self._services.seen(principal)
        return None if seen is None else tuple(each.path for each in self.skills if seen(each.manifest))

    async def read(self, path: str, principal: str | None) -> ResourceContents:
        """What a file holds: the very bytes that its skill's entry speaks of.

        Raises:
            ResourceNotFound: there is none, or not for them.
            DragomanError: it cannot be read.
        """
        if path not in self.shown.files:
            await self.refresh()
        for _ in range(TRIES):
            file = self.shown.files.get(path)
            if file is None or not _inside(path, self.visible(principal)):
                raise ResourceNotFound(f"Resource not found: {uri_of(path)}")
            try:
                data, _ = await in_thread(partial(read, file.place))
            except OSError:
                data = None
            if data is not None and digest(data) == file.digest:
                return contents(file, data)
            await self.refresh(doubt=path)
        raise DragomanError("it is not what it was, and changes faster than it can be read")


def among(path: str, roots: tuple[str, ...] | None) -> bool:
    """Whether a file or folder is in one of these skills, or leads to one."""
    return roots is None or _inside(path, roots) or any(root.startswith(f"{path}/") for root in roots)


def _inside(path: str, roots: tuple[str, ...] | None) -> bool:
    return roots is None or any(f"{path}/".startswith(f"{root}/") for root in roots)


def _entry(found: Found) -> Skill:
    return Skill(
        uri=found.files[0].uri,
        frontmatter=found.frontmatter,
        resources=[SkillResource(uri=file.uri, digest=file.digest, size=file.size) for file in found.files],
    )


def _warn_of_names(snapshot: Snapshot) -> None:
    """Names should be unique within a server (Skills: Names); hosts tell them apart all the same."""
    count = Counter(found.frontmatter["name"] for found in snapshot.skills.values())
    for name, times in count.items():
        if times > 1:
            log.warning("%d skills are called %s: hosts will have to tell them apart", times, name)


@contextmanager
def _silent(registry: Registry[Any]) -> Generator[None, None, None]:
    """Changes in it are told of by somebody else."""
    told = registry.on_change
    registry.on_change = lambda: None
    try:
        yield
    finally:
        registry.on_change = told
