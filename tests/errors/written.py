"""The messages that stand in the sources: what an exception of the package is given, `…` for what differs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman import errors

KINDS = frozenset(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.LocalError)
)


class Written(NamedTuple):
    kind: str
    message: str
    place: str


def written(folder: Path) -> Iterator[Written]:
    """Each message in the modules of a folder, as far as it is a text there or in a variable beside it."""
    for path in sorted(folder.rglob("*.py")):
        for scope in ast.walk(ast.parse(path.read_text())):
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                for kind, message, line in _raised(scope):
                    yield Written(kind, message, f"{path.name}:{line}")


def _raised(scope: ast.AST) -> Iterator[tuple[str, str, int]]:
    texts: dict[str, list[str]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            texts.setdefault(node.targets[0].id, []).extend(_text(node.value))
    for node in ast.walk(scope):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in KINDS
            and node.args
        ):
            said = node.args[0]
            for text in texts.get(said.id, []) if isinstance(said, ast.Name) else _text(said):
                yield node.func.id, text, node.lineno


def _text(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)]
    if isinstance(node, ast.IfExp):
        return [*_text(node.body), *_text(node.orelse)]
    return []
