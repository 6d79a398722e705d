"""`Host`: the servers that a host's files name, their tools for a model, and each call checked and traced.

The one thing that programs hold: what files come to is in `files`, who is there in `roster`, the order of
things in a call in `calls`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, Unpack

from dragoman.errors import ClosedError, DragomanError, UsageError
from dragoman.host.atomic import create
from dragoman.host.calls import Calls
from dragoman.host.config.record import Origin, Problem, Rule, ServerConfig, Setup, Source, Standing
from dragoman.host.dialects import dialect
from dragoman.host.files import HostFiles, Reading
from dragoman.host.locations import Machine
from dragoman.host.loop.options import RunKeywords
from dragoman.host.loop.run import Run, started
from dragoman.host.models import anthropic
from dragoman.host.models.base import Definitions, LeftOut, Shown, ToolUse
from dragoman.host.naming import HostNames
from dragoman.host.options import HostKeywords, HostOptions
from dragoman.host.outcome import Judged, Outcome
from dragoman.host.provider.talk import AnyModel
from dragoman.host.reading import this_machine
from dragoman.host.roster import Reloaded, Roster
from dragoman.host.ruling import pointless
from dragoman.host.session import Session, Setting
from dragoman.host.supervisor import Supervisor
from dragoman.host.trace import Trace
from dragoman.host.watching import places, signature, watch

log = logging.getLogger("dragoman.host")

_UNREADABLE: Final = ("not ", "cannot be read")  # how the problem of a whole file begins


class Host:
    """The servers that a host's files name, for one model::

        async with Host.from_files(".", ask=ask, trusted=True, trace=Trace("trace.jsonl")) as host:
            tools = await host.tools()
            result = await host.call(tool_use)

    A server that does not start, or dies, takes nothing with it: see `sessions` for how each fares, and
    `standings` for those that are not to be started, with the reason.
    """

    def __init__(self, reading: Callable[[], HostFiles], **options: Unpack[HostKeywords]) -> None:
        self._reading = reading
        self._options = told = HostOptions.of(options)
        self._supervisor = told.supervisor or Supervisor()
        self._seen: tuple[Any, ...] = ()
        files = self._read()
        self._setting = Setting(
            env=files.machine.env,
            folder=files.machine.folder,
            protocol=told.protocol,
            tap=told.tap,
            supervisor=self._supervisor,
            client=told.client or {},
        )
        self._roster = Roster(files, self._setting)
        self._calls = Calls(self._roster, told, env=files.machine.env, keep=self._keep)
        self._answers: list[tuple[ServerConfig, bool]] = []  # what was said about entries that wait
        self._problem = ""
        self._changing = asyncio.Lock()
        self._connected = self._closed = False
        self._watching: asyncio.Task[None] | None = None
        self._spilled: Path | None = None
        self._kept = 0
        self.left_out: list[LeftOut] = []
        self._defined = Definitions()

    @classmethod
    def from_files(
        cls,
        folder: Path | str = ".",
        *,
        host: str = "claude-code",
        user: bool = True,
        more: Iterable[Source] = (),
        machine: Machine | None = None,
        **options: Unpack[HostKeywords],
    ) -> Self:
        """A host for the files that `host`, one of `DIALECTS`, reads in a project's folder.

        Without `user`, those outside of the folder are not read. `more` are texts beside the files, such as
        those of a command line. `machine` says where files are, this one by default.

        Raises:
            UsageError: the host is not known, there is no such folder, or an option that does not exist.
        """
        told = HostOptions.of(options)
        dialect(host)
        place = machine or this_machine(folder)
        if told.env is not None:
            place = replace(place, env=told.env)
        reading = Reading(
            host=host,
            machine=place,
            trusted=told.trusted,
            interactive=told.ask is not None,
            mode=told.mode,
            user=user,
            more=tuple(more),
        )
        return cls(reading, **options)

    def _read(self) -> HostFiles:
        if self._options.watch and isinstance(self._reading, Reading):
            self._seen = signature(places(self._reading.host, self._reading.machine))
        return self._reading()

    # Life --------------------------------------------------------------------------------------------

    async def connect(self) -> Self:
        """Start or reach every server, all at the same time. What fails is in `sessions`, and not raised.

        Nothing when that was done already.

        Raises:
            ConnectError: a server that its entry calls required did not come.
            ClosedError: the host was closed.
        """
        if self._closed:
            raise ClosedError("this host was closed", stage="connect")
        if self._connected:
            return self
        self._connected = True
        approved = await self._approved(self._roster.files)
        if approved is not self._roster.files:
            self._roster = Roster(approved, self._setting)
            self._calls = Calls(self._roster, self._options, env=self._setting.env, keep=self._keep)
        await self._roster.connect()
        if self._options.watch and self._watching is None and isinstance(self._reading, Reading):
            watched = places(self._reading.host, self._reading.machine)
            work = watch(watched, self._reload_quietly, since=self._seen)
            self._watching = asyncio.get_running_loop().create_task(work)
        return self

    async def close(self) -> None:
        """End every connection, and the processes that were started from here and nobody else uses.

        Any number of times.
        """
        self._closed = True
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.wait([watching])
        await self._roster.close()
        if self._options.supervisor is None:
            await self._supervisor.close()
        spilled, self._spilled = self._spilled, None
        if spilled is not None:
            shutil.rmtree(spilled, ignore_errors=True)

    async def __aenter__(self) -> Self:
        try:
            return await self.connect()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def reload(self) -> Reloaded:
        """Read the files again and let them hold. Servers whose entries come to the same are not touched.

        A file that could be read before and cannot now changes nothing: see `why` of what is returned.

        Raises:
            ConnectError, ClosedError: as `connect`.
        """
        async with self._changing:
            if self._closed:
                raise ClosedError("this host was closed", stage="connect")
            files = self._read()
            broken, before = _broken(files), _broken(self._roster.files)
            new = [said for file, said in broken.items() if file not in before]
            if new:
                self._problem = "; ".join(new)
                return Reloaded(kept=tuple(self._roster.sessions), why=self._problem)
            self._problem = ""
            return await self._roster.change(await self._approved(files))

    async def _reload_quietly(self) -> None:
        try:
            done = await self.reload()
        except DragomanError as exc:
            log.warning("files have changed: %s", exc)
        except Exception:  # the next change is to be read all the same
            log.exception("files have changed, and could not be read again")
        else:
            if done.why:
                log.warning("files have changed, and what they said before still holds: %s", done.why)

    async def _approved(self, files: HostFiles) -> HostFiles:
        """The files with a person's answers about servers that wait for one; each is asked about once."""
        approve, yes = self._options.approve, dict[str, ServerConfig]()
        for item in files.setup.servers:
            config = item.config
            if item.state != "pending" or approve is False:
                continue
            known = next((said for other, said in self._answers if other == config), None)
            if known is None:
                try:
                    answer = approve if isinstance(approve, bool) else approve(config)
                    known = (await answer if isawaitable(answer) else answer) is True
                except Exception:  # no yes; all else that the files say holds
                    log.exception("the question about starting server %r failed", config.name)
                    continue
                self._answers.append((config, known))
            if known:
                yes.setdefault(config.name, config)
        return files.approve(yes) if yes else files

    # Facts -------------------------------------------------------------------------------------------

    @property
    def files(self) -> HostFiles:
        """What the files said when they were read last."""
        return self._roster.files

    @property
    def setup(self) -> Setup:
        """What the host's own files come to."""
        return self._roster.files.setup

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The permission rules of the host's files; Dragoman's own are in `files.own`."""
        return self.setup.rules

    @property
    def trace(self) -> Trace | None:
        """Where calls are written down."""
        return self._options.trace

    @property
    def instructions(self) -> Mapping[str, str]:
        """What servers say to the model about themselves, by server, the beginning of each."""
        return self._roster.instructions()

    @property
    def grants(self) -> tuple[Rule, ...]:
        """The tools for which a person said yes for this session."""
        return self._calls.grants

    @property
    def sessions(self) -> Mapping[str, Session]:
        """The servers that the files let in, by name, and how each fares."""
        return self._roster.sessions

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Every entry of every file, with the reason where it is not used."""
        return self.setup.servers

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files, rules that never match included."""
        files = self._roster.files
        stale = [Problem(self._problem, Origin(files.host))] if self._problem else []
        return (*stale, *files.problems, *pointless(files, self._roster.names))

    @property
    def names(self) -> HostNames:
        """The table of names, of all tools of all servers that answer."""
        return self._roster.names

    async def tools(self) -> list[dict[str, Any]]:
        """Definitions of the tools for Anthropic's Messages API; see `shown`.

        Not among them: those in `left_out`, which the API or the host itself does not show.
        """
        self._defined = anthropic.MESSAGES.definitions(await self.shown())
        self.left_out = [*self._roster.left_out(), *self._defined.left_out]
        return self._defined.blocks

    async def shown(self, *, defer: bool = False) -> list[Shown]:
        """The tools that the model may see, by server and tool, for the definitions of any model's API.

        Not among them: tools that the host hides. Lists that are no longer fresh are read again. With
        `defer`, all are deferred but those that their entries or they themselves want to be there always.

        Raises:
            UsageError: the host is not connected: nobody knows what tools there are.
            ClosedError: the host was closed.
        """
        if self._closed:
            raise ClosedError("this host was closed", stage="call")
        if not self._connected:
            hint = "`async with Host.from_files(...) as host:`, or `await host.connect()` first"
            raise UsageError("this host is not connected yet", stage="call", hint=hint)
        await self._roster.refresh()
        return self._roster.shown(defer=defer)

    # Calls -------------------------------------------------------------------------------------------

    async def call(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer a model's `tool_use` block with the `tool_result` block for it.

        Whatever goes wrong is told to the model as an error; nothing is raised but UsageError for a
        block that is no `tool_use`.
        """
        return (await self.answer(block)).block

    def run(self, prompt: str | None = None, *, model: str | AnyModel, **options: Unpack[RunKeywords]) -> Run:
        """Let a model work on a prompt with the tools: the events of it one by one, or awaited, the result.

        `model` is a `Model`, a text such as `anthropic:NAME`, or anything else that can be asked. For the
        rest see `RunOptions`; without `prompt`, the run of `state` goes on where it stood.

        Raises:
            UsageError: the model, a limit or the state cannot be used.
        """
        return started(self, prompt, model=model, options=options)

    async def answer(
        self, use: ToolUse | Mapping[str, Any], *, sending: Callable[[], None] | None = None
    ) -> Outcome:
        """Answer a call of a model, with all that is known of how it came out.

        `use` is a call as every API comes to it, or a `tool_use` block of Anthropic's Messages API. Nothing
        is raised but UsageError for a mapping that is no such block. `sending` is called once everything
        has agreed and the call is about to go out.
        """
        return await self._calls.answer(self._use(use), sending=sending)

    def judged(self, use: ToolUse | Mapping[str, Any]) -> Judged:
        """All that is known about a call before it is sent: sends nothing and asks nobody.

        Unlike a call, which ends at the first refusal, it has the facts behind that one too.
        """
        return self._calls.judge(self._use(use), whole=True)

    def _use(self, use: ToolUse | Mapping[str, Any]) -> ToolUse:
        """The call, by the name that the host has for the tool: an API may have to be given another one."""
        return use if isinstance(use, ToolUse) else self._defined.meant(anthropic.tool_use(use))

    def _keep(self, text: str) -> Path:
        """Write a result that is too long for the model to a file that is this person's alone."""
        folder = self._options.spill
        if folder is None:
            folder = self._spilled = self._spilled or Path(tempfile.mkdtemp(prefix="dragoman-"))
        self._kept += 1
        path = folder / f"result-{os.getpid()}-{self._kept}.txt"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
        with create(path) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
        return path


def _broken(files: HostFiles) -> dict[str, str]:
    """The files that could not be read at all, and why."""
    whole = [
        problem
        for problem in (*files.setup.problems, *files.own.problems)
        if problem.server is None and problem.text.startswith(_UNREADABLE)
    ]
    if files.setup.failure is not None:
        whole.append(files.setup.failure)
    return {problem.origin.file: str(problem) for problem in whole}
