"""What a host has to hold against each other before it uses a skill that a server offers. Pure.

The rules are those of the extension `io.modelcontextprotocol/skills` (SEP-2640): an entry by itself, the
bytes of a file against the entry, the frontmatter of SKILL.md against the entry's. It opens no files.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import quote, unquote

from dragoman.model.skills_extension import MANIFEST, MAX_BYTES, MAX_FILES, Skill, SkillResource

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def root_of(uri: str) -> str:
    """The URI of a skill's folder, by that of its SKILL.md."""
    return uri.removesuffix(f"/{MANIFEST}")


def entry_fault(skill: Skill) -> str | None:
    """Why an entry is none that a skill may be loaded from; None if it is one (Skill Entries)."""
    root, slash, file = skill.uri.rpartition("/")
    folder = unquote(root.rpartition("/")[2])
    name, description = (skill.frontmatter.get(field) for field in ("name", "description"))
    if not slash or file != MANIFEST:
        return f"expected the URI of a {MANIFEST}, found {skill.uri!r}"
    if not isinstance(name, str) or not isinstance(description, str):
        return "its frontmatter lacks a name or a description"
    if folder != name:
        return f"its folder is called {folder!r}, and its frontmatter names it {name!r}"
    if isinstance(skill.resources, str):
        return None
    return _files_fault(skill.resources, manifest=skill.uri)


def _files_fault(files: list[SkillResource], *, manifest: str) -> str | None:
    uris = [file.uri for file in files]
    if manifest not in uris:
        return f"its files do not include {manifest}"
    if len(set(uris)) < len(uris):
        return "it names one of its files twice"
    inside = f"{root_of(manifest)}/"
    for file in files:
        steps = file.uri.removeprefix(inside).split("/")
        if not file.uri.startswith(inside) or "" in steps or not _straight(file.uri):
            return f"{file.uri!r} does not lie in its folder"
        if _DIGEST.fullmatch(file.digest) is None:
            return f"{file.uri}: expected sha256: and 64 lower-case hexadecimal digits, found {file.digest!r}"
        if file.size < 0:
            return f"{file.uri}: its size is {file.size}"
    return None


def size_fault(skill: Skill) -> str | None:
    """Why a skill is more than hosts have to load; None if it is not, or does not say (Limits)."""
    if isinstance(skill.resources, str):
        return None
    if len(skill.resources) > MAX_FILES:
        return f"it has {len(skill.resources)} files, and at most {MAX_FILES} are loaded"
    size = sum(file.size for file in skill.resources)
    return None if size <= MAX_BYTES else f"its files have {size} bytes, and at most {MAX_BYTES} are loaded"


def file_fault(file: SkillResource, data: bytes) -> str | None:
    """How the bytes of a file differ from what the entry says of them (Verification on Read)."""
    if len(data) != file.size:
        return f"{file.uri} has {len(data)} bytes, and the skill's entry says {file.size}"
    digest = f"sha256:{sha256(data).hexdigest()}"
    return None if digest == file.digest else f"{file.uri} has the digest {digest}, its entry {file.digest}"


def frontmatter_fault(skill: Skill, text: str) -> str | None:
    """How the frontmatter of a SKILL.md differs from the entry's (Frontmatter Verification)."""
    from dragoman.protocol.frontmatter import FrontmatterFault, read_frontmatter

    try:
        found = read_frontmatter(text)
    except FrontmatterFault as exc:
        return f"{skill.uri}: {exc}"
    for field in dict.fromkeys((*skill.frontmatter, *found)):
        if field not in found:
            return f"{skill.uri} has no field {field!r}, which its entry has"
        if field not in skill.frontmatter:
            return f"{skill.uri} has a field {field!r}, which its entry does not have"
        if not _same(skill.frontmatter[field], found[field]):
            return f"{skill.uri} has another {field!r} than its entry"
    return None


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: 1 and 1.0 are one number, and no truth value."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    if isinstance(one, list) and isinstance(other, list):
        items = cast("list[Any]", one)  # type: ignore[redundant-cast]  # the other checker sees unknowns
        more = cast("list[Any]", other)  # type: ignore[redundant-cast]  # as above
        return len(items) == len(more) and all(_same(*pair) for pair in zip(items, more, strict=True))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def locate(skill: Skill, path: str) -> SkillResource | str:
    """The file that a skill means by `path`, relative to its folder, or by a URI (Relative References).

    As its entry has it; only its URI, where the entry names no files. A `#place` in the file is passed over.

    Raises:
        ValueError: there is no such file of the skill.
    """
    root = root_of(skill.uri)
    if isinstance(skill.resources, str):
        plain = path.partition("#")[0]
        uri = plain if _ABSOLUTE.match(plain) else f"{root}/{quote(_within(plain), safe=_SAFE)}"
        if not uri.startswith(f"{root}/") or not _straight(uri):
            raise ValueError(f"{path!r} does not lie in the folder of {skill.uri}")
        return uri
    known = {unquote(file.uri): file for file in skill.resources}
    for plain in (path, path.partition("#")[0]):  # a file's own name may have a mark in it
        uri = plain if _ABSOLUTE.match(plain) else f"{root}/{_within(plain)}"
        found = known.get(unquote(uri))
        if found is not None:
            return found
    raise ValueError(f"{path!r} is none of the files that the entry of {skill.uri} names")


_SAFE: Final = "/!$&'()*+,;=:@%"  # a reference in a text may be encoded already


def _straight(uri: str) -> bool:
    """Whether a URI leads nowhere but down, however its parts are written."""
    return {".", ".."}.isdisjoint(unquote(uri).split("/"))


def _within(path: str) -> str:
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                raise ValueError(f"{path!r} leads out of the skill's folder")
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps)
