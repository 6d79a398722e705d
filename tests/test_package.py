"""What is built from this tree, and what the locks promise: a fresh machine gets just this, byte for byte."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.needs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted([*(ROOT / "requirements").glob("*.txt"), *(ROOT / "tests/peers/python").glob("*.txt")])
NPM = [ROOT / "tests/peers/npm", ROOT / "tools/npm"]
PIN = re.compile(r"^(?P<name>[a-z0-9._-]+)==(?P<version>\S+)(?: ; [^\\]+)? \\$", re.MULTILINE)


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~ ;\[]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def pins(lock: Path) -> dict[str, str]:
    return {found["name"]: found["version"] for found in PIN.finditer(lock.read_text())}


def wanted(source: Path) -> set[str]:
    lines = [line.strip() for line in source.read_text().splitlines()]
    return {name_of(line) for line in lines if line and not line.startswith(("#", "-"))}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def files(folder: Path) -> set[str]:
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_module_the_typing_marker_and_what_the_demo_shows(
    wheel: zipfile.ZipFile,
) -> None:
    ours = {f"dragoman/{name}" for name in files(ROOT / "src/dragoman")}
    ours |= {f"dragoman/_examples/orders/{name}" for name in files(ROOT / "examples/orders")}
    held = {name for name in wheel.namelist() if not name.split("/")[0].endswith(".dist-info")}
    assert "dragoman/py.typed" in held
    assert held == ours


def test_the_wheel_says_what_the_project_says(wheel: zipfile.ZipFile) -> None:
    import dragoman

    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert metadata["Name"] == "dragoman"
    assert metadata["Version"] == dragoman.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    extras = [
        f"{entry}; extra == '{extra}'"
        for extra, entries in PROJECT["optional-dependencies"].items()
        for entry in entries
    ]
    assert sorted(metadata.get_all("Requires-Dist", [])) == sorted([*PROJECT["dependencies"], *extras])


def test_the_wheel_has_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert "dragoman = dragoman.cli.main:main" in wheel.read(name).decode()


def test_the_runtime_lock_is_of_the_declared_dependencies() -> None:
    assert wanted(ROOT / "requirements/runtime.in") == {name_of(entry) for entry in PROJECT["dependencies"]}


def test_locked_versions_are_not_below_the_declared_bounds() -> None:
    locked = pins(ROOT / "requirements/runtime.txt")
    for entry in PROJECT["dependencies"]:
        name, bound = entry.split(">=")
        assert numbers(locked[name]) >= numbers(bound), entry


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def test_the_development_lock_has_the_versions_of_the_runtime_lock() -> None:
    runtime, dev = pins(ROOT / "requirements/runtime.txt"), pins(ROOT / "requirements/dev.txt")
    assert {name: dev[name] for name in runtime.keys() & dev.keys()} == {
        name: runtime[name] for name in runtime.keys() & dev.keys()
    }


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_pins_what_was_asked_with_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text()
    assert wanted(lock.with_suffix(".in")) <= set(pins(lock))
    entries = re.split(r"\n(?=[a-z0-9])", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())
    assert entries
    for entry in entries:
        assert "--hash=sha256:" in entry, entry.splitlines()[0]
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text


@pytest.mark.parametrize("folder", NPM, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_an_npm_lock_has_hashes_and_no_address(folder: Path) -> None:
    manifest = json.loads((folder / "package.json").read_text())
    lock = json.loads((folder / "package-lock.json").read_text())
    assert lock["packages"][""]["dependencies"] == manifest["dependencies"]
    for name, entry in lock["packages"].items():
        if name:
            assert entry["integrity"].startswith("sha512-"), name
            assert "resolved" not in entry, name
    for version in manifest["dependencies"].values():
        assert version[0].isdigit(), "pin exact versions"
