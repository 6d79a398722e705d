"""Rules on words: suppressions with their reasons, open ends, and what no file of the repository says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from .source import Finding, Source

# Written in pieces, so that this file does not say them itself.
_HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "npmjs" + ".com", "yarnpkg" + ".com",
          "debian" + ".org/debian", "crates" + ".io", "proxy.golang" + ".org")  # fmt: skip
_PLACES = ("/work" + "/", "/root" + "/", "/tmp/" + "spec", "/home/" + "user")
FORBIDDEN = tuple((word, "a package registry's host") for word in _HOSTS) + tuple(
    (word, "a path of one machine") for word in _PLACES
)
ISSUE = re.compile(r"\b(?:issue " + r"#?\d+|part " + r"\d+ of \d+)\b", re.IGNORECASE)

# Folders of other people's files, kept as they came.
FOREIGN = ("tests/spec/data/",)

# Modules that raise the exception of placeholders because another library's contract asks for it, and why.
NOT_OURS = {"dragoman.schema.foreign": "a msgspec hook says so that a type is not its own"}

OPEN_ENDS = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
SUPPRESSION = re.compile(r"#\s*(type:\s*ignore|pyright:\s*ignore|noqa)\b(?P<rest>.*)")
CODES = re.compile(r"^(\[[\w\-, ]+\]|:\s*[A-Z]+[0-9]+(,\s*[A-Z]+[0-9]+)*)")
WHOLE_FILE = re.compile(
    r"#\s*(ruff:\s*noqa|flake8:\s*noqa|mypy:\s*ignore-errors|pyright:\s*(basic|standard|strict\b.*false))"
)
MCP_WORDS = re.compile(r"mcp|model.?context|tools/call|prompts/get|elicit", re.IGNORECASE)


def suppressions(source: Source) -> Iterator[Finding]:
    """What silences a checker names the rule that it silences and says why, on the same line."""
    if not source.is_python or source.path.startswith(FOREIGN):
        return
    for line, comment in source.comments:
        if WHOLE_FILE.search(comment):
            yield Finding(source.path, line, "suppressions", "silences a checker for the whole file")
        for part in _parts(comment):
            found = SUPPRESSION.match(part[0])
            if found is None:
                continue
            rest = found["rest"].strip()
            codes = CODES.match(rest)
            reason = (rest[codes.end() :] if codes else rest) + part[1]
            if codes is None:
                yield Finding(source.path, line, "suppressions", f"{comment.strip()!r} names no rule")
            elif len(re.findall(r"\w{2,}", reason)) < 2:
                yield Finding(source.path, line, "suppressions", f"{comment.strip()!r} gives no reason")


def _parts(comment: str) -> Iterator[tuple[str, str]]:
    """Each `# ...` of a comment, with what follows it up to the end of the line."""
    starts = [match.start() for match in re.finditer("#", comment)]
    for index, start in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(comment)
        after = comment[end:]
        yield comment[start:end], "" if SUPPRESSION.match(after) else after


def open_ends(source: Source) -> Iterator[Finding]:
    """Nothing is left for later in the code: it is built, or it is not promised."""
    if not source.is_python or source.path.startswith(FOREIGN):
        return
    for line, comment in source.comments:
        if found := OPEN_ENDS.search(comment):
            yield Finding(
                source.path,
                line,
                "open-ends",
                f"{found[0]}: finish it, or write down elsewhere what is wanted",
            )
    if not source.in_package or source.module in NOT_OURS:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(raised, ast.Name) and raised.id == "NotImplemented" + "Error":
                yield Finding(
                    source.path,
                    node.lineno,
                    "open-ends",
                    "a placeholder is raised; make it abstract or build it",
                )


def forbidden_words(source: Source) -> Iterator[Finding]:
    """The files speak of the project alone: no download address, no machine's folders, no issue numbers."""
    if source.path.startswith(FOREIGN):
        return
    for number, line in enumerate(source.lines, 1):
        for word, what in FORBIDDEN:
            if word in line:
                yield Finding(source.path, number, "forbidden-words", f"{word!r}: {what}")
        if not source.path.endswith((".json", ".txt")) and (found := ISSUE.search(line)):
            yield Finding(
                source.path, number, "forbidden-words", f"{found[0]!r}: say what it is about instead"
            )


def jsonrpc_alone(source: Source) -> Iterator[Finding]:
    """The JSON-RPC engine is usable alone and has no word of MCP."""
    if not source.path.startswith("src/dragoman/jsonrpc/"):
        return
    for number, line in enumerate(source.lines, 1):
        if found := MCP_WORDS.search(line):
            yield Finding(source.path, number, "jsonrpc-alone", f"says {found[0]!r}")


def skips(source: Source) -> Iterator[Finding]:
    """A test that is left out says what is missing."""
    if not source.path.startswith("tests/") or not source.is_python or source.path.startswith(FOREIGN):
        return
    for node in ast.walk(source.tree):
        name, arguments = _mark(node)
        if name in {"skip", "skipif", "xfail"} and not arguments:
            line = getattr(node, "lineno", 1)
            yield Finding(source.path, line, "skips", f"`{name}` without a reason; say what is missing")


def _mark(node: ast.AST) -> tuple[str, bool]:
    """The name of a `pytest.skip(...)` or `pytest.mark.skip...`, and whether it gives a reason."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = ast.unparse(node.func.value)
        given = any(keyword.arg == "reason" for keyword in node.keywords)
        if owner == "pytest" and node.func.attr in {"skip", "xfail"}:
            return node.func.attr, given or bool(node.args)
        if owner == "pytest.mark":
            return node.func.attr, given
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Attribute) and ast.unparse(decorator.value) == "pytest.mark":
                return decorator.attr, False
    return "", True


def sleeps(source: Source) -> Iterator[Finding]:
    """A test waits for the thing that it needs, never for a while: outside a polling loop nothing sleeps."""
    if not source.path.startswith("tests/") or not source.is_python or source.path.startswith(FOREIGN):
        return
    for name, function, _ in source.functions:
        if not function.name.startswith("test"):
            continue
        for call in _calls(function):
            if ast.unparse(call.func) in {"time.sleep", "asyncio.sleep"} and not _is_zero(call):
                yield Finding(
                    source.path, call.lineno, "sleeps", f"{name}: wait for a condition, not for a while"
                )


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls of a function, without those of functions inside it and those of `while` loops."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.While):
            continue
        if isinstance(child, ast.Call):
            yield child
        yield from _calls(child)


def _is_zero(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


RULES: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "suppressions": suppressions,
    "open-ends": open_ends,
    "forbidden-words": forbidden_words,
    "jsonrpc-alone": jsonrpc_alone,
    "skips": skips,
    "sleeps": sleeps,
}
