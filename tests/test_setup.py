"""The set-up brought what its locks name: peers in their versions, Node in its own, tools that start."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.needs import ROOT, node, npm_package, peer_python, program

PYTHON_PEERS = [
    (path.stem, line.split("==")[0])
    for path in sorted((ROOT / "tests/peers/python").glob("*.in"))
    for line in path.read_text().splitlines()
]
NPM_PEERS = json.loads((ROOT / "tests/peers/npm/package.json").read_text())["dependencies"]


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(("peer", "package"), PYTHON_PEERS)
def test_python_peer_has_its_pinned_version(peer: str, package: str) -> None:
    pinned = (ROOT / f"tests/peers/python/{peer}.in").read_text().splitlines()
    version = output(
        peer_python(peer), "-c", f"import importlib.metadata as m; print(m.version({package!r}))"
    )
    assert f"{package}=={version}" in pinned


@pytest.mark.parametrize("package", NPM_PEERS)
def test_npm_peer_has_its_pinned_version(package: str) -> None:
    manifest = json.loads((npm_package(package) / "package.json").read_text())
    assert manifest["version"] == NPM_PEERS[package]


def test_node_is_new_enough_for_the_conformance_suite() -> None:
    major = int(output(node(), "--version").removeprefix("v").split(".")[0])
    assert major >= 22
    suite = npm_package("@modelcontextprotocol/conformance") / "dist" / "index.js"
    assert output(node(), str(suite), "--version")


def test_valgrind_counts_instructions() -> None:
    assert output(program("valgrind"), "--version").startswith("valgrind-")
