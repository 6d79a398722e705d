"""The words of the commands that look at hosts' files, with their help. Loads no more than argparse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dragoman.cli.words import HOSTS, HOSTS_HELP, Parser, answers_json, folder, mcp_config, seconds


def config() -> Parser:
    """`dragoman config`."""
    parser = Parser("config", description=_CONFIG, examples=_CONFIG_EXAMPLES)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="the project (default: .)")
    _host(parser, "that host alone; may be given several times", many=True)
    mcp_config(parser)
    answers_json(parser)
    return parser


def export() -> Parser:
    """`dragoman config export`."""
    parser = Parser("config export", description=_EXPORT, examples=_EXPORT_EXAMPLES)
    parser.set_defaults(module="export")
    parser.add_argument("server", metavar="SERVER", nargs="*", help="these alone (default: all in use)")
    parser.add_argument("--to", metavar="HOST", required=True, choices=HOSTS, help="whose form to write")
    whose = "whose servers (default: every host's that has files here)"
    _host(parser, whose, many=True, names=("--from", "--host"))
    folder(parser)
    parser.add_argument("--output", metavar="FILE", help="where to (default: the host's file of the project)")
    parser.add_argument("--user", action="store_true", help="the person's file, not the project's")
    parser.add_argument("--write", action="store_true", help="write it; without this it is only shown")
    answers_json(parser)
    return parser


def undo() -> Parser:
    """`dragoman config undo`."""
    parser = Parser("config undo", description=_UNDO, examples=_UNDO_EXAMPLES)
    parser.set_defaults(module="undo")
    parser.add_argument("file", metavar="FILE", nargs="?", help="the file (default: the one written last)")
    parser.add_argument("--force", action="store_true", help="even if the file was changed since")
    answers_json(parser)
    return parser


def explain() -> Parser:
    """`dragoman explain`."""
    parser = Parser("explain", description=_EXPLAIN, examples=_EXPLAIN_EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="the tool, or with --trace the call's id")
    parser.add_argument("argument", metavar="key=value", nargs="*", help="its arguments")
    parser.add_argument("--args", metavar="JSON", help="all of them as a JSON object, @FILE, or - for stdin")
    _host(parser, "whose files decide (default: the first with files that knows the server)")
    parser.add_argument("--mode", metavar="MODE", default="", help="the host's permission mode")
    parser.add_argument("--headless", action="store_true", help="as where nobody can be asked")
    trust = parser.add_mutually_exclusive_group()
    yes = "as in a folder that is trusted, with its servers approved"
    trust.add_argument("--trusted", action="store_true", default=None, help=yes)
    trust.add_argument("--untrusted", action="store_false", dest="trusted", help="as in one that is not")
    parser.add_argument("--offline", action="store_true", help="start no server: config and permission alone")
    folder(parser)
    mcp_config(parser)
    parser.add_argument("--trace", metavar="FILE", help="explain a call that is recorded there")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=10.0, help="for the server to list its tools"
    )
    answers_json(parser)
    return parser


PARSERS: Final[dict[str, Callable[[], Parser]]] = {
    "config": config,
    "config export": export,
    "config undo": undo,
    "explain": explain,
}


def _host(parser: Parser, what: str, *, many: bool = False, names: Sequence[str] = ("--host",)) -> None:
    if many:
        parser.add_argument(
            *names, dest="host", metavar="HOST", action="append", choices=HOSTS, default=[], help=what
        )
    else:
        parser.add_argument(*names, metavar="HOST", choices=HOSTS, help=what)


_CONFIG: Final = f"""\
Show the servers of all hosts that have files here: where each entry stands, which of several
counts, what waits for an approval, and what is wrong, with what to do about it. Starts nothing.

{HOSTS_HELP}
`dragoman config export` writes servers in another host's form, `dragoman config undo` takes that back.
"""
_CONFIG_EXAMPLES: Final = """\
  dragoman config --host codex --host cursor
  dragoman config ~/shop --json
  dragoman config export --to codex
"""
_EXPORT: Final = f"""\
Write servers in another host's form, into its file. Comments and layout of a file that is there
stay. Variables are written as that host refers to them; what it cannot say is told. Without
--write nothing is written: what would change is shown.

{HOSTS_HELP}"""
_EXPORT_EXAMPLES: Final = """\
  dragoman config export --to codex
  dragoman config export orders --from claude-code --to vscode --write
  dragoman config export --to zed --user
  dragoman config export --to opencode --output /tmp/opencode.json --write
"""
_UNDO: Final = "Put a file back as it was before `dragoman config export --write`."
_UNDO_EXAMPLES: Final = """\
  dragoman config undo
  dragoman config undo .vscode/mcp.json
"""
_EXPLAIN: Final = f"""\
Say what becomes of a call of a tool, and why: the server's entry and what holds it back, whether
the server lists the tool, what its schema refuses, and the rule that decides, with file and line.
Nothing is called. NAME is as the model sees it (mcp__orders__refund_order), or orders:refund_order,
or orders/refund_order.

{HOSTS_HELP}"""
_EXPLAIN_EXAMPLES: Final = """\
  dragoman explain mcp__orders__refund_order order_id=A-1042 amount=500
  dragoman explain orders:refund_order --args '{"amount": 500}' --host codex
  dragoman explain orders/lookup_order --headless
  dragoman explain --trace trace.jsonl 3f9c2a11-4
"""
