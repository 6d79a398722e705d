"""Skills of a server: listed without being read, loaded once they are checked, their files read when needed.

The rules are `protocol.skills`; here is what is asked of the server, and when. What a skill may do once it is
loaded, and who has to agree to it, is its host's business.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from msgspec import UNSET, Struct

from dragoman.client.cache import Shelf
from dragoman.client.connection import Extras
from dragoman.client.lists import DIRECTORY, SKILLS, Lists
from dragoman.client.reading import read_skill_entry
from dragoman.client.session import READ, Session
from dragoman.client.verbs import Verbs
from dragoman.errors import PeerFault, UsageError
from dragoman.model import PaginatedParams, ReadResourceResult, Resource
from dragoman.model.skills_extension import (
    MAX_BYTES,
    NAME,
    GetSkillParams,
    ReadDirectoryParams,
    Skill,
    SkillResource,
)
from dragoman.protocol.skills import (
    entry_fault,
    file_fault,
    frontmatter_fault,
    locate,
    root_of,
    size_fault,
)
from dragoman.schema.shapes import is_object

log = logging.getLogger("dragoman.client")

_REPEATABLE: Final = Extras(safe=True)


class SkillFault(PeerFault):
    """A skill cannot be used: a file is not what its entry says, or the entry is none, or says too much.

    `uri` is that of the skill or of the file. What the server sent is not given out.
    """

    def __init__(self, message: str, *, uri: str, server: str, hint: str | None = None) -> None:
        super().__init__(message, server=server, stage="call", hint=hint)
        self.uri = uri


class SkillFile(Struct, frozen=True):
    """One file of a skill, as it was checked."""

    uri: str
    mime_type: str | None
    data: bytes

    @property
    def text(self) -> str:
        """The file as UTF-8. Raises UnicodeDecodeError where it is none."""
        return self.data.decode()


class LoadedSkill:
    """A skill whose SKILL.md was read and checked, with the entry that it was checked against.

    `entry` stays as it is, whatever the server says later: what a person agreed to is what is read.
    `server` is the name by which the client knows the server; it and `uri` together are the skill.
    `text` is SKILL.md, with its frontmatter.
    """

    def __init__(self, entry: Skill, *, server: str, manifest: SkillFile) -> None:
        self.entry = entry
        self.server = server
        self.text = manifest.text
        self._kept: dict[str, SkillFile] = {manifest.uri: manifest}
        self._bytes = len(manifest.data)

    def __repr__(self) -> str:
        return f"<LoadedSkill {self.uri!r} of {self.server!r}>"

    @property
    def uri(self) -> str:
        """The URI of its SKILL.md."""
        return self.entry.uri

    @property
    def name(self) -> str:
        """What it is called; a label, and not the only skill with it."""
        return str(self.entry.frontmatter["name"])

    @property
    def description(self) -> str:
        """When it is of use, in its author's words."""
        return str(self.entry.frontmatter["description"])

    @property
    def dynamic(self) -> bool:
        """Whether its files are made when they are read, so that nothing can be checked of them."""
        return isinstance(self.entry.resources, str)

    @property
    def files(self) -> list[str]:
        """Its files, as paths in its folder; none where it is `dynamic`."""
        before = f"{root_of(self.uri)}/"
        found = [] if isinstance(self.entry.resources, str) else self.entry.resources
        return [file.uri.removeprefix(before) for file in found]

    def kept(self, uri: str) -> SkillFile | None:
        """A file that was read before and cannot have become another one."""
        return None if self.dynamic else self._kept.get(uri)

    def keep(self, file: SkillFile) -> bool:
        """Count a file in; whether that is still within the size that a skill may have."""
        self._bytes += len(file.data)
        self._kept[file.uri] = file
        return self._bytes <= MAX_BYTES


class SkillVerbs(Verbs):
    """The verbs for skills. Each raises as `Client` says, and UsageError for a server that has no skills."""

    async def list_skills(self, *, refresh: bool = False) -> list[Skill]:
        """The skills that the server lists; cached as `list_tools`. None of their files is read.

        A server may have more than it lists: `get_skill` finds those. Entries that break the rules of the
        extension are left out, with a warning.
        """
        session = self._skilled()
        found: list[Skill] = []
        for skill in await session.lists.entries(SKILLS, refresh=refresh):
            fault = entry_fault(skill)
            if fault is None:
                found.append(skill)
            else:
                text = "server %r: the skill %s is left out: %s"
                log.warning(text, session.connection.target.name, skill.uri, fault)
        return found

    async def get_skill(self, uri: str) -> Skill:
        """The entry of one skill as it is now, by the URI of its SKILL.md.

        Raises:
            RemoteError: the server has no such skill (-32602).
            SkillFault: the entry breaks the rules of the extension.
        """
        session = self._skilled()
        raw = await session.connection.request("skills/get", GetSkillParams(uri=uri), extras=_REPEATABLE)
        skill = session.read(raw, read_skill_entry).skill
        fault = entry_fault(skill)
        if fault is None and skill.uri != uri:
            fault = f"the server answered with another one, {skill.uri!r}"
        if fault is not None:
            raise _fault(session, uri, why=fault)
        return skill

    async def load_skill(self, skill: Skill | str) -> LoadedSkill:
        """Read the SKILL.md of a skill and hold it against the entry: its size, digest and frontmatter.

        `skill` is an entry, best the one that a person has agreed to, or a URI, whose entry is then asked
        for. No other file is read.

        Raises:
            SkillFault: it is not what the entry says, it is too much, or the entry breaks the rules.
            RemoteError: the server has no such skill, or does not give it out.
        """
        session = self._skilled()
        entry = await self.get_skill(skill) if isinstance(skill, str) else skill
        fault = entry_fault(entry) or size_fault(entry)
        if fault is not None:
            raise _fault(session, entry.uri, why=fault)
        manifest = await self._verified(session, locate(entry, entry.uri))
        try:
            fault = frontmatter_fault(entry, manifest.text)
        except UnicodeDecodeError as exc:
            fault = f"byte {exc.start + 1} of {entry.uri} is not UTF-8"
        if fault is not None:
            raise _fault(session, entry.uri, why=fault, hint=_stale(entry))
        return LoadedSkill(entry, server=session.connection.target.name, manifest=manifest)

    async def read_skill(self, skill: LoadedSkill, path: str) -> SkillFile:
        """A file of a loaded skill, checked against its entry; `path` as the skill writes it, or a URI.

        Read from the server when it is asked for first. Of a skill that is `dynamic` nothing can be checked.

        Raises:
            SkillFault: the entry has no such file, or the file is not what the entry says.
            UsageError: the skill is another server's.
            RemoteError: the server does not give it out.
        """
        session = self._skilled()
        name = session.connection.target.name
        if skill.server != name:
            raise UsageError(
                f"{skill.uri} was loaded from the server {skill.server!r}", server=name, stage="call"
            )
        try:
            file = locate(skill.entry, path)
        except ValueError as exc:
            raise _fault(session, path, why=str(exc), hint=_stale(skill.entry)) from None
        kept = skill.kept(file if isinstance(file, str) else file.uri)
        if kept is not None:
            return kept
        found = await self._verified(session, file)
        if not skill.keep(found):
            raise _fault(session, skill.uri, why=f"its files have more than {MAX_BYTES} bytes together")
        return found

    async def read_directory(self, uri: str) -> list[Resource]:
        """What lies directly in a folder of the server, sub-folders with the media type `inode/directory`.

        It says what is there now; what belongs to a skill says the skill's entry.

        Raises:
            UsageError: the server does not say that it can be asked this.
            RemoteError: there is no such folder (-32602).
        """
        session = self._skilled()
        if not _settings(session).get("directoryRead"):
            raise UsageError(
                "the server does not offer resources/directory/read",
                server=session.connection.target.name,
                stage="call",
            )

        async def page(method: str, params: PaginatedParams) -> Any:
            asked = ReadDirectoryParams(uri=uri, cursor=params.cursor)
            return await session.connection.request(method, asked, extras=_REPEATABLE)

        # Kept by nobody: the answer says nothing of how long it is true.
        shelf = Shelf.of(False, server=None, context=None)
        lists = Lists(session.connection.target.name, shelf, fetch=page, clock=session.clock)
        return await lists.entries(DIRECTORY)

    def _skilled(self) -> Session:
        session = self._ready()
        extensions = session.hello.capabilities.extensions
        if extensions is UNSET or NAME not in extensions:
            raise UsageError(
                f"the server has no skills: it does not declare the extension {NAME}",
                server=session.connection.target.name,
                stage="call",
            )
        return session

    async def _verified(self, session: Session, file: SkillResource | str) -> SkillFile:
        """A file that is what its entry says, which one in the cache may not be any more."""
        uri = file if isinstance(file, str) else file.uri
        cached = session.shelf.fresh(READ, uri, now=session.clock()) is not None
        found = _content(session, uri, result=await self.read_resource(uri))
        if isinstance(file, str):
            return found
        fault = file_fault(file, found.data)
        if fault is not None and cached:
            session.shelf.changed(READ, uri)
            found = _content(session, uri, result=await self.read_resource(uri))
            fault = file_fault(file, found.data)
        if fault is not None:
            raise _fault(session, uri, why=fault, hint="the skill may have changed: read its entry anew")
        return found


def _settings(session: Session) -> dict[str, Any]:
    extensions = session.hello.capabilities.extensions
    found: Any = {} if extensions is UNSET else extensions.get(NAME)
    return dict(found) if is_object(found) else {}


def _content(session: Session, uri: str, *, result: ReadResourceResult) -> SkillFile:
    """The bytes of the only content of a file; of several the one with its URI."""
    contents = result.contents
    mine = contents if len(contents) == 1 else [content for content in contents if content.uri == uri]
    if len(mine) != 1:
        raise _fault(session, uri, why=f"expected the content of one file, received {len(contents)}")
    mime_type = mine[0].mime_type
    try:
        data = mine[0].data()
    except ValueError:
        raise _fault(session, uri, why=f"{uri}: its blob is not Base64") from None
    return SkillFile(uri, None if mime_type is UNSET else mime_type, data)


def _stale(skill: Skill) -> str:
    return f"the skill may have changed: client.get_skill({skill.uri!r}) has its entry as it is now"


def _fault(session: Session, uri: str, *, why: str, hint: str | None = None) -> SkillFault:
    return SkillFault(why, uri=uri, server=session.connection.target.name, hint=hint)
