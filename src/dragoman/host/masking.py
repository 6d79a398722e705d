"""What of a server's entry may be shown: secrets that stand in it are found, and hidden.

Pure. References to variables are no secrets, and stay readable. What is unsure is hidden in `env` and
headers, whose values are mostly secrets, and shown elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from dragoman.host.config.expand import references
from dragoman.host.config.record import ServerConfig
from dragoman.host.config.references import SYNTAXES, named
from dragoman.protocol.secrets import PATTERNS, blotted, secret_setting

HIDDEN: Final = "[hidden]"
_TOLD: Final = 8  # characters from which on a text is found without quotes around it

_LOOKS: Final = tuple(map(re.compile, PATTERNS))
_HARMLESS: Final = re.compile(r"\s*(?:(?:Bearer|Basic|Token)\s+)?", re.IGNORECASE)
# Long and of one piece: digits with letters of both cases, digits of base 16, or no words at all. Neither a
# path nor a package, and not the name of a model with its date.
_OPAQUE: Final = re.compile(
    r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9_~+=-]{20,}|[0-9a-f]{32,}|(?=.*\d)(?=.*[A-Z])[A-Z0-9]{20,}"
)
_OPTION: Final = re.compile(r"-{1,2}(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.*))?", re.DOTALL)
_PAIR: Final = re.compile(r"(?P<name>[A-Za-z_][\w.-]*)\s*[=:]\s*(?P<value>.+)", re.DOTALL)


def looks_secret(text: str) -> bool:
    """Whether a text is, or holds, what secrets look like."""
    return _OPAQUE.fullmatch(text) is not None or any(look.search(text) for look in _LOOKS)


def referring(text: str, syntax: str) -> bool:
    """Whether a text is a reference, with no more beside it than how a token is introduced."""
    pattern = SYNTAXES[syntax].pattern
    if pattern is None or pattern.search(text) is None:
        return False
    if any(found.groupdict().get("default") for found in pattern.finditer(text)):
        return False  # the default may be the secret itself
    return _HARMLESS.fullmatch(pattern.sub("", text)) is not None


def shown_table(table: Mapping[str, str], syntax: str) -> dict[str, str]:
    """`env` or headers: names, and of values the references alone."""
    return {name: value if referring(value, syntax) else HIDDEN for name, value in table.items()}


def shown_args(args: tuple[str, ...], syntax: str) -> tuple[str, ...]:
    """The words of a command line, without those that are secrets by their name or their look."""
    shown: list[str] = []
    is_secret = False
    for word in args:
        option = _OPTION.fullmatch(word)
        if is_secret and option is None:
            shown.append(word if referring(word, syntax) else HIDDEN)
            is_secret = False
            continue
        named = option is not None and secret_setting(option["name"])
        is_secret = named and option is not None and option["value"] is None
        shown.append(_word(word, syntax))
    return tuple(shown)


def _word(word: str, syntax: str) -> str:
    """One word: an option with its value, a header, a URL, or what looks like a secret."""
    option = _OPTION.fullmatch(word)
    if option is not None and option["value"] is None:
        return word
    if option is None and "://" in word:
        return shown_url(word, syntax)
    found = option or _PAIR.fullmatch(word)
    if found is not None:
        value = found["value"]
        start = word[: found.start("value")]
        if secret_setting(found["name"]):
            return word if referring(value, syntax) else start + HIDDEN
        return start + _word(value, syntax) if option is not None else _plain_word(word, syntax)
    return _plain_word(word, syntax)


def _plain_word(word: str, syntax: str) -> str:
    return HIDDEN if looks_secret(word) and not referring(word, syntax) else word


def shown_url(url: str, syntax: str) -> str:
    """A URL without whom it is for, the values of its query, its fragment, and secrets in its path."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    who, at, host = parts.netloc.rpartition("@")
    netloc = f"{who if referring(who, syntax) else HIDDEN}@{host}" if at else host
    path = "/".join(_plain_word(part, syntax) for part in parts.path.split("/"))
    query = "&".join(_member(pair, syntax) for pair in parts.query.split("&")) if parts.query else ""
    fragment = HIDDEN if parts.fragment else ""
    return urlunsplit((parts.scheme, netloc, path, query, fragment))


def _member(pair: str, syntax: str) -> str:
    name, equals, value = pair.partition("=")
    if not equals:
        return HIDDEN  # a value alone
    return f"{name}={value if referring(value, syntax) else HIDDEN}"


def what(config: ServerConfig) -> str:
    """What an entry starts or reaches, on one line, with its secrets hidden."""
    if config.url is not None:
        return shown_url(config.url, config.syntax)
    return " ".join((config.command or "", *shown_args(config.args, config.syntax)))


def secrets(config: ServerConfig) -> Iterator[str]:
    """The places in an entry at which a secret stands as text, such as `env.API_KEY`."""
    for label, table in (("env", config.env), ("headers", config.headers)):
        for name, value in table.items():
            if value and _is_secret(name, value, syntax=config.syntax):
                yield f"{label}.{name}"
    for index, (word, seen) in enumerate(
        zip(config.args, shown_args(config.args, config.syntax), strict=True)
    ):
        if word != seen:
            yield f"args[{index}]"
    if config.url is not None and _has_secret(config.url, config.syntax):
        yield "url"


def literals(configs: Iterable[ServerConfig]) -> dict[str, str]:
    """Texts of entries that are not shown, and what is shown in their place; the longest first."""
    found: dict[str, str] = {}
    for config in configs:
        for value in (*config.env.values(), *config.headers.values()):
            if value and not referring(value, config.syntax):
                found[value] = HIDDEN
        pairs = list(zip(config.args, shown_args(config.args, config.syntax), strict=True))
        if config.url is not None:
            pairs.append((config.url, shown_url(config.url, config.syntax)))
        found |= {word: seen for word, seen in pairs if word != seen}
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def held(config: ServerConfig, env: Mapping[str, str]) -> tuple[str, ...]:
    """Secrets that the server of an entry is given, as values: programs repeat them in what they complain of.

    Those that stand in the entry, and of the variables that it refers to those that are secrets by their
    names, by their looks, or by where they go; the longest first.
    """
    syntax = config.syntax
    found = {env.get(name, "") for name in references(config) if _is_value(name, env.get(name, ""))}
    goes = [config.url or "", *config.headers.values()]
    goes += [value for name, value in config.env.items() if secret_setting(name)]
    goes += [word for option, word in pairwise(config.args) if secret_setting(option.lstrip("-"))]
    names = [name for text in goes for name in named(syntax, text)]
    names += [*config.header_env.values(), *([] if config.bearer_env is None else [config.bearer_env])]
    found |= {env.get(name, "") for name in names}
    for name, value in (*config.env.items(), *config.headers.items()):
        if _is_secret(name, value, syntax=syntax):
            found |= {value, *value.split()}
    for word, seen in zip(config.args, shown_args(config.args, syntax), strict=True):
        if word != seen:
            found |= {word, word.partition("=")[2], *word.split()}
    return tuple(sorted((value for value in found if len(value) >= _TOLD), key=lambda value: -len(value)))


def _is_value(name: str, value: str) -> bool:
    return secret_setting(name) or looks_secret(value)


def without(text: str, values: Iterable[str]) -> str:
    """A text with `[hidden]` in the place of these values, which are secrets; the longest come first."""
    for value in values:
        text = text.replace(value, HIDDEN)
    return text


def covered(text: str, hidden: Mapping[str, str]) -> str:
    """A line of a file without `hidden` texts, in quotes or long enough to be told without, and secrets."""
    for value, seen in hidden.items():
        escaped = json.dumps(value, ensure_ascii=False)
        text = text.replace(escaped, json.dumps(seen)).replace(f"'{value}'", f"'{seen}'")
        if len(value) >= _TOLD:
            text = text.replace(escaped[1:-1], seen).replace(value, seen)
    for look in _LOOKS:
        text = look.sub(_hidden, text)
    return text


def _is_secret(name: str, value: str, *, syntax: str) -> bool:
    return (secret_setting(name) or looks_secret(value)) and not referring(value, syntax)


def _hidden(found: re.Match[str]) -> str:
    return blotted(found, HIDDEN)


def _has_secret(url: str, syntax: str) -> bool:
    """Whether a secret stands in a URL, and not only something that is not shown."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    who, at, _ = parts.netloc.rpartition("@")
    pairs = [pair.partition("=") for pair in parts.query.split("&")]
    return (
        (bool(at) and not referring(who, syntax))
        or any(_is_secret(name, value, syntax=syntax) for name, _, value in pairs if value)
        or any(_plain_word(part, syntax) != part for part in parts.path.split("/"))
    )
