"""Rules on imports: their direction, their cycles, and where they may stand."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator

from .source import PACKAGE, Finding, Source, is_type_checking

# Foundations first: a module imports only from its own layer and from those before it. The empty
# name is the lazy root. `transports` stands before `server` and `client`, which name them; a
# transport takes the kernel that it serves as an argument. `stores` stands before both: sessions keep
# their logs in one, and extensions their jobs. `testing` has clients and servers to test with, and the
# commands that record and replay stand on it.
LAYERS = (
    *("version", "errors", "jsonrpc", "model", "revisions", "protocol", "schema", "stores", "transports"),
    *(
        "server",
        "client",
        "auth",
        "extensions",
        "host",
        "testing",
        "gateway",
        "inspector",
        "cli",
        "",
        "__main__",
    ),
)

# Needed by `import dragoman`; everything else that is not the standard library is loaded where it is used.
HARD = frozenset({"msgspec"})
OPTIONAL = frozenset(
    """
    uvicorn httptools jsonschema_rs pydantic pydantic_core annotated_types platformdirs uvloop
    cryptography joserfc jsonpath_rfc9535 tomlkit watchfiles redis opentelemetry keyring
    """.split()
)

# Modules whose functions may import, and why.
LAZY_MODULES = {
    "dragoman": "the lazy root (PEP 562)",
    "dragoman.cli.main": "each command is loaded when it is called",
    "dragoman.host": "a command that reads files does not wait for clients and models",
    "dragoman.testing": "a test that needs one name does not wait for the others",
    "dragoman.testing.plugin": "every run of pytest loads it, and few tests ask for its fixtures",
}

# (module, imported module) inside a function, and why.
LAZY_IMPORTS: dict[tuple[str, str], str] = {
    ("dragoman.server.composing", "dragoman.server.lifespan"): "few servers have one",
    ("dragoman.server.composing", "dragoman.server.composition"): "few servers are made of others",
    ("dragoman.server.server", "dragoman.protocol.sealing"): "few servers seal, and all of them start",
    ("dragoman.server.server", "dragoman.server.rounds"): "it loads what seals",
    ("dragoman.server.asking", "dragoman.schema.forms"): "few servers ask, and all of them start",
    ("dragoman.schema.wording", "dragoman.schema.references"): "only what is refused is described",
    ("dragoman.server.context", "dragoman.server.progress"): "few calls have somebody who wants progress",
    ("dragoman.schema.validate", "dragoman.schema.bounds"): "many servers check nothing by a schema",
    ("dragoman.schema.signature", "dragoman.schema.explain"): "only what is refused is explained",
    ("dragoman.server.features", "dragoman.protocol.uritemplate"): "most servers have tools alone",
    ("dragoman.server.kernel", "dragoman.server.catalog"): "most servers have tools alone",
    ("dragoman.protocol.skills", "dragoman.protocol.frontmatter"): "few clients load skills, and it is large",
    ("dragoman.transports.threads", "queue"): "many servers need no thread",
    ("dragoman.server.server", "dragoman.transports.serve"): "a server over stdio does not load HTTP",
    ("dragoman.server.server", "dragoman.transports.asgi"): "a server over stdio does not load HTTP",
}

# (module, imported package) at the top of a module that is itself loaded only where it is used, and why.
TOP_OPTIONAL: dict[tuple[str, str], str] = {
    ("dragoman.testing.plugin", "pytest"): "pytest loads it",
    ("dragoman.testing.fixtures", "pytest"): "the plugin loads it",
}


def _resolve(source: Source, node: ast.ImportFrom) -> str:
    """The absolute name of the module that a `from` import names."""
    if node.level == 0:
        return node.module or ""
    parts = source.module.split(".")
    drop = node.level - 1 if source.is_package else node.level
    base = parts[: len(parts) - drop] if drop else parts
    return ".".join([*base, *(node.module.split(".") if node.module else [])])


def _targets(source: Source, node: ast.AST, modules: frozenset[str]) -> Iterator[tuple[int, str]]:
    """The modules that an import statement loads; `from package import module` names the module."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield node.lineno, alias.name
    elif isinstance(node, ast.ImportFrom):
        base = _resolve(source, node)
        for alias in node.names:
            full = f"{base}.{alias.name}"
            yield node.lineno, full if full in modules else base


def _statements(node: ast.AST, *, inside: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Every import that can run, with whether it stands inside a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        elif not is_type_checking(child):
            deeper = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _statements(child, inside=deeper)


def _known(sources: list[Source]) -> frozenset[str]:
    return frozenset(source.module for source in sources if source.in_package)


def _layer(module: str) -> str | None:
    """The layer of one of our modules; None for everybody else's."""
    parts = module.split(".")
    if parts[0] != PACKAGE:
        return None
    return parts[1] if len(parts) > 1 else ""


def layers(sources: list[Source]) -> Iterator[Finding]:
    """Imports point one way, wherever they stand."""
    modules = _known(sources)
    for source in sources:
        if not source.in_package:
            continue
        if source.layer not in LAYERS:
            yield Finding(
                source.path,
                1,
                "layers",
                f"{source.layer} is no layer; the list stands in tools/house/graph.py",
            )
            continue
        for node, _ in _statements(source.tree, inside=False):
            for line, target in _targets(source, node, modules):
                layer = _layer(target)
                if layer is not None and layer in LAYERS and LAYERS.index(layer) > LAYERS.index(source.layer):
                    text = (
                        f"{source.module} imports {target}: {layer or 'the root'} stands above {source.layer}"
                    )
                    yield Finding(source.path, line, "layers", text)


def _edges(sources: list[Source]) -> dict[str, dict[str, int]]:
    modules = _known(sources)
    edges: dict[str, dict[str, int]] = {}
    for source in sources:
        if source.in_package:
            own = edges.setdefault(source.module, {})
            for node, inside in _statements(source.tree, inside=False):
                if inside:
                    continue
                for line, target in _targets(source, node, modules):
                    if target in modules and target != source.module:
                        own.setdefault(target, line)
    return edges


def cycles(sources: list[Source]) -> Iterator[Finding]:
    """No module needs itself in order to load."""
    edges = _edges(sources)
    paths = {source.module: source.path for source in sources if source.in_package}
    done: set[str] = set()
    trail: list[str] = []

    def visit(module: str) -> Iterator[Finding]:
        if module in trail:
            ring = [*trail[trail.index(module) :], module]
            yield Finding(paths[trail[-1]], edges[trail[-1]][module], "cycles", " -> ".join(ring))
            return
        if module in done:
            return
        trail.append(module)
        for target in edges.get(module, {}):
            yield from visit(target)
        trail.pop()
        done.add(module)

    for module in sorted(edges):
        yield from visit(module)


def function_imports(source: Source) -> Iterator[Finding]:
    """Imports stand at the top, but for optional packages and what LAZY_IMPORTS gives a reason for."""
    if not source.in_package or source.module in LAZY_MODULES:
        return
    for node, inside in _statements(source.tree, inside=False):
        if not inside:
            continue
        for line, target in _targets(source, node, frozenset()):
            top = target.split(".")[0]
            if top not in OPTIONAL and (source.module, target) not in LAZY_IMPORTS:
                text = f"{target} in a function; move it up, or give the reason in LAZY_IMPORTS"
                yield Finding(source.path, line, "function-imports", text)


def optional_packages(source: Source) -> Iterator[Finding]:
    """`import dragoman` needs msgspec and the standard library; nothing else is imported at the top."""
    if not source.in_package:
        return
    for node, inside in _statements(source.tree, inside=False):
        if inside:
            continue
        for line, target in _targets(source, node, frozenset()):
            top = target.split(".")[0]
            ours = top in {PACKAGE, *HARD, *sys.stdlib_module_names}
            if not ours and (source.module, top) not in TOP_OPTIONAL:
                text = f"imports {top} at the top; import it inside the function that needs it"
                yield Finding(source.path, line, "optional-packages", text)


RULES: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "function-imports": function_imports,
    "optional-packages": optional_packages,
}
WHOLE: dict[str, Callable[[list[Source]], Iterator[Finding]]] = {"layers": layers, "cycles": cycles}
