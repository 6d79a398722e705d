"""One file of the repository, parsed once, and what the rules ask about it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

PACKAGE = "dragoman"
SRC = f"src/{PACKAGE}/"

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Finding(NamedTuple):
    """Where a rule is broken: `line` counts from 1, `text` says what was found and what was expected."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


@dataclass(frozen=True)
class Source:
    """A text file: its path from the root of the repository, with slashes, and its text."""

    path: str
    text: str

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def in_package(self) -> bool:
        return self.is_python and self.path.startswith(SRC)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def module(self) -> str:
        """The dotted name of a module under `src/`: `dragoman.jsonrpc.peer`, `dragoman` for the root."""
        name = self.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
        return name.removesuffix(".__init__")

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def layer(self) -> str:
        """The first name below the package; empty for the lazy root."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else ""

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Every comment of a Python file with its line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]

    @cached_property
    def functions(self) -> list[tuple[str, FunctionNode, bool]]:
        """Every function, nested ones too: its qualified name, its node, and whether a class holds it."""
        return list(_functions(self.tree, "", in_class=False))


def _functions(node: ast.AST, prefix: str, *, in_class: bool) -> Iterator[tuple[str, FunctionNode, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{child.name}"
            yield name, child, in_class
            yield from _functions(child, f"{name}.", in_class=False)
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.", in_class=True)
        else:
            yield from _functions(child, prefix, in_class=in_class)


def docstring_lines(node: FunctionNode) -> int:
    """How many lines the docstring of a function takes; 0 when it has none."""
    first = node.body[0]
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def is_type_checking(node: ast.AST) -> bool:
    """Whether this is `if TYPE_CHECKING:`, whose imports never run."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
