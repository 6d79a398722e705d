"""A small reader of docstrings in the Google, NumPy and Sphinx styles.

It finds the parameter descriptions and the text without them, and refuses to know any other markup.
"""

from __future__ import annotations

import re

# Compiled, and kept by `re`, when first used: a server that starts needs none of them.
_SECTION = r"(?i)^(args|arguments|parameters|params|keyword args|keyword arguments|other parameters):?$"
_OTHER = (
    r"(?i)^(returns?|yields?|raises?|examples?|notes?|see also|warnings?|warns|attributes|references"
    r"|todo):?$"
)
_GOOGLE = r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$"
_NUMPY = r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$"
_SPHINX = r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$"
_SPHINX_OTHER = r"^:(?:type|returns?|rtype|raises?|var|ivar|cvar|meta)\b[^:]*:"


def clean(doc: str) -> list[str]:
    """The lines of a docstring without common indentation and blank ends (as PEP 257 describes)."""
    first, *rest = doc.expandtabs().split("\n")
    margin = min((_indent(line) for line in rest if line.strip()), default=0)
    lines = [first.strip(), *(line[margin:].rstrip() for line in rest)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def read_docstring(doc: str | None) -> tuple[str, dict[str, str]]:
    """`(text, descriptions)`: the text without the parameters, and each parameter's description."""
    if not doc:
        return "", {}
    if "\n" not in doc and ":" not in doc:
        return doc.strip(), {}
    lines = clean(doc)
    found: dict[str, str] = {}
    kept: list[str] = []
    at = 0
    while at < len(lines):
        taken = _take_section(lines, at, found=found) or _take_sphinx(lines, at, found=found)
        if taken == 0:
            kept.append(lines[at])
        at += taken or 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_rule(lines: list[str], at: int) -> bool:
    return at < len(lines) and len(lines[at].strip()) > 2 and not lines[at].strip().strip("-")


def _take_section(lines: list[str], at: int, *, found: dict[str, str]) -> int:
    """The number of lines that a parameter section takes from `at` on; 0 when none starts there."""
    if _indent(lines[at]) or not re.match(_SECTION, lines[at]):
        return 0
    if _is_rule(lines, at + 1):
        return _take_numpy(lines, at + 2, found=found) - at
    if lines[at].endswith(":"):
        return _take_google(lines, at + 1, found=found) - at
    return 0


def _take_google(lines: list[str], at: int, *, found: dict[str, str]) -> int:
    entry = 0
    name = ""
    while at < len(lines) and (not lines[at] or _indent(lines[at])):
        line = lines[at]
        at += 1
        if not line:
            continue
        entry = entry or _indent(line)
        if _indent(line) <= entry:
            match = re.match(_GOOGLE, line.strip())
            name = match[1] if match else ""
            if match:
                found[name] = match[2].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return at


def _take_numpy(lines: list[str], at: int, *, found: dict[str, str]) -> int:
    names: list[str] = []
    while at < len(lines) and not _is_rule(lines, at + 1):
        line = lines[at]
        if line and not _indent(line):
            match = re.match(_NUMPY, line)
            if not match or re.match(_OTHER, line):
                break
            names = [name.strip() for name in match[1].split(",")]
            found.update(dict.fromkeys(names, ""))
        elif line:
            found.update({name: f"{found[name]} {line.strip()}".strip() for name in names})
        at += 1
    return at


def _take_sphinx(lines: list[str], at: int, *, found: dict[str, str]) -> int:
    line = lines[at].strip()
    match = re.match(_SPHINX, line)
    if match:
        found[match[1]] = match[2].strip()
    elif not re.match(_SPHINX_OTHER, line):
        return 0
    taken = 1
    while at + taken < len(lines) and _indent(lines[at + taken]) > _indent(lines[at]):
        if match:
            found[match[1]] = f"{found[match[1]]} {lines[at + taken].strip()}".strip()
        taken += 1
    return taken
