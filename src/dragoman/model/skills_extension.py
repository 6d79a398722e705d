"""Skills as the extension `io.modelcontextprotocol/skills` has them on the wire (SEP-2640), for both ends."""

from __future__ import annotations

from typing import Any, Final, Literal

from dragoman.model.base import CacheableResult, Model, PaginatedParams, PaginatedResult, Params
from dragoman.model.resources import Resource

NAME: Final = "io.modelcontextprotocol/skills"
SCHEME: Final = "skill://"
FOLDER: Final = "inode/directory"  # the media type of a directory resource
MANIFEST: Final = "SKILL.md"  # the file that makes a directory a skill
MAX_FILES: Final = 512  # of one skill, which every host has to be able to load
MAX_BYTES: Final = 16 * 1024 * 1024  # of all its files together


class SkillResource(Model, kw_only=True):
    """A file of a skill; `digest` is `sha256:` and 64 lower-case hexadecimal digits, of its `size` bytes."""

    uri: str
    digest: str
    size: int


class Skill(Model, kw_only=True):
    """One skill: the URI of its SKILL.md, the frontmatter of that file, and all of its files."""

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillResource] | Literal["dynamic"]


class ListSkillsResult(PaginatedResult, kw_only=True):
    """One page of skills."""

    skills: list[Skill]


class GetSkillParams(Params, kw_only=True):
    """`skills/get`: by the URI of its SKILL.md."""

    uri: str


class GetSkillResult(CacheableResult, kw_only=True):
    """One skill, as in the list."""

    skill: Skill


class ReadDirectoryParams(PaginatedParams, kw_only=True):
    """`resources/directory/read`: of a directory resource, without a slash at its end."""

    uri: str


class ReadDirectoryResult(PaginatedResult, kw_only=True):
    """One page of what lies directly in a directory."""

    resources: list[Resource]
