"""The `dragoman` command: finds the command that was named and loads that one alone.

It knows the names of the commands and where they live, and refuses to load anything that a command
does not need: `--help` and `--version` load neither the protocol nor an event loop.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

from dragoman.version import VERSION

USAGE: Final = 2
INTERRUPTED: Final = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE: Final = 141  # 128 + SIGPIPE
UNWRITTEN: Final = 74  # EX_IOERR of sysexits.h
_NO_ROOM: Final = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG)

# Name -> what it does in a line. The work is in `cli/<name>.py`, its words in `cli/parsers.py` or `_WORDS`.
COMMANDS: Final = {
    "run": "serve the server of a Python file, over stdio or HTTP",
    "list": "list the tools, resources or prompts of a server",
    "call": "call a tool of a server",
    "read": "read a resource of a server",
    "prompt": "get a prompt of a server",
    "discover": "show what a server is and speaks",
    "record": "stand between a host and a server, and record what they say",
    "replay": "play a recording, as a server or against one",
    "mock": "serve the tools of a file, with answers that fit",
    "explain": "say what becomes of a call of a tool by the rules of a host, and why",
    "config": "show the servers of every host's files, and write them in another host's form",
    "doctor": "look at servers step by step, and say what to do",
    "lock": "hold servers to what their tools were",
    "trace": "show what a model asked for, what was decided, what was sent and what came back",
    "chat": "talk with a model that has the tools of a project's servers",
    "demo": "show everything at work on an example",
}
# Commands whose words are in another module than `cli/parsers.py`. There `"config export"` has the words
# of `dragoman config export`, and `options.verb` is `export`. A parser whose defaults have a `module` says
# which one runs it; else that is `cli/config.py`.
_WORDS: Final = {
    "chat": "chat_parsers",
    "config": "config_parsers",
    "demo": "demo_parsers",
    "explain": "config_parsers",
    "lock": "check_parsers",
    "doctor": "check_parsers",
    "trace": "trace_parsers",
}
# These start no server's file as a client does.
_NO_CLIENTS: Final = frozenset({"mock", "record", "replay", "run", *_WORDS})

# What other programs call them.
_ELSEWHERE: Final = {
    "serve": "run",
    "start": "run",
    "tools": "list",
    "resources": "list",
    "prompts": "list",
    "inspect": "discover",
    "servers": "config",
    "check": "doctor",
    "version": "--version",
}

_HELP: Final = """\
usage: dragoman COMMAND ...

Serve, look at and call MCP servers.

commands:
{commands}

options:
  -h, --help     show this, or with a command before it what that takes
  --version      show the version

TARGET, wherever a command takes one, is a URL, a path to a .py file (server.py or server.py:name),
a command line in quotes, or a configuration entry as JSON.

exit status: 0 done, 1 the tool said error, 2 usage, 3 protocol error, 4 could not connect, 5 denied

examples:
  dragoman call server.py add a=1 b=2
  dragoman list https://example.com/mcp
  dragoman run server.py --http 127.0.0.1:8000
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. `argv` is without the program's name."""
    words = list(sys.argv[1:] if argv is None else argv)
    _fill_gaps()
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough. The interpreter flushes once more at its end.
        _drop_output()
        return BROKEN_PIPE
    except OSError as exc:  # commands tell of their own: this is what was printed and did not fit
        if exc.errno not in _NO_ROOM:
            raise
        _drop_output()
        print(f"dragoman: the output could not be written: {exc.strerror}", file=sys.stderr)
        return UNWRITTEN
    return status


def _fill_gaps() -> None:
    """Put nothing where a standard stream is closed: a pipe to a server would get its number and its use."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115  # for good


def _drop_output() -> None:
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        return


def _dispatch(words: list[str]) -> int:
    name = words[0] if words else "--help"
    if name in ("-h", "--help", "help") and words[1:2] and words[1] in COMMANDS:
        return _dispatch([words[1], "--help"])
    if name in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        lines = "\n".join(f"  {command:{width}}   {what}" for command, what in COMMANDS.items())
        print(_HELP.format(commands=lines), end="")
        return 0 if words else USAGE
    if name in ("--version", "-V"):
        print(f"dragoman {VERSION}")
        return 0
    if name in COMMANDS:
        return _command(name, words[1:])
    return _unknown(name, json="--json" in words)


def _command(name: str, words: list[str]) -> int:
    if name == "run" and len(words) == 1 and not words[0].startswith("-"):
        # The form in which clients start servers: every millisecond of it is waited for.
        return _load(name)(SimpleNamespace(target=words[0], http=None, path="/mcp", argument=[], json=False))
    from dragoman.cli.words import WordsError

    known = import_module(f"dragoman.cli.{_WORDS.get(name, 'parsers')}").PARSERS
    verb = words[0] if words and f"{name} {words[0]}" in known else ""
    if words and not verb and (meant := _meant(words[0], name, known=known)):
        text = f"unknown verb {words[0]!r}: did you mean {meant!r}?"
        return _usage(text, command=name, json="--json" in words)
    try:
        options = known[f"{name} {verb}".strip()]().parse_intermixed_args(words[1:] if verb else words)
        options.verb = verb
    except WordsError as exc:
        near = _near(exc.word, exc.known)
        rule = f"did you mean {near!r}?" if near else exc.rule
        text = f"{exc}; {rule}" if rule else str(exc)
        return _usage(text, command=f"{name} {verb}".strip(), json="--json" in words)
    except SystemExit as exc:  # after --help
        return int(exc.code or 0)
    return _run_client(name, options)


def _run_client(name: str, options: Any) -> int:
    """Run a command; the server's file that it will start is started now, to load while the client does."""
    if name in _NO_CLIENTS or options.target is None or getattr(options, "cost", False):
        return _load("cost" if getattr(options, "cost", False) else getattr(options, "module", name))(options)
    file, _, server = options.target.rpartition(".py")
    found = os.path.isfile(f"{file}.py")  # noqa: PTH113  # loading pathlib takes time that this is to save
    if not found or server[:1] not in ("", ":"):
        return _load(name)(options)
    from dragoman.transports import early

    early.start([sys.executable, "-P", "-m", "dragoman", "run", options.target])  # as `client.target` has it
    try:
        return _load(name)(options)
    finally:
        early.drop()


def _load(name: str) -> Callable[[Any], int]:
    run: Callable[[Any], int] = import_module(f"dragoman.cli.{name}").run
    return run


def _unknown(name: str, *, json: bool) -> int:
    kind = "option" if name.startswith("-") else "command"
    if "://" in name or name.partition(":")[0].endswith(".py"):
        return _usage(f"unknown command {name!r}: did you mean 'list {name}'?", command=None, json=json)
    near = _ELSEWHERE.get(name) or _near(name, ("--help", "--version") if kind == "option" else COMMANDS)
    hint = f"did you mean {near!r}?" if near else f"there are {', '.join(COMMANDS)}"
    return _usage(f"unknown {kind} {name!r}: {hint}", command=None, json=json)


def _near(word: str, known: Iterable[str]) -> str | None:
    """What the word may have been meant for."""
    if not word:
        return None
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, known, n=1)), None)


def _meant(word: str, name: str, *, known: Mapping[str, object]) -> str | None:
    """The verb that a word may have been meant for, where it is neither one nor a file or folder."""
    verbs = [entry.partition(" ")[2] for entry in known if entry.startswith(f"{name} ")]
    return None if not verbs or not word.isalpha() or os.path.exists(word) else _near(word, verbs)  # noqa: PTH110  # loading pathlib takes time


def _usage(message: str, *, command: str | None, json: bool) -> int:
    program = "dragoman" if command is None else f"dragoman {command}"
    if json:
        from json import dumps

        print(dumps({"ok": False, "error": {"kind": "usage", "message": message}}, ensure_ascii=False))
    print(f"{program}: {message}\n  try: {program} --help", file=sys.stderr)
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
