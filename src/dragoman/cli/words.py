"""What the words of all commands are made of: a parser that ends nothing, and the options that many take.

Loads no more than argparse.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Final, NoReturn

TARGET_HELP: Final = (
    "a URL, a .py file (server.py or server.py:name), a command line in quotes, or a JSON entry"
)
TRUSTED_HELP: Final = "start what the folder's own files name, though nobody has approved it"
HOSTS: Final = (
    *("claude-code", "codex", "cursor", "vscode", "claude-desktop", "gemini-cli", "opencode", "zed"),
    *("cline", "roo-code", "continue", "copilot-cli"),
)
"""As `dragoman.host.DIALECTS` has them, which takes time to load."""
HOSTS_HELP: Final = f"""\
HOST is one of
  {", ".join(HOSTS[:8])},
  {", ".join(HOSTS[8:])}
"""

_UNRECOGNIZED: Final = "unrecognized arguments: "  # as argparse begins


class WordsError(Exception):
    """The words of a command line do not fit the command.

    `word` is the one that is not known, and `known` are those that it may have been meant for. If it is near
    none of them, `rule` says how such words are written.
    """

    def __init__(self, message: str, *, word: str = "", known: Iterable[str] = (), rule: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.word = word
        self.known = tuple(known)


class Parser(argparse.ArgumentParser):
    """An argument parser that leaves it to its caller what becomes of a wrong word."""

    def __init__(self, command: str, *, description: str, examples: str) -> None:
        super().__init__(
            prog=f"dragoman {command}",
            description=description,
            epilog=f"examples:\n{examples}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raises WordsError in place of ending the process."""
        words = message.removeprefix(_UNRECOGNIZED).split() if message.startswith(_UNRECOGNIZED) else []
        option = next((word.partition("=")[0] for word in words if word.startswith("--")), "")
        # argparse counts what may be given any number of times among what is required.
        message = message.replace(", key=value", "").replace(", ARGUMENT", "")
        rule = self._rule() if words else ""
        raise WordsError(message, word=option, known=self._option_string_actions, rule=rule)

    def _rule(self) -> str:
        """How words are written that many write otherwise."""
        words = {action.metavar for action in self._actions}
        if "key=value" in words:
            return "arguments are written key=value"
        return "a command line is one TARGET, in quotes" if "TARGET" in words else ""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as exc:
            known = map(str, action.choices or ())
            raise WordsError(str(exc), word=str(value), known=known) from None


def answers_json(parser: Parser) -> None:
    """`--json`, of a command that prints a result."""
    parser.add_argument("--json", action="store_true", help="print one JSON object, in good and in bad times")


def errors_json(parser: Parser) -> None:
    """`--json`, of a command whose stdout is a server's."""
    parser.add_argument("--json", action="store_true", help="tell errors as JSON")


def folder(parser: Parser) -> None:
    """`--folder`: where the project's files are."""
    parser.add_argument("--folder", metavar="FOLDER", default=".", help="the project (default: .)")


def mcp_config(parser: Parser) -> None:
    """`--mcp-config`, as Claude Code has it."""
    parser.add_argument(
        "--mcp-config",
        metavar="FILE",
        action="append",
        default=[],
        help="servers of this run, a file or JSON, as Claude Code's option of that name",
    )


def no_color(parser: Parser) -> None:
    """`--no-color`, of a command that paints."""
    parser.add_argument("--no-color", action="store_true", help="no colours; so it is too with NO_COLOR set")


def seconds(text: str) -> float:
    """A time limit of a command line."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds above 0, received {text!r}")
    return value
