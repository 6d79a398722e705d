"""Measure the budgets beside the floor and the peers, all in one run.

    python -m bench [EXPERIMENT ...] [--quick] [--only a,b] [--rounds N] [--seconds S] [--strict]

Without experiments: all of them, and the table goes into docs/performance.md. `--quick` measures
shorter, and of the peers only what is cheap. Samples are kept in build/bench.json. Exits 1 with
`--strict` when a budget is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from . import report
from .entrants import FLOOR, ROOT, ours_and_floor, peers
from .experiments import EXPERIMENTS, Run


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("experiments", nargs="*", choices=[*EXPERIMENTS, []], metavar="EXPERIMENT")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="entrants, separated by commas; the floor is always there")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--strict", action="store_true")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    entrants = [*ours_and_floor(), *peers()]
    if options.only:
        wanted = {FLOOR, *options.only.split(",")}
        entrants = [one for one in entrants if one.name in wanted]
    rounds = options.rounds or (3 if options.quick else 7)
    seconds = options.seconds or (0.4 if options.quick else 1.0)
    run = Run(entrants, rounds, seconds, options.quick)
    highest = 0.0
    for name in options.experiments or EXPERIMENTS:
        start = time.monotonic()
        EXPERIMENTS[name](run)
        load = os.getloadavg()[0]
        highest = max(highest, load)
        print(f"{name}: {time.monotonic() - start:.0f} s, load {load:.1f}", file=sys.stderr, flush=True)
    kept = ROOT / "build" / "bench.json"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps({"when": time.strftime("%F %T"), "samples": run.samples}, indent=1))
    how = "`make bench`" if not options.quick else '`make bench BENCH_ARGS="--quick"`'
    how += f", load average up to {highest:.1f}"
    text = report.section(run.samples, entrants, failures=run.failures, how=how)
    print(text)
    if not options.experiments and not options.only:
        report.write(text)
    missed = report.missed(run.samples)
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
