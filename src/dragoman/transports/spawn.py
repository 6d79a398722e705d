"""Child processes: how one is started, watched, and ended with everything that it started.

A child leads a session and process group of its own, and its whole group ends with it. It refuses to
know what is said over the pipes.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from dragoman.errors import ConnectError, UsageError
from dragoman.transports import early

if sys.platform == "win32":
    from dragoman.transports.spawn_windows import Job
elif sys.platform == "darwin":
    from dragoman.transports.spawn_bsd import Watch

log = logging.getLogger("dragoman")

# Ends the group $1 once this process is gone, however it went: then the other end of the watch's
# stdin closes. As politely as `Child.end`: $2 tenths of a second from the end of input to TERM, $3
# from TERM to KILL. A signal that is meant for this process and its children is not for the watch.
_WATCH: Final = """\
trap '' HUP INT TERM
read -r line
wait_for() {
  n=$1
  while [ "$n" -gt 0 ]; do kill -s 0 -- "-$group" || exit 0; sleep 0.1; n=$((n - 1)); done
}
group=$1
wait_for "$2"; kill -s TERM -- "-$group"
wait_for "$3"; kill -s KILL -- "-$group"
"""

SHELL: Final = "/bin/sh"
_POLL_SECONDS: Final = 0.01
_POLL_SECONDS_MOST: Final = 0.2
_KILL_SECONDS: Final = 1.0

_PROVIDERS: Final = {
    "npx": "install Node.js, which brings npx",
    "node": "install Node.js",
    "uvx": "install uv, which brings uvx",
    "uv": "install uv",
    "docker": "install Docker",
    "python": "name it python3, or give the full path of an interpreter",
}

_LAUNCHERS: Final = ("python", "node", "npx", "uvx", "bunx", "deno", "sh", "bash")
_PLACES: Final = 3  # of PATH that are named: enough to tell which PATH it was
_PATHS: Final = ("/", "./", "../", "~/")
_SCRIPTS: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".sh")

# Write ends whose closing means something at the other end. A fork of this process would hold them
# open, so that neither a server nor the watch would see that this process is gone.
_signalling: set[int] = set()


def _let_go_after_fork() -> None:
    if _signalling:
        nothing = os.open(os.devnull, os.O_WRONLY)
        for fd in _signalling:
            os.dup2(nothing, fd, inheritable=False)  # the number stays taken: its owner may close it
        os.close(nothing)


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go_after_fork)


class Child:
    """A running process that leads its own session, with pipes for its three standard streams.

    `exited` is set when the process is gone and reaped; `status` is then its exit status (negative:
    the signal that ended it).
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.stderr: IO[bytes] = process.stderr
        self.pid = process.pid
        self.status: int | None = None
        self._loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._process = process
        self._others = True  # whether the group may have members beside the process
        self._ended = False
        self._pidfd = -1
        self._watch: subprocess.Popen[bytes] | None = None
        self._held = [self.stdin.fileno()]
        _signalling.update(self._held)
        if sys.platform == "win32":
            self._job = Job(int(process._handle))  # noqa: SLF001  # the only way to the handle of a Popen
        self._observe()

    @property
    def watched(self) -> bool:
        """Whether the group ends even if this process is killed."""
        return self._watch is not None

    def _observe(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not on Linux, or not allowed by a sandbox
            if sys.platform == "darwin":
                with suppress(OSError):  # it has ended already
                    self._exit_watch = Watch(self.pid, self._wait_aside)
                    return
            self._wait_aside()
        else:
            self._loop.add_reader(self._pidfd, self._reap)

    def _wait_aside(self) -> None:
        threading.Thread(target=self._wait, name=f"dragoman-wait-{self.pid}", daemon=True).start()

    def _wait(self) -> None:
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._reap)

    def _reap(self) -> None:
        if self.status is not None or (status := self._process.poll()) is None:
            return
        # Asked in the moment of reaping: while it has members, a group's number is not given to others.
        self._others = _exists(self.pid)
        self.status = status
        self._forget_pidfd()
        if not self.exited.done():
            self.exited.set_result(None)

    def _forget_pidfd(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if sys.platform == "darwin" and hasattr(self, "_exit_watch"):
            self._exit_watch.close()

    def watch(self, grace: tuple[float, float]) -> None:
        """Start what ends the group if this process is killed; `grace` as for `end`."""
        if self._ended or self._watch is not None or sys.platform == "win32":
            return  # on Windows the job does it
        tenths = [str(max(1, round(seconds * 10))) for seconds in grace]
        try:
            self._watch = subprocess.Popen(
                [SHELL, "-c", _WATCH, "dragoman-watch", str(self.pid), *tenths],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                bufsize=0,
            )
        except OSError as exc:
            log.warning("process %d would outlive this one if it were killed: no watch (%s)", self.pid, exc)
            return
        assert self._watch.stdin is not None
        self._held.append(self._watch.stdin.fileno())
        _signalling.add(self._held[-1])

    async def end(self, grace: tuple[float, float]) -> None:
        """End the whole group after its stdin was closed, and reap it.

        Waits `grace[0]` seconds, sends TERM, waits `grace[1]` seconds, sends KILL. Cancelling sends
        KILL at once.
        """
        try:
            if await self._gone(grace[0]):
                return
            self._signal(hard=False)
            if await self._gone(grace[1]):
                return
            self._signal(hard=True)
            await self._gone(_KILL_SECONDS)
        finally:
            self.kill()

    async def _gone(self, seconds: float) -> bool:
        deadline = self._loop.time() + seconds
        if self.status is None:
            await asyncio.wait([self.exited], timeout=seconds)
        pause = _POLL_SECONDS
        while self.status is None or (self._members_left() and _runs(self.pid)):
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _POLL_SECONDS_MOST)
        return True

    def _members_left(self) -> bool:
        if self._others:
            self._others = _exists(self.pid)
        return self._others

    def _signal(self, *, hard: bool) -> None:
        if sys.platform == "win32":
            if hard:  # there is nothing polite to say
                self._job.end()
        elif self.status is None or self._others:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL if hard else signal.SIGTERM)

    def kill(self) -> None:
        """End the group at once and leave nothing: no process, no zombie, no descriptor of the child's.

        The pipes belong to those who took them. May be called again.
        """
        if self._ended:
            return
        self._ended = True
        self._reap()
        if self.status is None or self._members_left():
            self._signal(hard=True)
        if self.status is None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_SECONDS)
            self._reap()
        self._forget_pidfd()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.kill()
            watch.wait()
            assert watch.stdin is not None
            watch.stdin.close()
        _signalling.difference_update(self._held)
        if sys.platform == "win32":
            self._job.close()


def _exists(group: int) -> bool:
    """Whether the group has members, zombies included."""
    if sys.platform == "win32":
        return False  # there are no groups; the job ends what is left
    try:
        os.killpg(group, 0)
    except OSError:  # nobody there, or nobody whom this process may end
        return False
    return True


def _runs(group: int) -> bool:
    """Whether a member of the group runs.

    A dead one whose parent is gone stays until process 1 reaps it, which in many a container is never.
    """
    numbers = [path.name for path in Path("/proc").glob("[0-9]*")]
    for number in numbers:
        with suppress(OSError, ValueError):
            state, _, its_group, _ = (
                Path("/proc", number, "stat").read_bytes().rpartition(b")")[2].split(None, 3)
            )
            if int(its_group) == group and state not in b"ZX":
                return True
    return not numbers  # a system without /proc: it exists, that is all one can know


def spawn(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    inherit: bool = True,
    cwd: str | os.PathLike[str] | None = None,
    name: str,
) -> Child:
    """Start `command` in `cwd` with `env` laid over the environment of this process, or alone.

    Raises:
        UsageError: a command or an environment that no system takes.
        ConnectError: the program cannot be started; says where it was looked for and what to try.
    """
    words = check_command(command, name)
    variables = {**(os.environ if inherit else {}), **_check_env(env or {}, name)}
    if cwd is not None and not Path(cwd).is_dir():
        raise ConnectError(
            f"the working directory {os.fspath(cwd)!r} is no directory", server=name, stage="spawn"
        )
    try:
        process = early.take(words) if inherit and not env and cwd is None else None
        process = process or early.popen(words, cwd=cwd, env=variables)
    except OSError as exc:
        reason, hint = _why_not(words[0], exc, path=os.get_exec_path(variables), cwd=cwd)
        raise ConnectError(reason, server=name, stage="spawn", hint=hint) from None
    return Child(process)


def check_command(command: Sequence[str], name: str | None) -> list[str]:
    """The words of a command, program first.

    Raises:
        UsageError: not a list of words, or none, or one that holds a null character.
    """
    if isinstance(command, str | bytes) or not command:
        got = "a single string" if isinstance(command, str | bytes) else "no word at all"
        message = f'command: expected a list of words such as ["python3", "server.py"], received {got}'
        raise UsageError(message, server=name, stage="spawn")
    words: list[str] = []
    given: Sequence[Any] = command  # it may come from a file, with anything in it
    for index, word in enumerate(given):
        text: Any = os.fspath(word) if isinstance(word, Path) else word
        if (why := _unfit(text)) is not None:
            raise UsageError(f"command[{index}]: expected {why}", server=name, stage="spawn")
        words.append(text)
    return words


def _check_env(env: Mapping[Any, Any], name: str) -> Mapping[str, str]:
    for key, value in env.items():
        # The value is not shown: it may be a secret.
        if not key or _unfit(key) is not None or "=" in key:
            raise UsageError(f"env: {key!r} is no name of a variable", server=name, stage="spawn")
        if (why := _unfit(value)) is not None:
            raise UsageError(f"env[{key!r}]: expected {why}", server=name, stage="spawn")
    return env


def _unfit(text: object) -> str | None:
    """What a word was expected to be that no program can be given; None for one that can."""
    if not isinstance(text, str) or "\0" in text:
        return f"text without null characters, received {type(text).__name__}"
    try:
        os.fsencode(text)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON lets people write
        return "text that UTF-8 has, received half of a surrogate pair"
    return None


def _why_not(
    program: str, exc: OSError, *, path: Sequence[str], cwd: str | os.PathLike[str] | None
) -> tuple[str, str | None]:
    """What stood in the way of starting `program`, and what to try."""
    searched = os.pathsep.join(path[:_PLACES])
    if len(path) > _PLACES:
        searched += f" and {len(path) - _PLACES} more"
    here = "/" in program
    places = [cwd or "."] if here else path
    # `os.path` says no where `pathlib` raises, as for a name that is too long.
    found = next((file for place in places if os.path.exists(file := Path(place, program))), Path(program))  # noqa: PTH110  # as just said
    if exc.errno == errno.ENOENT:
        if here and os.path.exists(found):  # noqa: PTH110  # as above
            return f"the interpreter that the first line of {program!r} names does not exist", None
        if " " in program:
            return f"there is no program {program!r}", "give the program and its arguments as separate words"
        if here:
            return f"there is no file {program!r} (seen from {Path(cwd or '.').resolve()})", None
        hint = _PROVIDERS.get(program, "give the program's full path, or set PATH in the server's env")
        hint = _beside(program, cwd) or hint
        return f"the program {program!r} was not found on PATH ({searched})", hint
    if exc.errno == errno.EACCES:
        if found.is_dir():
            return f"{program!r} is a directory, not a program", None
        return f"{program!r} is not executable", f"chmod +x {program}, or start it with its interpreter"
    if exc.errno == errno.ENOEXEC:
        return (
            f"{program!r} is no program for this system",
            "a script needs a first line such as #!/usr/bin/env python3",
        )
    return f"{program!r} could not be started: {os.strerror(exc.errno or 0)}", None


def _beside(program: str, cwd: str | os.PathLike[str] | None) -> str | None:
    """A file that the program's name may have been meant for."""
    for name in (f"{program}.py", f"./{program}"):
        if os.path.isfile(Path(cwd or ".", name)):  # noqa: PTH113  # says no where `pathlib` raises
            return f"{name}, which is a file here"
    return None


def short_name(command: list[str]) -> str:
    """A short name for a command: its program, or the script or package that a launcher is given.

    Further arguments are left out: they may be secrets.
    """
    program = Path(command[0]).name
    if not program.startswith(_LAUNCHERS):
        return program
    for word in command[1:]:
        if word in ("-c", "-e", "--eval"):
            break
        if not word.startswith("-"):
            # A package may be `@scope/name`; a path is told by its beginning or its end.
            return Path(word).name if word.endswith(_SCRIPTS) or word.startswith(_PATHS) else word
    return program
