"""The page docs/interop.md, made from the tables of the tests: python -m tests.interop.page writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.interop.roster import (
    ASKING_ROWS,
    CLIENT_ROWS,
    CLIENTS,
    EVERYTHING_ASKS,
    OLDER,
    OLDER_ROWS,
    REFUSED_ROWS,
    SERVER_ROWS,
    SERVERS,
    SKILL_CLIENTS,
    SKILL_SERVERS,
    SkillRow,
    version,
)
from tests.needs import ROOT

PAGE = ROOT / "docs" / "interop.md"

TEXT = """\
# Interoperability

What came of it when this package and those of other projects talked to each other, each as its registry has
it. The tables are written by `python -m tests.interop.page`, from the rows that `tests/interop` holds
against what happens; a test compares this page with them. `make test T=tests/interop` runs it all.

Every frame in both directions is checked against the official schema of the revision it was spoken in.
Those of this package have to be exactly that, without a member that only other revisions have; no frame of
a peer breaks its schema either.

## The client at servers of others

Each row is one connection: find out what the server speaks, list all it has, call a tool and read its
answer, have one refused for its arguments, call a tool that is not there, cancel a call that runs, read
resources, fill in a prompt, listen for changes, `ping`, and leave. Where it has tools for that: have 160 KB
of text that line, JSON and event parsers stumble over come back as it went, have a call fail, follow
progress.

{servers}

* **Opened** is `protocol=` of the client, **spoken** what was agreed on.
* **Bad arguments**, **unknown tool**: what the server answers. `isError` is a result with a text for the
  model, a number the code of an error. For an unknown tool the specification has -32602.
* **Cancelled**: *stopped* if the server's function was, by its own account; *told* where it gives none.
* **Changes**: what it told of, by `client.listen(...)`, when its list of tools or a resource had changed; a
  dash where it does not offer to tell, or has nothing that can be changed.
* **Left**: how it ended after `close()`. A process ends with status 0 and leaves no process behind; a
  session is deleted; without a session there is nothing to end; a dash where the server does not say.

What there was to use, and what of it was used:

{used}

* **Asks**: in the middle of a call it asks the person (a form), the model and for the roots, and gets
  answers.
* @playwright/mcp is listed only: its tools start a browser. mcp-server-fetch fetches from a web server of the
  test's own.

These ask the person, the model and for the roots in the middle of a call over either transport, by requests
of their own or by `input_required`, and get their answers: {asking}.

Skills are listed, loaded and read file by file, over stdio and HTTP, each file held against its entry, from
these servers: {skilled}. The clients of these do the same with skills of this package's servers: {users}.

{older} can be asked for with `protocol=`. These agree and work: {older_peers}.

Asked for 2026-07-28 and nothing else, these end in an error that says what to do: {refused_peers}.

## Clients of others at the server

Each client lists the tools, calls one with a simple and one with a structured result, reads a picture, an
error of a tool and one of bad arguments (`isError`), gets -32602 for an unknown tool, hears all progress in
its order and that the list of tools has changed, has ten odd texts at once come back as they went, answers
what a tool asks the person, the model and for the roots, and its cancellation stops the function.

{clients}

The TypeScript SDKs lose progress that they read together with the answer: they forget who listens when the
answer is read, and hand notifications on after that. It is on the wire and in its order; but of a tool that
reports its last step right before it returns, these clients may not see that step.
"""


def page() -> str:
    servers = table(
        [
            "server",
            "transport",
            "opened",
            "spoken",
            "bad arguments",
            "unknown tool",
            "cancelled",
            "changes",
            "left",
        ],
        (
            [
                named(SERVERS[row.peer].package, SERVERS[row.peer].venv),
                SHOWN[row.transport],
                row.protocol,
                row.revision,
                code(row.refused),
                code(row.unknown),
                {"sent": "told"}.get(row.cancelled, row.cancelled),
                row.told,
                row.end,
            ]
            for row in SERVER_ROWS
        ),
    )
    clients = table(
        ["client", "mode", "transport", "spoken", "left"],
        (
            [
                named(CLIENTS[row.peer].package, CLIENTS[row.peer].venv),
                CLIENTS[row.peer].shown,
                SHOWN[row.transport],
                row.revision,
                row.end,
            ]
            for row in CLIENT_ROWS
        ),
    )
    older_peers = grouped((peer, SHOWN[transport]) for peer, transport in OLDER_ROWS)
    asking = grouped((peer, protocol) for peer, transport, protocol in ASKING_ROWS)
    refused = dict.fromkeys(name(peer) for peer, *_ in REFUSED_ROWS)
    return TEXT.format(
        servers=servers,
        used=used(),
        clients=clients,
        asking=asking,
        skilled=skilled(SKILL_SERVERS),
        users=skilled(SKILL_CLIENTS),
        older=words(OLDER),
        older_peers=older_peers,
        refused_peers="; ".join(refused),
    )


def used() -> str:
    """A row for each server: what it lists, and what was done with it."""
    asking = {peer for peer, *_ in ASKING_ROWS} | ({"everything"} if EVERYTHING_ASKS else set())
    rows: list[list[str]] = []
    for peer, server in SERVERS.items():
        plan = server.plan
        transports = dict.fromkeys(SHOWN[row.transport] for row in SERVER_ROWS if row.peer == peer)
        numbers = (plan.tools, plan.resources, plan.templates, plan.prompts)
        done = (plan.good is not None, bool(plan.reads), plan.prompt is not None, peer in asking)
        rows.append(
            [
                name(peer),
                ", ".join(transports),
                *(str(number) for number in numbers),
                *("yes" if one else "-" for one in done),
            ]
        )
    head = [
        "server",
        "over",
        "tools",
        "resources",
        "templates",
        "prompts",
        "called",
        "read",
        "prompt",
        "asks",
    ]
    return table(head, rows)


def skilled(rows: Iterable[SkillRow]) -> str:
    """The packages, each with the revisions over which it has skills."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(named(*row.package), {})[row.revision] = None
    return "; ".join(f"{package} ({words(revisions)})" for package, revisions in found.items())


SHOWN = {"stdio": "stdio", "http": "HTTP"}


def grouped(pairs: Iterable[tuple[str, str]]) -> str:
    """Peers, each with what belongs to it in brackets."""
    found: dict[str, dict[str, None]] = {}
    for peer, one in pairs:
        found.setdefault(name(peer), {})[one] = None
    return "; ".join(f"{peer} ({words(ones)})" for peer, ones in found.items())


def name(peer: str) -> str:
    return named(SERVERS[peer].package, SERVERS[peer].venv)


def named(package: str, venv: str) -> str:
    return f"{package} {version(package, venv)}"


def code(answer: str) -> str:
    return answer if answer.startswith("-") else f"`{answer}`"


def words(parts: Iterable[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
