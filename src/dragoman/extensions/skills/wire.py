"""The methods of the skills extension, and how its URIs are made. No files, no rules of what a skill is.

The shapes are in `model.skills_extension`, since a client has them too.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from dragoman.model import PaginatedParams
from dragoman.model.skills_extension import SCHEME, GetSkillParams, ReadDirectoryParams
from dragoman.revisions.base import Method, table

METHODS: Final = table(
    Method("skills/list", PaginatedParams, cacheable=True, everywhere=True),
    Method("skills/get", GetSkillParams, cacheable=True, everywhere=True),
    # Its result has no hints for caches by the text of the extension, but there are clients that insist.
    Method("resources/directory/read", ReadDirectoryParams, cacheable=True, everywhere=True),
)


def uri_of(path: str) -> str:
    """The URI of a file or directory by its path, such as `acme/refunds/SKILL.md`."""
    return SCHEME + quote(path, safe="/!$&'()*+,;=")
