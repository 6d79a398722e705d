"""A build server: two tools, arguments out of fixed sets, structured results.

    dragoman call examples/build/server.py build-app project_dir=src configuration=Release arch=arm64

`build-app` compiles the Python modules of a folder in memory, `lint-check` those of the folder in which
the server was started. A value that is not in the set is refused with the field, the allowed values
and the value that came, so that a model can do better the next time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from dragoman import Server, ToolError

server = Server("build", version="1.0.0", instructions="Call lint-check before build-app.")


class Report(msgspec.Struct):
    """How a run ended: 0 for success, and what it printed."""

    exit_code: int
    output: str


def compile_all(folder: Path, optimize: int) -> tuple[int, list[str]]:
    """The number of modules below the folder, and a line for each that does not compile."""
    modules = sorted(folder.rglob("*.py"))
    faults: list[str] = []
    for module in modules:
        try:
            compile(module.read_bytes(), module.name, "exec", optimize=optimize, dont_inherit=True)
        except (SyntaxError, ValueError) as exc:
            faults.append(f"{module.relative_to(folder)}: {exc}")
    return len(modules), faults


@server.tool(name="build-app")
def build_app(
    project_dir: str, configuration: Literal["Debug", "Release"], arch: Literal["arm64", "x86_64"]
) -> Report:
    """Build an app.

    Args:
        project_dir: The folder with the sources.
        configuration: Debug keeps assertions, Release drops them.
        arch: The processor to build for.
    """
    folder = Path(project_dir)
    if not folder.is_dir():
        raise ToolError(f"project_dir: there is no folder {project_dir}")
    count, faults = compile_all(folder, optimize=0 if configuration == "Debug" else 2)
    if faults:
        return Report(1, "\n".join(faults))
    return Report(0, f"{configuration} build for {arch}: {count} modules")


@server.tool(name="lint-check", annotations={"readOnlyHint": True})
def lint_check() -> Report:
    """Check the sources of the current folder."""
    count, faults = compile_all(Path.cwd(), optimize=0)
    return Report(1 if faults else 0, "\n".join(faults) or f"{count} modules, no faults")


if __name__ == "__main__":
    server.run()
