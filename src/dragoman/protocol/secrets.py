"""What secrets are called, and what they look like, wherever they must not be shown or recorded.

Pure: it names and it finds. What is put in place of a secret is for those who show things.
"""

from __future__ import annotations

from typing import Final

# Compared in lower case without `-`, `_` and spaces.
NAMES: Final = frozenset(
    """
    authorization proxyauthorization cookie setcookie password passwd passphrase secret clientsecret
    token accesstoken refreshtoken idtoken sessiontoken authtoken bearertoken bearer apikey xapikey
    apitoken privatekey secretkey secretaccesskey awssecretaccesskey awssessiontoken credentials
    """.split()
)
PATTERNS: Final = (
    r"(?i)\b(?:bearer|basic)\s+(?P<secret>(?=[A-Z._~+/-]*[0-9=])[A-Z0-9._~+/=-]{8,})",
    r"(?P<secret>\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,})",
    r"(?P<secret>\bgh[pousr]_[A-Za-z0-9]{20,})",
    r"(?P<secret>\bgithub_pat_[A-Za-z0-9_]{20,})",
    r"(?P<secret>\bxox[abposr]-[A-Za-z0-9-]{10,})",
    r"(?P<secret>\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)",
    r"(?P<secret>\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)",
    r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----)",
    r"(?i)://[^/\s:@]+:(?P<secret>[^/\s@]+)@",
    r"(?i)[?&](?:access_token|token|api_?key|key|secret|signature|sig|password)=(?P<secret>[^&\s\"'#]+)",
    r'(?i)"(?:access_?token|refresh_?token|token|api_?key|secret|client_?secret|password)"\s*:\s*"(?P<secret>[^"]+)"',
)
"""Regular expressions: the group `secret` is one, or the whole match."""

_PLAIN: Final = str.maketrans("", "", "-_ ")


def plain(name: str) -> str:
    """A name as those of `NAMES` are written."""
    return name.lower().translate(_PLAIN)
