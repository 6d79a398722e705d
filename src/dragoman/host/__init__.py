"""A host: the configured servers of a project, for a model, with permissions, evidence and names.

The files that are read and the rules that are matched: docs/hosts.md. Each name is loaded when it is first
used: a command that reads files does not wait for clients and models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.host.config.expand import expand
    from dragoman.host.config.record import (
        Origin,
        Problem,
        Rule,
        ServerConfig,
        Setup,
        Situation,
        Source,
        Standing,
    )
    from dragoman.host.dialects import DIALECTS, Dialect
    from dragoman.host.files import HostFiles
    from dragoman.host.host import Host
    from dragoman.host.locations import Machine
    from dragoman.host.lock import Lock, read_lock, write_lock
    from dragoman.host.loop.events import Asking, CallEnded, CallStarted, Ended, Event, Message, RunResult
    from dragoman.host.loop.options import Limits
    from dragoman.host.loop.run import Run
    from dragoman.host.loop.state import RunState, saver
    from dragoman.host.models import APIS, Api
    from dragoman.host.models.base import Failed, Shown, TextDelta, ThoughtDelta, ToolUse
    from dragoman.host.models.scripted import Says, ScriptedModel
    from dragoman.host.naming import HostNames
    from dragoman.host.options import Answer, Approve, Ask, HostOptions, LockLike, Question
    from dragoman.host.outcome import Judged, Outcome
    from dragoman.host.permissions import Call, Decision, decide
    from dragoman.host.provider.fault import ModelError
    from dragoman.host.provider.model import Model
    from dragoman.host.provider.talk import AnyModel, Prices, Waiting
    from dragoman.host.reading import installed, read_own, read_setup, this_machine
    from dragoman.host.roster import Reloaded
    from dragoman.host.search import ToolIndex
    from dragoman.host.session import Frame, Session
    from dragoman.host.supervisor import Supervisor
    from dragoman.host.trace import Redaction, Trace
    from dragoman.protocol.naming import Name, Names

_HOMES = {
    "APIS": ".models",
    "DIALECTS": ".dialects",
    "Answer": ".options",
    "AnyModel": ".provider.talk",
    "Api": ".models",
    "Approve": ".options",
    "Ask": ".options",
    "Asking": ".loop.events",
    "Call": ".permissions",
    "CallEnded": ".loop.events",
    "CallStarted": ".loop.events",
    "Decision": ".permissions",
    "Dialect": ".dialects",
    "Ended": ".loop.events",
    "Event": ".loop.events",
    "Failed": ".models.base",
    "Frame": ".session",
    "Host": ".host",
    "HostFiles": ".files",
    "HostNames": ".naming",
    "HostOptions": ".options",
    "Judged": ".outcome",
    "Limits": ".loop.options",
    "Lock": ".lock",
    "LockLike": ".options",
    "Machine": ".locations",
    "Message": ".loop.events",
    "Model": ".provider.model",
    "ModelError": ".provider.fault",
    "Name": "dragoman.protocol.naming",
    "Names": "dragoman.protocol.naming",
    "Origin": ".config.record",
    "Outcome": ".outcome",
    "Prices": ".provider.talk",
    "Problem": ".config.record",
    "Question": ".options",
    "Redaction": ".trace",
    "Reloaded": ".roster",
    "Rule": ".config.record",
    "Run": ".loop.run",
    "RunResult": ".loop.events",
    "RunState": ".loop.state",
    "Says": ".models.scripted",
    "ScriptedModel": ".models.scripted",
    "ServerConfig": ".config.record",
    "Session": ".session",
    "Setup": ".config.record",
    "Shown": ".models.base",
    "Situation": ".config.record",
    "Source": ".config.record",
    "Standing": ".config.record",
    "Supervisor": ".supervisor",
    "TextDelta": ".models.base",
    "ThoughtDelta": ".models.base",
    "ToolIndex": ".search",
    "ToolUse": ".models.base",
    "Trace": ".trace",
    "Waiting": ".provider.talk",
    "decide": ".permissions",
    "expand": ".config.expand",
    "installed": ".reading",
    "read_lock": ".lock",
    "read_own": ".reading",
    "read_setup": ".reading",
    "saver": ".loop.state",
    "this_machine": ".reading",
    "write_lock": ".lock",
}

__all__ = [
    "APIS",
    "DIALECTS",
    "Answer",
    "AnyModel",
    "Api",
    "Approve",
    "Ask",
    "Asking",
    "Call",
    "CallEnded",
    "CallStarted",
    "Decision",
    "Dialect",
    "Ended",
    "Event",
    "Failed",
    "Frame",
    "Host",
    "HostFiles",
    "HostNames",
    "HostOptions",
    "Judged",
    "Limits",
    "Lock",
    "LockLike",
    "Machine",
    "Message",
    "Model",
    "ModelError",
    "Name",
    "Names",
    "Origin",
    "Outcome",
    "Prices",
    "Problem",
    "Question",
    "Redaction",
    "Reloaded",
    "Rule",
    "Run",
    "RunResult",
    "RunState",
    "Says",
    "ScriptedModel",
    "ServerConfig",
    "Session",
    "Setup",
    "Shown",
    "Situation",
    "Source",
    "Standing",
    "Supervisor",
    "TextDelta",
    "ThoughtDelta",
    "ToolIndex",
    "ToolUse",
    "Trace",
    "Waiting",
    "decide",
    "expand",
    "installed",
    "read_lock",
    "read_own",
    "read_setup",
    "saver",
    "this_machine",
    "write_lock",
]


def __getattr__(name: str) -> Any:
    """Load the module that has `name`."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dragoman.host' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value
