"""`dragoman record -o FILE -- TARGET...`: stand between a host and a server, and record what they say.

Works as the command in a host's configuration: the host sees the server, the server sees the host.
"""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace

from dragoman.cli import output, tapes
from dragoman.client.options import ClientOptions
from dragoman.client.target import resolve
from dragoman.testing.between import record_program, record_transport
from dragoman.testing.cassette import Recorder
from dragoman.transports.child import ChildTransport
from dragoman.transports.stdio import Streams


def run(options: Namespace) -> int:
    """Record until either side ends; returns the exit status of the server where it is a program."""
    return tapes.perform(options, work=_record)


def _record(options: Namespace) -> int:
    transport = resolve(tapes.target(options.target), ClientOptions()).make()
    with Recorder(options.output, redaction=tapes.redaction(options)) as recorder:
        streams = Streams.claim()
        if os.isatty(streams.reader):
            output.note("dragoman: recording over stdio: a host starts this; Ctrl-C ends it")

        async def work() -> int:
            if isinstance(transport, ChildTransport):
                return await record_program(transport.start(), recorder, streams=streams)
            return await record_transport(transport, recorder, streams=streams)

        return asyncio.run(work())
