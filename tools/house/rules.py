"""Rules on one module of the package: sizes, signatures, names, and what sans-I/O code may not do."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from .source import Finding, FunctionNode, Source, docstring_lines, is_type_checking

MODULE_LINES = 400
MODEL_LINES = 700
FUNCTION_LINES = 50
COMPLEXITY = 10
PARAMETERS = 7
POSITIONAL = 2

# Modules without `from __future__ import annotations`, and why.
EAGER_ANNOTATIONS: dict[str, str] = {}

# Signatures that another contract fixes: the names of all positional parameters beyond self.
FIXED_SIGNATURES = {
    ("scope", "receive", "send"): "ASGI",
    ("exc_type", "exc", "traceback"): "context managers",
}

# Functions with more than two positional parameters, and why they read better so.
MANY_POSITIONAL = {
    "dragoman.errors:RemoteError.__init__": "the order of an error object on the wire",
    "dragoman.errors:Refusal.__init__": "the order of an error object on the wire",
    "dragoman.jsonrpc.message:encode_request": "the order of a message on the wire",
    "dragoman.jsonrpc.message:encode_error": "the order of a message on the wire",
    "dragoman.jsonrpc.peer:Peer.refuse": "the order of a message on the wire",
    "dragoman.transports.stream:serve_stream": "reader and writer, as asyncio hands them to a server",
    "dragoman.server.context:Context.report_progress": "the order that handlers of other servers know",
}

SANS_IO = ("version", "errors", "jsonrpc", "model", "revisions", "protocol", "schema")
IO_MODULES = frozenset(
    """
    asyncio anyio trio socket ssl select selectors socketserver signal subprocess threading multiprocessing
    concurrent queue time sched logging os io pathlib shutil tempfile glob fileinput mmap fcntl pty termios
    tty sqlite3 dbm http urllib email ftplib smtplib uvicorn httptools h11 httpx aiohttp requests
    random secrets
    """.split()
)
IO_CALLS = frozenset({"open", "print", "input", "breakpoint"})

# (module, imported module) that a sans-I/O layer may use all the same, and why.
IO_EXEMPT: dict[tuple[str, str], str] = {
    ("dragoman.schema", "pathlib"): "a path is a type that a tool may take or give; none is opened",
    ("dragoman.protocol", "secrets"): "a nonce is drawn where it is used, and nowhere else",
    ("dragoman.protocol", "urllib.parse"): "splitting an address touches no network",
}

BAD_WORDS = frozenset({"manager", "helper", "helpers", "util", "utils", "modern", "legacy"})
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def module_length(source: Source) -> Iterator[Finding]:
    """At most 400 lines a module, 700 in the model."""
    limit = MODEL_LINES if source.layer == "model" else MODULE_LINES
    if source.in_package and len(source.lines) > limit:
        yield Finding(source.path, 1, "module-length", f"{len(source.lines)} lines; at most {limit}")


def module_docstring(source: Source) -> Iterator[Finding]:
    """Each module says what it holds."""
    if source.in_package and not ast.get_docstring(source.tree):
        yield Finding(
            source.path, 1, "module-docstring", "none; say what it holds and what it refuses to know"
        )


def future_annotations(source: Source) -> Iterator[Finding]:
    """Annotations cost nothing at import."""
    if not source.in_package or source.module in EAGER_ANNOTATIONS:
        return
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            return
    if len(source.tree.body) > 1:  # more than a docstring
        yield Finding(source.path, 1, "future-annotations", "missing: from __future__ import annotations")


def function_length(source: Source) -> Iterator[Finding]:
    """At most 50 lines a function, not counting its docstring and its decorators."""
    if not source.in_package:
        return
    for name, node, _ in source.functions:
        count = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
        if count > FUNCTION_LINES:
            yield Finding(
                source.path,
                node.lineno,
                "function-length",
                f"{name}: {count} lines; at most {FUNCTION_LINES}",
            )


def _branches(node: ast.AST) -> int:
    """Ways that one node adds to those through a function (McCabe)."""
    match node:
        case ast.If() | ast.IfExp() | ast.ExceptHandler():
            return 1
        case ast.For() | ast.AsyncFor() | ast.While():
            return 1 + bool(node.orelse)
        case ast.Try() | ast.TryStar():
            return int(bool(node.orelse))
        case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
            return 0
        case ast.match_case():
            return 1
        case _:
            return 0


def complexity(node: ast.AST) -> int:
    """Cyclomatic complexity of a function, without the functions that it defines inside."""
    total = 1
    stack = list(ast.iter_child_nodes(node))
    while stack:
        child = stack.pop()
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        total += _branches(child)
        stack.extend(ast.iter_child_nodes(child))
    return total


def function_complexity(source: Source) -> Iterator[Finding]:
    """At most ten ways through a function."""
    if not source.in_package:
        return
    for name, node, _ in source.functions:
        if (count := complexity(node)) > COMPLEXITY:
            yield Finding(source.path, node.lineno, "complexity", f"{name}: {count}; at most {COMPLEXITY}")


def _positional(node: FunctionNode, *, in_class: bool) -> list[str]:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    static = any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list)
    return names[1:] if in_class and not static else names


def parameters(source: Source) -> Iterator[Finding]:
    """At most seven parameters, and by name only after the second; self and cls do not count."""
    if not source.in_package:
        return
    for name, node, in_class in source.functions:
        positional = _positional(node, in_class=in_class)
        count = len(positional) + len(node.args.kwonlyargs)
        if count > PARAMETERS:
            yield Finding(source.path, node.lineno, "parameters", f"{name}: {count}; at most {PARAMETERS}")
        fixed = tuple(positional) in FIXED_SIGNATURES or f"{source.module}:{name}" in MANY_POSITIONAL
        special = node.name.startswith("__") and node.name.endswith("__") and node.name != "__init__"
        if len(positional) > POSITIONAL and not fixed and not special:
            text = f"{name}: {len(positional)} positional; by name only after {POSITIONAL} (put a `*` there)"
            yield Finding(source.path, node.lineno, "positional", text)


def _imports(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        yield node.lineno, node.module


def _runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            continue
        yield child
        yield from _runtime_nodes(child)


def _is_declaration(node: FunctionNode) -> bool:
    """Whether the body is `...`: a method of a Protocol, which says what others await."""
    body = node.body[1:] if docstring_lines(node) else node.body
    return all(
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is Ellipsis
        for statement in body
    )


def sans_io(source: Source) -> Iterator[Finding]:
    """No await, no clock, no socket, no file, no log below the transports."""
    if not source.in_package or source.layer not in SANS_IO:
        return
    for node in _runtime_nodes(source.tree):
        line = getattr(node, "lineno", 1)
        waits = isinstance(node, ast.Await | ast.AsyncFor | ast.AsyncWith)
        if waits or (isinstance(node, ast.AsyncFunctionDef) and not _is_declaration(node)):
            yield Finding(
                source.path, line, "sans-io", f"`{type(node).__name__}` in the layer {source.layer}"
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IO_CALLS:
            yield Finding(source.path, line, "sans-io", f"`{node.func.id}()` in the layer {source.layer}")
        for line, name in _imports(node):
            exempt = {(f"dragoman.{source.layer}", name), (source.module, name)} & IO_EXEMPT.keys()
            if name.split(".")[0] in IO_MODULES and not exempt:
                yield Finding(source.path, line, "sans-io", f"imports {name} in the layer {source.layer}")


def _words(identifier: str) -> set[str]:
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier).lower().split("_")
    return {part for part in parts if part}


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store())
        ):
            yield name
        case ast.alias(asname=str(name)):
            yield name
        case _:
            pass


def names(source: Source) -> Iterator[Finding]:
    """The field's terms and short nouns."""
    if not source.is_python or not source.path.startswith(("src/", "examples/", "bench/", "tools/")):
        return
    if bad := _words(source.path.rsplit("/", 1)[-1].removesuffix(".py")) & BAD_WORDS:
        yield Finding(
            source.path, 1, "names", f"the module's name says {', '.join(sorted(bad))}; say what it is"
        )
    for node in ast.walk(source.tree):
        for name in _defined(node):
            if bad := _words(name) & BAD_WORDS:
                line = getattr(node, "lineno", 1)
                yield Finding(
                    source.path, line, "names", f"{name} says {', '.join(sorted(bad))}; say what it is"
                )


def revision_dates(source: Source) -> Iterator[Finding]:
    """Code asks a revision for a fact; it never compares its date."""
    if not source.in_package or source.layer == "revisions":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            for child in ast.walk(node):
                if (
                    isinstance(child, ast.Constant)
                    and isinstance(child.value, str)
                    and DATE.fullmatch(child.value)
                ):
                    text = f"compares with {child.value!r}; ask the revision for a fact instead"
                    yield Finding(source.path, child.lineno, "revision-dates", text)


RULES: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "module-length": module_length,
    "module-docstring": module_docstring,
    "future-annotations": future_annotations,
    "function-length": function_length,
    "complexity": function_complexity,
    "parameters": parameters,
    "sans-io": sans_io,
    "names": names,
    "revision-dates": revision_dates,
}
