"""Extensions of MCP, a folder or module each. Nothing is loaded before it is named."""

from __future__ import annotations
