"""What the last run of these tests found, in short: `python -m tests.conformance`."""

from __future__ import annotations

from collections import defaultdict

from .expectations import FAILURES, SCENARIOS
from .suite import RESULTS, Outcome, read_results


def main() -> int:
    print(f"results of the last run in {RESULTS}\n")
    for revision, sides in SCENARIOS.items():
        for side, scenarios in sides.items():
            found = read_results(side, revision)
            passed = [name for name in scenarios if name in found and not found[name].bad and scenarios[name]]
            print(f"{revision}, {side}: {len(scenarios)} scenarios, {len(found)} have been run")
            print(f"  {len(passed)} pass, with {sum(found[name].passed for name in passed)} checks")
            for reason, names in _others(revision, side, found).items():
                print(f"  {len(names)} do not: {reason}\n    {', '.join(names)}")
    return 0


def _others(revision: str, side: str, found: dict[str, Outcome]) -> dict[str, list[str]]:
    """Scenarios that do not pass or pass in part, by the reason that is known for it."""
    reasons = {item.scenario: item.reason for item in FAILURES if item[:2] == (revision, side)}
    others: dict[str, list[str]] = defaultdict(list)
    for name, outcome in found.items():
        if outcome.bad or name in reasons:
            others[reasons.get(name, "NOT EXPECTED")].append(name)
    return dict(sorted(others.items()))


if __name__ == "__main__":
    raise SystemExit(main())
