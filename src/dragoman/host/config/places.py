"""Names of places that several hosts' entries may refer to."""

from __future__ import annotations

from dragoman.host.config.record import Situation


def known(situation: Situation) -> dict[str, str]:
    """Editors' variables: the folder, its last part, the home, the separator; of those, what is known."""
    separator = "\\" if "\\" in situation.folder else "/"
    found = {"pathSeparator": separator, "/": separator}
    if situation.folder:
        found["workspaceFolder"] = situation.folder
        found["workspaceFolderBasename"] = situation.folder.rstrip("/\\").rpartition(separator)[2]
    if situation.home:
        found["userHome"] = situation.home
    return found
