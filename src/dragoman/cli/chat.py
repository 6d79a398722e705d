"""`dragoman chat`: a model with the tools of a project's servers, on a terminal or for one prompt."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from argparse import Namespace
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from dragoman.cli import chat_view, failure, output
from dragoman.cli.brush import Brush
from dragoman.cli.chat_person import Person
from dragoman.cli.session import warnings_told
from dragoman.errors import DragomanError, UsageError
from dragoman.host import Host, Limits, Model, Prices, Run, RunResult, RunState, ScriptedModel, Trace
from dragoman.host.lock import FILE as LOCK
from dragoman.host.lock import Lock, read_lock
from dragoman.host.loop.state import saver
from dragoman.host.provider.talk import AnyModel
from dragoman.host.reading import command_line
from dragoman.host.trace.place import usual_place

UNFINISHED: Final = 1
INTERRUPTED: Final = 130
_VARIABLE: Final = "DRAGOMAN_MODEL"
_HELP: Final = """\
  /tools   the tools that the model sees
  /usage   tokens and rounds so far
  /quit    the end; so is Ctrl-D"""


def run(options: Namespace) -> int:
    """Talk; returns the exit status."""
    try:
        with warnings_told():
            return asyncio.run(_run(options))
    except DragomanError as exc:
        return output.fail(exc, json=options.json)
    except _LeftError:
        return INTERRUPTED


class _LeftError(Exception):
    """The person wants the program to end."""


async def _run(options: Namespace) -> int:
    brush = Brush.for_stdout(colour=not options.no_color)
    person = Person("yes" if options.yes else "no" if options.no else None, brush)
    prompt = _prompt(options, person)
    chat = Chat(options, person, brush=brush)
    with Interrupts(chat) as interrupts:
        try:
            return await chat.begin(prompt)
        except asyncio.CancelledError:
            if interrupts.left:
                raise _LeftError from None
            raise


class Chat:
    """One conversation: the model, the state that it has come to, and how it is shown."""

    def __init__(self, options: Namespace, person: Person, *, brush: Brush) -> None:
        self._options = options
        self._person = person
        self._brush = brush
        self._model = _model(options)
        self._model.open()  # a key that is missing is told before any server is started
        self._limits = Limits(rounds=options.max_rounds, tokens=options.max_tokens, cost=options.max_cost)
        self._system = _system(options.system)
        # In this order: what another run saves in between is then not taken for what was read.
        self._save = None if options.resume is None else saver(options.resume)
        self._state = _state(options.resume)
        self._view = chat_view.Records() if options.json else chat_view.Talk(brush)
        self.running: Run | None = None
        self.waiting = False  # for what the person types

    async def begin(self, prompt: str | None) -> int:
        """Start the servers, and talk until the end; returns the exit status."""
        trace = _trace(self._options)
        with nullcontext() if trace is None else closing(trace):
            async with self._host(trace) as host:
                self._tell(host)
                if prompt is not None or not self._person.terminal:
                    return self._status(await self._turn(host, prompt))
                return await self._converse(host)

    def _host(self, trace: Trace | None) -> Host:
        options = self._options
        return Host.from_files(
            options.folder,
            host=options.host,
            more=command_line(options.mcp_config) if options.mcp_config else (),
            ask=self._person.ask,
            approve=True if options.trusted else self._person.approve,
            trusted=True if options.trusted else None,
            trace=trace,
            lock=_lock(options),
            client=self._person.client(),
        )

    def _tell(self, host: Host) -> None:
        """Say which servers are not there, and where there is none at all."""
        for name, session in host.sessions.items():
            if session.state not in ("connected", "idle"):
                # Its first line: what the program said on stderr has gone to ours as it came.
                why = (session.why or session.state).partition("\n")[0]
                output.note(f"dragoman: server {name!r} is not there: {why}")
        waiting = [standing for standing in host.standings if standing.state in ("pending", "untrusted")]
        for standing in waiting:
            text = f"server {standing.config.name!r} ({standing.config.origin}) is not started"
            output.note(f"dragoman: {text}: {standing.why or standing.state}")
        if waiting and not self._person.terminal:
            output.note("  try: --trusted, if you trust what these files start")
        if not host.sessions and not waiting:
            folder = Path(self._options.folder).resolve()
            output.note(f"dragoman: {self._options.host} has no servers for {folder}: the model has no tools")

    # One prompt ---------------------------------------------------------------------------------------

    async def _turn(self, host: Host, prompt: str | None) -> RunResult:
        run = host.run(
            prompt,
            model=self._model,
            system=self._system,
            limits=self._limits,
            state=self._state,
            save=self._save,
            defer=self._options.defer,
        )
        self.running = run
        try:
            async for event in run:
                self._view.show(event)
        finally:
            self._state = run.state
            self.running = None
        return await run

    def _status(self, result: RunResult) -> int:
        status = UNFINISHED
        if result.done:
            status = failure.DONE
        elif result.stop == "stopped":
            status = INTERRUPTED
        if self._options.json:
            output.envelope(ok=result.done, value=_envelope(result))
        return status

    # Many ---------------------------------------------------------------------------------------------

    async def _converse(self, host: Host) -> int:
        tools = output.counted(len(await host.shown()), "tool")
        servers = output.counted(len(host.sessions), "server")
        output.line(self._brush("bold", f"{self._model.name}, with {tools} of {servers}"))
        output.line(self._brush("dim", "  /help says what else can be typed; Ctrl-D ends"))
        if self._state is not None and not self._state.ended and self._state.history:
            await self._say(host, None)
        while (line := await self._line()) is not None:
            text = line.strip()
            if text in ("/quit", "/exit"):
                break
            if text.startswith("/"):
                await self._command(host, text)
            elif text:
                await self._say(host, text)
            elif self._state is not None and not self._state.ended and self._state.history:
                await self._say(host, None)
        return failure.DONE

    async def _line(self) -> str | None:
        self.waiting = True
        try:
            return await self._person.line("> ")
        finally:
            self.waiting = False

    async def _say(self, host: Host, text: str | None) -> None:
        """One turn; what goes wrong in it ends no conversation."""
        try:
            result = await self._turn(host, text)
        except DragomanError as exc:
            output.fail(exc, json=False)
            output.note("  an empty line asks again")
        else:
            if self._options.json:
                output.envelope(ok=result.done, value=_envelope(result))

    async def _command(self, host: Host, text: str) -> None:
        if text == "/tools":
            shown = await host.shown()
            rows = [("tool", "server"), *((tool.name, tool.group) for tool in shown)]
            output.text("\n".join(output.table(rows, output.columns())))
        elif text == "/usage":
            state = self._state
            said = "nothing yet" if state is None else _usage(state)
            output.line(f"  {said}")
        else:
            if text != "/help":
                output.line(f"  there is no {text.split(maxsplit=1)[0]!r}, but")
            output.line(_HELP)


class Interrupts:
    """Ctrl-C: the first stops the answer, or warns where there is none; the next one ends the program."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._stopped: Run | None = None
        self._warned = False
        self._task = asyncio.current_task()
        self.left = False

    def __enter__(self) -> Self:
        with suppress(NotImplementedError):  # Windows, whose loops have none: Ctrl-C then ends the program
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._hit)
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _hit(self) -> None:
        run = self._chat.running
        if run is not None and run is not self._stopped:
            self._stopped = run
            self._warned = False
            run.stop()
        elif run is None and not self._warned and self._chat.waiting:
            self._warned = True
            sys.stderr.write("\n  Ctrl-C once more, or Ctrl-D, ends the program\n> ")
            sys.stderr.flush()
        elif self._task is not None:
            self.left = True
            self._task.cancel()


def _envelope(result: RunResult) -> dict[str, object]:
    summary = chat_view.summary(result)
    return summary if result.done else {"kind": result.stop, "message": result.why, "result": summary}


def _usage(state: RunState) -> str:
    cost = f", cost {state.cost:.4f}" if state.cost else ""
    rounds = output.counted(state.rounds, "request")
    return f"{rounds}, {state.input:,} tokens read, {state.output:,} written{cost}"


# From the words of the command line -----------------------------------------------------------------------


def _prompt(options: Namespace, person: Person) -> str | None:
    """The one prompt; None for a conversation, or to go on with what a file holds."""
    given: str | None = options.prompt
    if given is not None and given != "-":
        return given
    if given is None and (person.terminal or sys.stdin.isatty()):
        return None
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as exc:
        raise UsageError(f"stdin: expected text: {exc}") from None
    if text.strip():
        return text
    if options.resume is not None:
        return None
    raise UsageError("there is no prompt: expected PROMPT, or text on stdin")


def _model(options: Namespace) -> AnyModel:
    prices = None if options.prices is None else Prices(*options.prices)
    if options.script is not None:
        if options.model is not None or options.url is not None:
            raise UsageError("--script: it takes the place of --model and --url")
        return ScriptedModel.from_file(options.script, prices=prices)
    text = options.model or os.environ.get(_VARIABLE)
    if not text:
        hint = "--model anthropic:NAME, or --model NAME --url URL for a server of your own"
        raise UsageError("no model is named", hint=hint)
    model = Model.of(text, url=options.url, key_env=options.key_env)
    timeout = model.timeout if options.timeout is None else options.timeout
    return replace(model, prices=prices, stream=not options.no_stream, timeout=timeout)


def _system(text: str | None) -> str | None:
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"--system: {exc}") from None


def _state(file: str | None) -> RunState | None:
    return RunState.load(file) if file is not None and Path(file).exists() else None


def _lock(options: Namespace) -> Lock | None:
    """What the folder's servers were when somebody looked at them."""
    path = Path(options.folder) / LOCK
    return None if options.no_lock or not path.exists() else read_lock(path)


def _trace(options: Namespace) -> Trace | None:
    if options.no_trace:
        return None
    return Trace(usual_place() if options.trace is None else Path(options.trace))
