"""What secrets are called, and what they look like, wherever they must not be shown or recorded.

Pure: it names and it finds. What is put in place of a secret is said by those who show things.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Compared in lower case without `-`, `_` and spaces.
NAMES: Final = frozenset(
    """
    authorization proxyauthorization cookie setcookie password passwd passphrase secret clientsecret
    token accesstoken refreshtoken idtoken sessiontoken authtoken bearertoken bearer apikey xapikey
    apitoken privatekey secretkey secretaccesskey awssecretaccesskey awssessiontoken credentials
    """.split()
)
# Of a tool's arguments and the like, where `key` and `max_tokens` are mostly something else.
_MEMBER: Final = re.compile(
    r"pass(word|wd|phrase)s?$|pass$|secret|token$|api[-_]?key|private[-_]?key|authorization|credential|cookie",
    re.IGNORECASE,
)
# Members of the protocol that only sound like it.
_OPEN: Final = frozenset({"progressToken"})
# Of variables, options and headers in a configuration, where they are not.
_SETTING: Final = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|(api|access|private|auth)?[-_]?key$|authorization|credential|cookie|^pat$",
    re.IGNORECASE,
)
# Each with what one of must stand in a text that it is found in, in lower case: most texts have none of
# them, and looking for that is many times faster. Every pattern is linear in any text, for texts come from
# servers: no start inside a run that failed, and no end that is looked for again and again.
FORMS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        r"(?i)\b(?:bearer|basic)\s+(?P<secret>(?=[A-Z._~+/-]*[0-9=])[A-Z0-9._~+/=-]{8,})",
        ("bearer", "basic"),
    ),
    (r"(?P<secret>\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,})", ("sk-", "pk-", "rk-")),
    (r"(?P<secret>\b(?:sk|rk)_live_[A-Za-z0-9]{16,})", ("_live_",)),
    (r"(?P<secret>\bgh[pousr]_[A-Za-z0-9]{20,})", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_")),
    (r"(?P<secret>\bgithub_pat_[A-Za-z0-9_]{20,})", ("github_pat_",)),
    (r"(?P<secret>\b(?:glpat-|npm_|hf_)[A-Za-z0-9_-]{20,})", ("glpat-", "npm_", "hf_")),
    (r"(?P<secret>\bxox[abposr]-[A-Za-z0-9-]{10,})", ("xox",)),
    (r"(?P<secret>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)", ("akia", "asia")),
    (r"(?P<secret>\bAIza[A-Za-z0-9_-]{35})", ("aiza",)),
    (
        r"(?P<secret>(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
        ("eyj",),
    ),
    (
        r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-(?!----))*(?:-----END [A-Z ]*KEY-----)?)",
        ("private key-----",),
    ),
    (r"(?i)://[^/\s:@]+:(?P<secret>[^/\s@]+)@", ("://",)),
    (
        (
            r"(?i)[?&](?:[A-Z0-9_-]*(?:token|api_?key|secret|signature|password)|key|sig)="
            r"(?P<secret>[^&\s\"'#]+)"
        ),
        ("token=", "key=", "secret=", "signature=", "sig=", "password="),
    ),
    (
        r'(?i)"(?:access_?token|refresh_?token|token|api_?key|secret|client_?secret|password)"\s*:\s*"(?P<secret>[^"]+)"',
        ('token"', 'key"', 'secret"', 'password"'),
    ),
)
PATTERNS: Final = tuple(pattern for pattern, _ in FORMS)
"""Regular expressions: the group `secret` is one, or the whole match."""

_PLAIN: Final = str.maketrans("", "", "-_ ")


def plain(name: str) -> str:
    """A name as those of `NAMES` are written."""
    return name.lower().translate(_PLAIN)


@lru_cache(maxsize=1024)
def secret_member(name: str) -> bool:
    """Whether a member of an object with this name holds a secret."""
    return name not in _OPEN and (_MEMBER.search(name) is not None or plain(name) in NAMES)


def secret_setting(name: str) -> bool:
    """Whether a variable, an option or a header of this name has a secret for its value."""
    return plain(name) in NAMES or _SETTING.search(name) is not None


def blotted(found: re.Match[str], mark: str) -> str:
    """What was found, with `mark` in place of its group `secret`, or of all of it where there is none."""
    if "secret" not in found.re.groupindex:
        return mark
    start, end = (place - found.start() for place in found.span("secret"))
    whole: str = found[0]
    return f"{whole[:start]}{mark}{whole[end:]}"
