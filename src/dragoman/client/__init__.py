"""Calling servers: `Client`, and `SyncClient` for code that does not await.

What is sent and when is decided here; how bytes travel is the transports' business.
"""

from __future__ import annotations

from dragoman.client.client import Client
from dragoman.client.options import ClientOptions
from dragoman.client.result import OtherContent, ToolResult
from dragoman.client.sync import SyncClient

__all__ = ["Client", "ClientOptions", "OtherContent", "SyncClient", "ToolResult"]
