"""Reading the params of requests, each by the shape of its method; refuses to know what they mean.

A method that was seen before is read with its envelope, in one decode of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from dragoman.jsonrpc.message import Envelopes, Request, decode_envelope, envelopes
from dragoman.model import Params
from dragoman.revisions import BY_VERSION
from dragoman.revisions.base import Method

Read: TypeAlias = Callable[[bytes | msgspec.Raw], Any]


class Reading:
    """`envelope` is what a transport of MCP requests gives to `jsonrpc.message.decode`.

    Nothing is made before a request needs it: a server that starts pays for none of it.
    """

    __slots__ = ("_decoders", "_readers", "_seen", "_shapes", "envelope")

    def __init__(self, shapes: Mapping[str, type[Params]]) -> None:
        self.envelope: Envelopes = decode_envelope
        self._shapes = shapes
        self._seen: dict[str, type[Params]] = {}
        self._readers: dict[str, Read] = {}
        self._decoders: dict[type[Params], Read] = {}

    def read(self, request: Request, extra: Mapping[str, Method]) -> Any:
        """The params that did not come with the envelope. `extra` are methods that extensions add.

        Raises:
            msgspec.ValidationError: they are not of their method's shape.
        """
        name = request.method
        read = self._readers.get(name)
        if read is None:
            read = self._reader(name, extra)
        elif name not in self._seen:
            self._seen = {**self._seen, name: self._shapes[name]}
            self.envelope = envelopes(self._seen)
        return read(request.params or b"{}")

    def _reader(self, name: str, extra: Mapping[str, Method]) -> Read:
        shape = self._shapes.get(name)
        if shape is not None:
            read = self._readers[name] = self._decoder(shape)
            return read
        return self._decoder(extra[name].params if name in extra else Params)

    def _decoder(self, shape: type[Params]) -> Read:
        decode = self._decoders.get(shape)
        if decode is None:
            decode = self._decoders[shape] = msgspec.json.Decoder(shape).decode
        return decode


READING = Reading({m.name: m.params for r in BY_VERSION.values() for m in r.methods.values()})
"""Of all revisions: a method has one shape, whichever revision a request speaks."""
