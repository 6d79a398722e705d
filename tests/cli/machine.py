"""A home and a project with files of several hosts, for commands that read them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cli.shell import Done, dragoman


@dataclass(frozen=True)
class Place:
    """A person's home with a project in it."""

    home: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    def write(self, name: str, content: object) -> Path:
        """A file, `~/...` or of the project; what is no text is written as JSON."""
        path = self.home / name[2:] if name.startswith("~/") else self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return path

    def env(self, **more: str) -> Mapping[str, str]:
        """The environment of a command that is run by that person."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        return {**kept, "HOME": str(self.home), **more}

    def run(self, *words: str, **env: str) -> Done:
        """Run `dragoman` in the project."""
        return dragoman(*words, cwd=self.project, env=dict(self.env(**env)))


def new_place(folder: Path) -> Place:
    """An empty one."""
    place = Place(folder / "home")
    place.project.mkdir(parents=True)
    return place
