"""Calling servers: `Client`, and `SyncClient` for code that does not await.

What is sent and when is decided here; how bytes travel is the transports' business.
"""

from __future__ import annotations

from dragoman.client.cache import Cache
from dragoman.client.client import Client
from dragoman.client.feed import Change
from dragoman.client.listening import Listening
from dragoman.client.options import ClientOptions
from dragoman.client.result import OtherContent, ToolResult
from dragoman.client.sync import SyncClient, SyncListening

__all__ = [
    "Cache",
    "Change",
    "Client",
    "ClientOptions",
    "Listening",
    "OtherContent",
    "SyncClient",
    "SyncListening",
    "ToolResult",
]
