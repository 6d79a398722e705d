"""Call many servers that break at random, and see that no call is lost.

    python -m tools.soak [--minutes M] [--rate N] [--servers N] [--share F] [--seed N] [--json]

Exits 0 where every call ended in a result or in an error that says what happened, memory stayed flat and
nothing was left over; 1 where not, with what did not hold. The same seed makes the same calls with the same
faults; figures are kept in build/soak.json.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from dragoman.cli.progress import Bar

from . import report
from .fleet import ROOT
from .run import Outcome, Plan, Soak
from .watch import MIB


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=15.0, help="how long calls are made (15)")
    parser.add_argument("--rate", type=float, default=100.0, help="calls a second over all servers (100)")
    parser.add_argument("--servers", type=int, default=8, help="how many, over stdio and HTTP in turn (8)")
    parser.add_argument("--share", type=float, default=0.05, help="share of calls with a fault (0.05)")
    parser.add_argument("--seed", type=int, default=1, help="calls and faults are drawn from it (1)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON instead of tables")
    options = parser.parse_args()
    if not (options.minutes > 0 and options.rate > 0 and options.servers > 0 and 0 <= options.share <= 1):
        parser.error("--minutes, --rate and --servers are above 0, and --share is between 0 and 1")
    return options


def main() -> int:
    """Run it; returns the exit status."""
    options = arguments()
    calls = max(1, round(options.minutes * 60 * options.rate))
    plan = Plan(calls, options.rate, options.servers, options.share, options.seed)
    bar = Bar()

    def show(outcome: Outcome) -> None:
        tally = outcome.tally
        now = f"{tally.ended:,} of {calls:,} calls ended, {tally.begun - tally.ended} open, "
        now += f"{len(tally.wrong) + len(outcome.logged)} wrong, {outcome.memory.sample() / MIB:.0f} MiB"
        bar(tally.begun, calls, now)

    with tempfile.TemporaryDirectory(prefix="soak") as folder:
        outcome = asyncio.run(Soak(plan, Path(folder), show).run())
    bar.clear()
    figures = report.record(outcome)
    kept = ROOT / "build" / "soak.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(figures, indent=1))
    if options.json:
        print(json.dumps(figures))
    else:
        print(report.text(outcome, report.Brush()))
    return 1 if figures["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
