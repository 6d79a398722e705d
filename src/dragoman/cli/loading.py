"""Import a Python file and find the server in it; say plainly what is wrong where there is none.

It runs the user's module as an import, and refuses to know how a server is served.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from dragoman.errors import DragomanError, UsageError
from dragoman.schema.shapes import class_of
from dragoman.server import Server

PREFERRED: Final = ("server", "mcp", "app")
_OURS: Final = str(Path(__file__).resolve().parents[1])


class FileError(UsageError):
    """The user's file raised; `report` is its traceback, with the frames of others left out at both ends."""

    def __init__(self, message: str, report: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.report = report


def split(target: str) -> tuple[Path, str | None]:
    """`server.py:orders` as the file and the server's name in it."""
    head, colon, name = target.rpartition(":")
    dotted = name.replace(".", "_").isidentifier()
    # A file of that very name comes first, and C:\\server.py has its colon elsewhere.
    if colon and dotted and head.endswith(".py") and not os.path.exists(target):  # noqa: PTH110  # pathlib raises for a name that is too long
        return Path(head), name
    return Path(target), None


def load(file: Path) -> ModuleType:
    """Import the file as a module of its own name, with its folder first on the path, as a script has it.

    Raises:
        UsageError: there is no such file, or it is no Python file.
        FileError: it raised while it was imported.
    """
    path = file.absolute()
    if not os.path.isfile(path):  # noqa: PTH113  # as above
        kind = "a folder, not a file" if os.path.isdir(path) else "no such file"  # noqa: PTH112  # as above
        raise UsageError(f"{file}: {kind}", hint="dragoman run FILE.py or FILE.py:NAME")
    # Registered under its own name, so that another module of the same program which imports it gets
    # this one and not a second copy; unless that name is taken.
    name = path.stem
    if not name.isidentifier() or name in sys.modules or name in sys.stdlib_module_names:
        name = f"dragoman_file_{'_'.join(filter(str.isidentifier, name)) or 'server'}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file}: expected a Python file, whose name ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except SystemExit as exc:
        message = f"{file} ended the program while it was imported: SystemExit({exc.code!r})"
        raise FileError(message, report(exc, path)) from None
    except Exception as exc:  # noqa: BLE001  # whatever the file raises is what is wrong with it
        raise FileError(f"{file} cannot be imported", report(exc, path), hint=_missing(exc)) from None
    return module


def _missing(exc: Exception) -> str | None:
    """Where a module is not there: which interpreter has to have it, often another than people think."""
    if not isinstance(exc, ModuleNotFoundError) or exc.name is None:
        return None
    return f"install what has {exc.name!r} for {sys.executable}, which runs the file"


def report(exc: BaseException, path: Path) -> str:
    """The traceback from the user's file on, without the frames of this package at its end."""
    frames = traceback.extract_tb(exc.__traceback__)
    own = str(path)
    first = next((place for place, frame in enumerate(frames) if frame.filename == own), len(frames))
    kept = frames[first:]
    while kept and kept[-1].filename.startswith(_OURS):
        kept.pop()
    told = traceback.format_exception_only(exc)
    if kept:
        told = ["Traceback (most recent call last):\n", *traceback.format_list(kept), *told]
    return "".join(told).rstrip()


def find(module: ModuleType, name: str | None, *, file: Path) -> Server:
    """The server called `name`, else `server`, `mcp` or `app`, else the only one.

    Raises:
        UsageError: there is none, or more than one to choose from; the message says what there is.
    """
    servers = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name is not None:
        return _named(module, name, file=file, servers=sorted(servers))
    for preferred in PREFERRED:
        if preferred in servers:
            return servers[preferred]
    distinct = {id(server): server for server in servers.values()}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if servers:
        names = ", ".join(servers)
        raise UsageError(f"{file}: which server? there are {names}", hint=f"{file}:{next(iter(servers))}")
    foreign = _foreign(module)
    # A server of another library serves itself, as a program.
    hint = f'for one of another library: dragoman list "python {file}"' if foreign else "server = Server(...)"
    raise UsageError(f"{file}: there is no dragoman Server in it{foreign}", hint=hint)


def _named(module: ModuleType, name: str, *, file: Path, servers: list[str]) -> Server:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            there = f"there is {', '.join(servers)}" if servers else "there is no server in it"
            raise UsageError(f"{file}: nothing called {name!r}; {there}")
        value = getattr(value, part)
    if not isinstance(value, Server) and callable(value) and not isinstance(value, type):
        value = _made(value, name, file=file)
    if not isinstance(value, Server):
        raise UsageError(f"{file}: {name} is {_kind(value)}, not a dragoman Server")
    return value


def _made(factory: Any, name: str, *, file: Path) -> Any:
    """What a function that makes a server returns."""
    try:
        return factory()
    except DragomanError as exc:
        raise UsageError(f"{file}: {name}(): {exc}") from None
    except Exception as exc:  # noqa: BLE001  # as above
        code = getattr(factory, "__code__", None)
        where = Path(getattr(code, "co_filename", file))
        raise FileError(f"{file}: {name}() raised", report(exc, where)) from None


def _foreign(module: ModuleType) -> str:
    """What stands under one of the names that servers usually have, if anything does."""
    for name in PREFERRED:
        value = getattr(module, name, None)
        if value is not None and not isinstance(value, ModuleType):
            return f"; {name} is {_kind(value)}"
    return ""


def _kind(value: Any) -> str:
    kind: type[Any] = class_of(value)
    module = kind.__module__
    return f"a {kind.__qualname__}" if module == "builtins" else f"a {module}.{kind.__qualname__}"
