"""`dragoman read`, `dragoman prompt`, their lists, and questions of a server on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shell import TIME_LIMIT, dragoman

SERVER = '''
from dragoman import Context, Server

server = Server("shop", version="1.0.0")


@server.resource("orders://{order_id}", mime_type="text/plain")
def order(order_id: str) -> str:
    """One order.

    More of it.
    """
    return f"order {order_id}"


@server.resource("pictures://logo", mime_type="image/png")
def logo() -> bytes:
    return b"\\\\x89PNG"


@server.prompt
def summary(order_id: str, tone: str = "plain") -> str:
    """Sum an order up."""
    return f"Sum up {order_id}, {tone}."


@server.tool
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("Who are you?", {"type": "object", "properties": {"name": {"type": "string"}}})
    return f"{answer.action}: {answer.data}"
'''.replace("\\\\", "\\")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    return folder


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_a_resource_is_printed(protocol: str, shop: Path) -> None:
    done = dragoman("read", "server.py", "orders://A-1", "--protocol", protocol, cwd=shop)
    assert done == (0, "order A-1\n", "")


def test_a_resource_as_json_is_what_the_server_sent(shop: Path) -> None:
    done = dragoman("read", "server.py", "orders://A-1", "--json", cwd=shop)
    assert done.value == {
        "ok": True,
        "result": {"contents": [{"uri": "orders://A-1", "mimeType": "text/plain", "text": "order A-1"}]},
    }


def test_bytes_are_described_and_saved(shop: Path, tmp_path: Path) -> None:
    done = dragoman("read", "server.py", "pictures://logo", cwd=shop)
    assert done.out == "[resource pictures://logo: image/png, 4 bytes; --output FILE saves it]\n"
    file = tmp_path / "logo.png"
    done = dragoman("read", "server.py", "pictures://logo", "--output", str(file), cwd=shop)
    assert (done.status, done.out, file.read_bytes()) == (0, "", b"\x89PNG")


def test_a_resource_that_is_not_there(shop: Path) -> None:
    done = dragoman("read", "server.py", "nowhere://1", "--json", cwd=shop)
    assert (done.status, done.value["error"]["code"]) == (3, -32602)


def test_a_prompt_is_printed_message_by_message(shop: Path) -> None:
    done = dragoman("prompt", "server.py", "summary", "order_id=A-1", "tone=kind", cwd=shop)
    assert done == (0, "user: Sum up A-1, kind.\n", "")
    done = dragoman("prompt", "server.py", "summary", "order_id=A-1", "--json", cwd=shop)
    assert done.value["result"]["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "Sum up A-1, plain."}}
    ]


def test_a_prompt_that_is_not_there_or_lacks_something_says_what_there_is(shop: Path) -> None:
    done = dragoman("prompt", "server.py", "sumary", cwd=shop)
    assert done.status == 3
    assert "no prompt 'sumary': did you mean 'summary'?" in done.err
    done = dragoman("prompt", "server.py", "summary", cwd=shop)
    assert done.status == 3
    assert "summary takes order_id [tone]" in done.err


def test_lists_of_resources_and_of_prompts(shop: Path) -> None:
    done = dragoman("list", "server.py", "--resources", cwd=shop)
    rows = [line.split(maxsplit=3) for line in done.out.splitlines()]
    assert ["URI", "NAME", "TYPE", "DESCRIPTION"] in rows
    assert ["orders://{order_id}", "order", "text/plain", "One order."] in rows
    done = dragoman("list", "server.py", "--prompts", cwd=shop)
    assert [line.split(maxsplit=3) for line in done.out.splitlines()] == [
        ["PROMPT", "ARGUMENTS", "DESCRIPTION"],
        ["summary", "order_id", "[tone]", "Sum an order up."],
    ]
    done = dragoman("list", "server.py", "--resources", "--json", cwd=shop)
    assert [one["uri"] for one in done.value["result"]["resources"]] == ["pictures://logo"]
    assert dragoman("list", "server.py", "--resources", "--prompts", cwd=shop).status == 2


BARE = "from dragoman import Server\n\nserver = Server('bare', version='1.0.0')\n"


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_lists_of_a_server_without_any(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    for word, said in ((), "tools"), (("--resources",), "resources"), (("--prompts",), "prompts"):
        done = dragoman("list", "bare.py", *word, "--protocol", protocol, cwd=tmp_path)
        assert (done.status, done.out) == (0, ""), done
        assert f"the server {'lists' if said == 'resources' else 'has'} no {said}" in done.err
    done = dragoman("list", "bare.py", "--resources", "--json", "--protocol", protocol, cwd=tmp_path)
    assert done.value == {"ok": True, "result": {"resources": [], "resourceTemplates": []}}


def test_what_a_server_does_not_offer_is_looked_up_with_discover(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(BARE)
    done = dragoman("read", "bare.py", "orders://1", cwd=tmp_path)
    assert done.status == 3
    assert done.err.endswith("  try: dragoman discover shows what the server offers\n")


def test_a_question_that_nobody_is_there_for_says_where_it_can_be_answered(shop: Path) -> None:
    done = dragoman("call", "server.py", "greet", "--json", cwd=shop)
    assert done.status == 3
    assert done.value["error"]["hint"] == "run it on a terminal, where you can answer what the server asks"


def test_a_list_of_skills(shop: Path) -> None:
    (shop / "skills" / "refunds").mkdir(parents=True)
    text = "---\nname: refunds\ndescription: Pay back.\n---\n"
    (shop / "skills" / "refunds" / "SKILL.md").write_text(text)
    serving = "from dragoman import Server, Skills\nserver = Server('shop', extensions=[Skills('skills')])\n"
    (shop / "skilled.py").write_text(serving)
    done = dragoman("list", "skilled.py", "--skills", cwd=shop)
    assert [line.split(maxsplit=3) for line in done.out.splitlines()] == [
        ["SKILL", "FILES", "BYTES", "DESCRIPTION"],
        ["skill://refunds/SKILL.md", "1", str(len(text)), "Pay back."],
    ]
    done = dragoman("list", "skilled.py", "--skills", "--json", cwd=shop)
    (entry,) = done.value["result"]["skills"]
    assert entry["frontmatter"] == {"name": "refunds", "description": "Pay back."}
    assert [file["size"] for file in entry["resources"]] == [len(text)]
    done = dragoman("list", "server.py", "--skills", cwd=shop)
    assert done.status == 2
    assert "no skills" in done.err


@pytest.mark.parametrize("protocol", ["auto", "2025-11-25"])
def test_on_a_terminal_a_servers_question_is_asked_there(protocol: str, shop: Path) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "dragoman", "call", "server.py", "greet", "--protocol", protocol]
    process = subprocess.Popen(
        words, cwd=shop, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True
    )
    os.close(theirs)
    shown = ""
    answers = ["Ada\n", "y\n"]
    try:
        while answers:
            shown += os.read(ours, 4096).decode()
            if shown.endswith("> "):
                os.write(ours, answers.pop(0).encode())
        out, _ = process.communicate(timeout=TIME_LIMIT)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert "server asks: Who are you?" in shown
    assert out == "accept: {'name': 'Ada'}\n"


def test_in_a_pipe_the_server_is_told_that_nobody_can_be_asked(shop: Path) -> None:
    done = dragoman("call", "server.py", "greet", cwd=shop)
    assert done.status != 0
    assert "elicitation" in done.err
