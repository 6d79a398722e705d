"""The table: printed, and put into the page on performance between its two marks."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from .budgets import ROWS, Row, Samples, middle, verdict
from .entrants import FASTMCP, FLOOR, MCP, OURS, ROOT, TS, Entrant

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COLUMNS = (FLOOR, OURS, MCP, FASTMCP, TS)


def figure(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _cell(row: Row, samples: Samples, *, column: str) -> str:
    name = row.entrant if column == OURS else column
    values = samples.get(row.key, {}).get(name)
    return figure(middle(values)) if values else ""


def _held(row: Row, samples: Samples) -> str:
    parts = []
    for bound, value, holds in verdict(row, samples):
        measured = f"{figure(value)} x {bound.other}" if bound.other else figure(value)
        parts.append(measured if holds else f"**{measured}**")
    return ", ".join(parts)


def table(samples: Samples, entrants: list[Entrant]) -> str:
    """Medians, and our ratios: those that miss their budget stand out."""
    present = [name for name in COLUMNS if any(one.name == name for one in entrants)]
    lines = [
        "| what | " + " | ".join(present) + " | budget | measured |",
        "|---|" + "---:|" * len(present) + "---|---|",
    ]
    for row in ROWS:
        if row.key not in samples:
            continue
        cells = [_cell(row, samples, column=name) for name in present]
        budget = ", ".join(str(bound) for bound in row.bounds)
        lines.append(f"| {row.what} | {' | '.join(cells)} | {budget} | {_held(row, samples)} |")
    return "\n".join(lines)


def imports(samples: Samples) -> str:
    values = samples.get("import")
    if not values:
        return ""
    bare = middle(values["nothing"])
    parts = [
        f"{name} {figure(middle(times) - bare)} ms" for name, times in values.items() if name != "nothing"
    ]
    return f"Imports, above a bare interpreter of {figure(bare)} ms: {', '.join(parts)}."


def section(samples: Samples, entrants: list[Entrant], *, failures: list[str], how: str) -> str:
    """Everything that stands between the marks."""
    versions = ", ".join(f"{one.name} {one.version}" for one in entrants if one.version)
    machine = f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} processors"
    parts = [
        f"Measured {time.strftime('%Y-%m-%d')} with {how}: {machine}; {versions}.",
        table(samples, entrants),
        imports(samples),
        "\n".join(f"* Left out: {failure}" for failure in failures),
    ]
    return "\n\n".join(part for part in parts if part)


def write(text: str, page: Path = PAGE) -> None:
    """Replace what stands between the marks of the page."""
    old = page.read_text()
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: the marks {BEGIN} and {END} are not there")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def missed(samples: Samples) -> list[str]:
    return [
        f"{row.what}: {figure(value)}, budget {bound}"
        for row in ROWS
        for bound, value, holds in verdict(row, samples)
        if not holds
    ]
