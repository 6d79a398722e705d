"""Whether a host gives its model all tools at once, or lets it search for them. Pure.

These are Claude Code's conditions; searching itself is elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

_AUTO: Final = re.compile(r"auto(?::(\d{1,3}))?")
_DEFAULT_SHARE: Final = 10.0
_OWN_HOSTS: Final = frozenset({"api.anthropic.com"})
_ON: Final = frozenset({"1", "true", "yes", "on"})


def defers(
    env: Mapping[str, str], *, share: float = 100.0, denied: Collection[str] = (), able: bool = True
) -> bool:
    """Whether tools are deferred.

    `share` is what their definitions take of the model's context, in percent; `denied` are names of tools
    that a rule denies altogether; `able` whether model and provider have such a search.
    """
    if env.get("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "").lower() in _ON or "ToolSearch" in denied:
        return False
    told = env.get("ENABLE_TOOL_SEARCH", "").strip().lower()
    if told in ("", "true", "1"):
        return able and (bool(told) or _first_party(env.get("ANTHROPIC_BASE_URL", "")))
    found = _AUTO.fullmatch(told)
    if found is None:
        return False
    return share >= (float(found[1]) if found[1] else _DEFAULT_SHARE)


def _first_party(address: str) -> bool:
    if not address:
        return True
    try:
        return urlsplit(address).hostname in _OWN_HOSTS
    except ValueError:
        return False


def always_loaded(entry: Mapping[str, Any], meta: Mapping[str, Any]) -> bool:
    """Whether a tool is there from the start: by its server's entry, or by its own `_meta`."""
    return entry.get("alwaysLoad") is True or meta.get("anthropic/alwaysLoad") is True
