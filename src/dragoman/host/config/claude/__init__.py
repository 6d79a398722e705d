"""Claude Code's dialect: entries, settings, scopes, approval, and an organisation's lists."""

from __future__ import annotations

from dragoman.host.config.claude.entries import HOST, RESERVED, Brought, read_servers
from dragoman.host.config.claude.scopes import read
from dragoman.host.config.claude.settings import read_rules, read_settings

__all__ = ["HOST", "RESERVED", "Brought", "read", "read_rules", "read_servers", "read_settings"]
