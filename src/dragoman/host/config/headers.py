"""Which headers of an entry can be sent at all. Pure."""

from __future__ import annotations

import re
from typing import Final

_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def is_name(text: str) -> bool:
    """Whether a text is the name of a header: RFC 9110, section 5.1."""
    return _NAME.fullmatch(text) is not None


def is_value(text: str) -> bool:
    """Whether a text is a header's value: RFC 9110, section 5.5, where no sign but a tab is a control."""
    return _CONTROL.search(text) is None
