"""A host: the configured servers of a project, for a model, with permissions, evidence and names.

The files that are read and the rules that are matched: docs/hosts.md.
"""

from __future__ import annotations

from dragoman.host.config.record import Origin, Problem, Rule, ServerConfig
from dragoman.host.files import Project, read_project
from dragoman.host.host import Ask, Host, HostOptions, Outcome, Question
from dragoman.host.permissions import Decision, decide
from dragoman.host.session import Frame, Session
from dragoman.host.trace import Trace
from dragoman.protocol.naming import Name, Names

__all__ = [
    "Ask",
    "Decision",
    "Frame",
    "Host",
    "HostOptions",
    "Name",
    "Names",
    "Origin",
    "Outcome",
    "Problem",
    "Project",
    "Question",
    "Rule",
    "ServerConfig",
    "Session",
    "Trace",
    "decide",
    "read_project",
]
