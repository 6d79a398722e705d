"""Servers: the public `Server` and `Context`, and what stands behind them."""

from __future__ import annotations

from dragoman.server.context import Context
from dragoman.server.media import Audio, File, Image
from dragoman.server.server import Server

__all__ = ["Audio", "Context", "File", "Image", "Server"]
