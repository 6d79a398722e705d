"""A bell between the processes that share a file: datagrams of one byte, through sockets beside it.

It only shortens the wait: one that does not ring, or rings for nothing, does no harm. It refuses to
know what happened.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Final

LONGEST: Final = 100  # bytes of a socket's path; the kernels take 104 or 108, with the final NUL


class Bell:
    """Rings those who listen at `folder`, and listens there while it is `hung`."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._name = f"{os.getpid()}.{secrets.token_hex(4)}"
        self._ear: socket.socket | None = None
        self._mouth: socket.socket | None = None
        self._folder_fd: int | None = None

    def hang(self) -> bool:
        """Listen. False if that cannot be done here, and one has to look oneself now and then."""
        if self._ear is not None:
            return True
        try:
            # The first may find the folder gone between the two steps: the last to leave removes it.
            for attempt in (1, 2, 3):
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                ear = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                try:
                    ear.setblocking(False)
                    ear.bind(self._address(self._name))
                except FileNotFoundError:
                    ear.close()
                    self._forget_folder()
                    if attempt == 3:
                        raise
                except BaseException:
                    ear.close()
                    raise
                else:
                    self._ear = ear
                    break
        except OSError:
            return False
        return True

    def fileno(self) -> int | None:
        """What becomes readable when somebody rings."""
        return None if self._ear is None else self._ear.fileno()

    def hush(self) -> None:
        """Heard."""
        if self._ear is not None:
            with contextlib.suppress(BlockingIOError):
                while self._ear.recv(1):
                    pass

    def ring(self) -> None:
        """Wake all others that listen."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except OSError:
            return  # nobody listens
        for name in names:
            if name != self._name:
                self._ring(name)

    def _ring(self, name: str) -> None:
        if self._mouth is None:
            self._mouth = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._mouth.setblocking(False)
        try:
            self._mouth.sendto(b"\a", self._address(name))
        except ConnectionRefusedError:
            # Left behind by a process that was killed. Nobody binds a name twice.
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()
        except BlockingIOError:
            pass  # full: it rings there already
        except OSError:
            self._forget_folder()  # gone: nobody is there, or the folder is another one by now

    def _address(self, name: str) -> str:
        """The path of a socket, by way of a descriptor where it is too long for the kernel."""
        path = str(self._folder / name)
        if len(os.fsencode(path)) <= LONGEST or not sys.platform.startswith("linux"):
            return path
        if self._folder_fd is None:
            self._folder_fd = os.open(self._folder, os.O_DIRECTORY | os.O_RDONLY)
        return f"/proc/self/fd/{self._folder_fd}/{name}"

    def _forget_folder(self) -> None:
        if self._folder_fd is not None:
            os.close(self._folder_fd)
            self._folder_fd = None

    def close(self) -> None:
        """Listen no more, and leave nothing behind."""
        if self._mouth is not None:
            self._mouth.close()
            self._mouth = None
        if self._ear is not None:
            self._ear.close()
            self._ear = None
            with contextlib.suppress(OSError):
                (self._folder / self._name).unlink()
            with contextlib.suppress(OSError):
                self._folder.rmdir()
        self._forget_folder()
