"""The house rules hold for this tree, and each rule finds what it is there to find."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType

import pytest

import dragoman
import dragoman.host
import dragoman.testing
from tests.needs import ROOT
from tools.house.__main__ import FILE_RULES, check, load, tracked
from tools.house.graph import LAYERS, WHOLE
from tools.house.rules import complexity
from tools.house.source import Finding, Source

RULES = {**FILE_RULES, **WHOLE}


@cache
def tree() -> list[Source]:
    return load(tracked())


@cache
def findings() -> list[Finding]:
    return sorted(set(check(tree())))


@pytest.mark.parametrize("rule", [*RULES, "positional"])
def test_rule_holds(rule: str) -> None:
    found = [str(finding) for finding in findings() if finding.rule == rule]
    assert not found, "\n" + "\n".join(found)


def test_every_finding_belongs_to_a_listed_rule() -> None:
    assert {finding.rule for finding in findings()} <= {*RULES, "positional"}


# --- each rule finds what it is there to find -----------------------------------------------------

HEAD = '"""What it holds."""\n\nfrom __future__ import annotations\n'
HOST = "pypi" + ".org"

BROKEN: list[tuple[str, str, str]] = [
    ("module-length", "server/big.py", HEAD + "x = 1\n" * 398),
    ("module-docstring", "server/bare.py", "from __future__ import annotations\n"),
    ("future-annotations", "server/eager.py", '"""What it holds."""\nx: int = 1\n'),
    ("function-length", "server/long.py", HEAD + "def f():\n" + "    x = 1\n" * 50),
    ("complexity", "server/maze.py", HEAD + "def f(a):\n" + "    if a:\n        a += 1\n" * 10),
    ("parameters", "server/many.py", HEAD + "def f(*, a, b, c, d, e, f, g, h): ...\n"),
    ("positional", "server/three.py", HEAD + "def f(a, b, c): ...\n"),
    ("positional", "server/method.py", HEAD + "class C:\n    def f(self, a, b, c): ...\n"),
    ("sans-io", "model/clock.py", HEAD + "import time\n"),
    ("sans-io", "protocol/loop.py", HEAD + "from asyncio import sleep\n"),
    ("sans-io", "jsonrpc/waits.py", HEAD + "async def f():\n    return 1\n"),
    ("sans-io", "schema/reads.py", HEAD + "x = open('a')\n"),
    ("names", "server/names.py", HEAD + "class PoolManager: ...\n"),
    ("names", "server/string_utils.py", HEAD),
    ("names", "server/era.py", HEAD + "is_legacy = True\n"),
    ("revision-dates", "server/dates.py", HEAD + "def f(r):\n    return r >= '2025-06-18'\n"),
    ("function-imports", "server/lazy.py", HEAD + "def f():\n    import json\n"),
    ("optional-packages", "server/top.py", HEAD + "import pydantic\n"),
    ("layers", "errors.py", HEAD + "from dragoman import jsonrpc\n"),
    ("layers", "model/up.py", HEAD + "from ..server.kernel import Kernel\n"),
    ("layers", "transports/up.py", HEAD + "def f():\n    from dragoman.server import Server\n"),
    ("layers", "server/root.py", HEAD + "from dragoman import Server\n"),
    ("layers", "elsewhere/new.py", HEAD),
    ("cycles", "server/itself.py", HEAD + "from .other import x\n"),
    ("suppressions", "server/silent.py", HEAD + "x = 1  # type: ignore" + "\n"),
    ("suppressions", "server/silent.py", HEAD + "x = 1  # type: ignore" + "[misc]\n"),
    ("suppressions", "server/silent.py", HEAD + "x = 1  # no" + "qa\n"),
    ("suppressions", "server/silent.py", HEAD + "x = 1  # no" + "qa: E501\n"),
    (
        "suppressions",
        "server/silent.py",
        HEAD + "x = 1  # why not  # type: ignore" + "[misc]  # no" + "qa: E501\n",
    ),
    ("open-ends", "server/open.py", HEAD + "x = 1  # TO" + "DO later\n"),
    ("open-ends", "server/open.py", HEAD + "def f():\n    raise NotImplemented" + "Error\n"),
    ("forbidden-words", "server/host.py", HEAD + f"x = 'https://{HOST}/simple'\n"),
    ("forbidden-words", "server/place.py", HEAD + "x = '/work" + "/main'\n"),
    ("forbidden-words", "server/number.py", HEAD + "# see issue" + " 12\n"),
    ("jsonrpc-alone", "jsonrpc/words.py", HEAD + "# as MCP has it\n"),
]


def sample(name: str, text: str) -> Source:
    return Source(f"src/dragoman/{name}", text)


@pytest.mark.parametrize(("rule", "name", "text"), BROKEN)
def test_rule_finds(rule: str, name: str, text: str) -> None:
    others = [
        sample("server/other.py", HEAD + "from . import itself\n"),
        sample("server/kernel.py", HEAD),
        sample("jsonrpc/__init__.py", HEAD),
    ]
    found = [finding for finding in check([sample(name, text), *others]) if finding.path.endswith(name)]
    if rule == "cycles":
        found = [finding for finding in check([sample(name, text), *others]) if finding.rule == rule]
    assert rule in {finding.rule for finding in found}


def test_skip_without_reason_is_found() -> None:
    text = "import pytest\n\n@pytest.mark.skip\ndef test_a(): ...\n"
    assert [finding.rule for finding in check([Source("tests/test_a.py", text)])] == ["skips"]


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ("await asyncio.sleep(0.1)", ["sleeps"]),
        ("await asyncio.sleep(0)", []),
        ("while not done():\n        await asyncio.sleep(0.01)", []),
        ("async def slow():\n        await asyncio.sleep(1)", []),
    ],
)
def test_sleep_as_synchronisation_is_found(body: str, rules: list[str]) -> None:
    text = f"import asyncio\n\nasync def test_a():\n    {body}\n"
    assert [finding.rule for finding in check([Source("tests/test_a.py", text)])] == rules


FINE: list[tuple[str, str]] = [
    (
        "server/typing_only.py",
        HEAD + "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pydantic\n",
    ),
    ("server/optional.py", HEAD + "def f():\n    import uvicorn\n"),
    ("server/reason.py", HEAD + "x = 1  # type: ignore" + "[misc]  # the stub is wrong here\n"),
    ("server/asgi.py", HEAD + "async def app(scope, receive, send): ...\n"),
    ("server/exits.py", HEAD + "class C:\n    def __exit__(self, kind, error, trace): ...\n"),
    ("server/static.py", HEAD + "class C:\n    @staticmethod\n    def f(a, b): ...\n"),
    ("protocol/face.py", HEAD + "class P:\n    async def f(self) -> None: ...\n"),
    ("server/contextlib_names.py", HEAD + "from contextlib import contextmanager\n"),
    ("revisions/r.py", HEAD + "def f(r):\n    return r == '2025-06-18'\n"),
    ("model/wide.py", HEAD + "x = 1\n" * 690),
]


@pytest.mark.parametrize(("name", "text"), FINE)
def test_rule_lets_pass(name: str, text: str) -> None:
    assert list(check([sample(name, text)])) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return 1", 1),
        ("if a: pass\n elif b: pass\n else: pass", 3),
        ("for x in a: pass\n else: pass", 3),
        ("try: pass\n except A: pass\n except B: pass\n else: pass\n finally: pass", 4),
        ("match a:\n  case 1: pass\n  case 2: pass\n  case _: pass", 3),
        ("return a if b else c", 2),
        ("def g():\n  if a: pass\n return g", 1),
    ],
)
def test_complexity_counts_ways_through(body: str, expected: int) -> None:
    function = ast.parse(f"def f(a, b, c):\n {body}\n").body[0]
    assert complexity(function) == expected


# --- the public face --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "package", [dragoman, dragoman.host, dragoman.testing], ids=lambda found: found.__name__
)
def test_every_public_name_resolves(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


@pytest.mark.parametrize(
    "package", [dragoman, dragoman.host, dragoman.testing], ids=lambda found: found.__name__
)
def test_lazy_names_checkers_names_and_all_agree(package: ModuleType) -> None:
    module = ast.parse(Path(str(package.__file__)).read_text())
    checked = {
        (alias.asname or alias.name): statement.module
        for block in module.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    homes = {name: resolve_name(home, package.__name__) for name, home in package._HOMES.items()}
    assert checked == homes
    assert set(package.__all__) - {"__version__"} == set(checked)


def test_unknown_public_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="'dragoman' has no attribute 'Sever'"):
        _ = dragoman.Sever


def test_layers_of_the_tree_are_in_the_list() -> None:
    package = ROOT / "src/dragoman"
    present = {path.stem for path in package.glob("*.py")} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert present - {"__init__"} <= set(LAYERS)


# --- what an import loads ---------------------------------------------------------------------------

OPTIONAL = {
    *(
        "uvicorn",
        "httptools",
        "h11",
        "jsonschema_rs",
        "pydantic",
        "pydantic_core",
        "annotated_types",
    ),
    *("rich", "platformdirs", "uvloop", "cryptography", "starlette", "fastapi"),
}
HEAVY = {
    *(
        "ssl",
        "http.client",
        "http.server",
        "email",
        "email.message",
        "urllib.request",
        "logging.config",
        "uuid",
    ),
    *(
        "tempfile",
        "json",
        "sqlite3",
        "multiprocessing",
        "unittest",
        "xml",
        "importlib.metadata",
        "pdb",
        "difflib",
    ),
}


def loaded(code: str) -> set[str]:
    """The modules that a fresh interpreter has after running `code`."""
    script = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@cache
def bare() -> frozenset[str]:
    return frozenset(loaded("pass"))


@pytest.mark.parametrize("code", ["import dragoman", "import dragoman; dragoman.__version__"])
def test_importing_the_package_loads_next_to_nothing(code: str) -> None:
    more = loaded(code) - bare()
    assert {name for name in more if name.startswith("dragoman")} == {"dragoman", "dragoman.version"}
    assert not more & {"asyncio", "msgspec", "inspect", "dataclasses"}


def test_a_server_loads_no_optional_package() -> None:
    # What asyncio and msgspec load themselves (ssl, uuid) is there whatever a server does.
    more = loaded("from dragoman import Server") - loaded("import asyncio, msgspec")
    assert not more & (OPTIONAL | HEAVY)


def test_a_client_loads_no_optional_package() -> None:
    more = loaded("from dragoman import Client") - bare()
    assert not more & (OPTIONAL | {"email", "http.client", "urllib.request"})


def test_the_engine_loads_nothing_of_the_rest() -> None:
    more = {name.split(".")[1] for name in loaded("import dragoman.jsonrpc") if name.startswith("dragoman.")}
    assert more <= {"version", "errors", "jsonrpc"}
