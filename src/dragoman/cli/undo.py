"""`dragoman config undo`: a file as it was before it was written."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from dragoman.cli import failure, output
from dragoman.errors import UsageError
from dragoman.host.export.files import Journal


def run(options: Namespace) -> int:
    """Put it back; returns the exit status."""
    try:
        change = Journal().undo(None if options.file is None else Path(options.file), force=options.force)
    except UsageError as exc:
        return output.fail(exc, json=options.json)
    except OSError as exc:
        return output.fail(UsageError(f"it cannot be put back: {exc.strerror}"), json=options.json)
    gone = change.before is None
    if options.json:
        output.envelope(ok=True, value={"file": change.file, "removed": gone, "written_at": change.at})
    else:
        what = "removed, as it was not there" if gone else "as it was"
        output.line(f"{change.file}: {what} before {change.at}")
    return failure.DONE
