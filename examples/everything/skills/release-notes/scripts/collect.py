"""Prints the subjects of all commits since the last tag, the oldest first."""

from __future__ import annotations

import subprocess


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    last = git("describe", "--tags", "--abbrev=0")
    print(git("log", "--reverse", "--format=%s", f"{last}..HEAD"))
