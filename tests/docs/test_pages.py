"""What the pages show is what happens: each example is compiled, and those that say so are run."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks, commands, fits
from tests.needs import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
TIME_LIMIT = 60


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_examples_of_a_page(page: Path, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page):
        if block.language == "python":
            check_python(block, tmp_path)
        elif block.language == "console" and "no-run" not in block.words:
            check_console(block, tmp_path)


def check_python(block: Block, folder: Path) -> None:
    place = f"{page_id(block.path)}:{block.line}"
    tree = compile(block.text, place, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dragoman":
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), f"{place}: {node.module} has no {alias.name}"
    if block.file:
        target = folder / block.file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(block.text)
    if "run" in block.words:
        status, output = run([sys.executable, "-c", block.text], folder)
        assert status == 0, f"{place}: exit status {status}\n{output}"
        if block.output is not None:
            assert fits(block.output.splitlines(), output.splitlines()), f"{place}: the output was\n{output}"


def check_console(block: Block, folder: Path) -> None:
    wanted = next(
        (int(word.removeprefix("status=")) for word in block.words if word.startswith("status=")), 0
    )
    for command in commands(block):
        place = f"{page_id(block.path)}:{block.line}: $ {command.command}"
        status, output = run(["sh", "-c", command.command], folder)
        seen = f"{place}\nexit status {status}, the output was\n{output}"
        assert fits(command.expected, output.splitlines()), seen
        assert status == wanted, seen


def run(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Exit status and output, both streams in one, of a program with our own programs first on its path."""
    environment = {**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    environment.update(NO_COLOR="1", COLUMNS="100")
    done = subprocess.run(
        arguments,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (page.parent / target.split("#")[0]).exists(), f"{page_id(page)}: {target}"


# --- the runner itself ------------------------------------------------------------------------------


def test_blocks_of_a_page_are_read_with_their_words(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Say:\n\n```python run\nprint(1)\n```\n\n```text output\n1\n```\n\n  ```console\n  $ true\n  ```\n"
    )
    first, second, third = blocks(page)
    assert (first.language, first.words, first.text, first.output) == ("python", ["run"], "print(1)\n", "1\n")
    assert second.line == 7
    assert [command.command for command in commands(third)] == ["true"]


def test_a_block_that_is_never_closed_is_named(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("\n```python\nx = 1\n")
    with pytest.raises(ValueError, match=r"page\.md:2: .* never closed"):
        blocks(page)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "...", "d"], ["a", "b", "c", "d"], True),
        (["...", "d"], ["d"], True),
        (["a.c"], ["abc"], False),
        (["ab..."], ["abc"], True),
        (["ab...", "d"], ["abc", "x", "d"], False),
        ([], [], True),
    ],
)
def test_expected_output(expected: list[str], actual: list[str], same: bool) -> None:
    assert fits(expected, actual) is same
