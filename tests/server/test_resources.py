"""Resources under one URI: what a client of each revision sees in a list, and reads."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import pytest

from dragoman import (
    Annotations,
    Context,
    File,
    Icon,
    Image,
    InputRequiredResult,
    Refusal,
    ResourceNotFound,
    Server,
    ToolError,
    UsageError,
)
from dragoman.model import (
    BlobResourceContents,
    ElicitFormParams,
    ElicitRequest,
    ReadResourceResult,
    TextResourceContents,
)
from dragoman.server.depends import Depends
from tests.server.pair import Pair, text
from tests.server.test_asking import Asked, accept

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
LATEST = "2026-07-28"
ALL = [*HANDSHAKES, LATEST]
ON_ALL = pytest.mark.parametrize("revision", ALL)
ON_BOTH = pytest.mark.parametrize("revision", ["2025-11-25", LATEST])


async def listed(pair: Pair) -> list[dict[str, Any]]:
    return (await pair.ask("resources/list"))["result"]["resources"]


async def read(pair: Pair, uri: str) -> dict[str, Any]:
    """The only contents of a resource."""
    answer = await pair.ask("resources/read", {"uri": uri})
    assert "result" in answer, answer
    (contents,) = answer["result"]["contents"]
    return contents


async def refused(pair: Pair, uri: str) -> dict[str, Any]:
    answer = await pair.ask("resources/read", {"uri": uri})
    assert "error" in answer, answer
    return answer["error"]


# Lists -----------------------------------------------------------------------------------------------


@ON_ALL
async def test_a_list_shows_what_the_author_said_and_the_revision_knows(revision: str) -> None:
    server = Server("s")

    @server.resource(
        "file:///project/README.md",
        name="README.md",
        title="Project Documentation",
        mime_type="text/markdown",
        size=12,
        annotations={"audience": ["user"], "priority": 0.8},
        last_modified=datetime(2025, 1, 12, 15, 0, 58, tzinfo=UTC),
        icons=[Icon(src="https://example.com/icon.png", sizes=["48x48"])],
        meta={"example.com/key": 1},
    )
    def readme() -> str:
        """What this project is."""
        return "# A project\n"

    expected: dict[str, Any] = {
        "uri": "file:///project/README.md",
        "name": "README.md",
        "description": "What this project is.",
        "mimeType": "text/markdown",
        "size": 12,
        "annotations": {"audience": ["user"], "priority": 0.8},
    }
    if revision >= "2025-06-18":
        expected["title"] = "Project Documentation"
        expected["annotations"]["lastModified"] = "2025-01-12T15:00:58+00:00"
        expected["_meta"] = {"example.com/key": 1}
    if revision >= "2025-11-25":
        expected["icons"] = [{"src": "https://example.com/icon.png", "sizes": ["48x48"]}]
    async with Pair(server, revision) as pair:
        assert await listed(pair) == [expected]


async def test_the_function_says_what_the_options_do_not() -> None:
    server = Server("s")

    @server.resource("notes://today", annotations=Annotations(priority=1))
    def today() -> str:
        """Today's notes."""
        return "none"

    async with Pair(server) as pair:
        assert await listed(pair) == [
            {
                "uri": "notes://today",
                "name": "today",
                "description": "Today's notes.",
                "annotations": {"priority": 1},
            }
        ]
    assert today() == "none"  # the function stays as it is
    assert [resource.name for resource in server.resources] == ["notes://today"]


async def test_what_does_not_change_knows_its_type_and_size(tmp_path: Path) -> None:
    server = Server("s")
    server.add_resource("test://text", "héllo")
    server.add_resource("test://bytes", b"\x00\x01\x02")
    server.add_resource("test://folder/picture.png", tmp_path / "picture.png")
    server.add_resource("test://json", "{}", mime_type="application/json", name="empty")
    async with Pair(server) as pair:
        assert await listed(pair) == [
            {"uri": "test://text", "name": "text", "mimeType": "text/plain", "size": 6},
            {
                "uri": "test://bytes",
                "name": "bytes",
                "mimeType": "application/octet-stream",
                "size": 3,
            },
            {"uri": "test://folder/picture.png", "name": "picture.png", "mimeType": "image/png"},
            {"uri": "test://json", "name": "empty", "mimeType": "application/json", "size": 2},
        ]


@ON_BOTH
async def test_lists_come_in_pages_with_cursors_that_stay_good(revision: str) -> None:
    server = Server("s", page_size=2)
    for number in range(5):
        server.add_resource(f"test://{number}", str(number))
    async with Pair(server, revision) as pair:
        first = (await pair.ask("resources/list"))["result"]
        server.remove_resource("test://0")  # what went before the cursor does not move it
        second = (await pair.ask("resources/list", {"cursor": first["nextCursor"]}))["result"]
        third = (await pair.ask("resources/list", {"cursor": second["nextCursor"]}))["result"]
        pages = [[entry["uri"] for entry in page["resources"]] for page in (first, second, third)]
        assert pages == [["test://0", "test://1"], ["test://2", "test://3"], ["test://4"]]
        assert "nextCursor" not in third
        for cursor in ("", "nonsense", first["nextCursor"][:-4] + "AAAA"):
            error = (await pair.ask("resources/list", {"cursor": cursor}))["error"]
            assert error["code"] == -32602
        # A cursor of one list is none of another.
        error = (await pair.ask("resources/templates/list", {"cursor": first["nextCursor"]}))["error"]
        assert error["code"] == -32602


@pytest.mark.parametrize("method", ["resources/list", "resources/templates/list", "resources/read"])
async def test_a_server_without_resources_has_none_of_their_methods(method: str) -> None:
    server = Server("s")
    async with Pair(server) as pair:
        said = (await pair.ask("server/discover"))["result"]["capabilities"]
        assert "resources" not in said
        params = {"uri": "test://x"} if method == "resources/read" else {}
        assert (await pair.ask(method, params))["error"]["code"] == -32601
        server.add_resource("test://x", "x")
        said = (await pair.ask("server/discover"))["result"]["capabilities"]
        assert said["resources"] == {"listChanged": True, "subscribe": True}
        assert "result" in await pair.ask(method, params)


# Reading ---------------------------------------------------------------------------------------------


@dataclass
class Order:
    id: str
    total: float


@ON_ALL
@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("text", {"mimeType": "text/plain", "text": "text"}),
        ("", {"mimeType": "text/plain", "text": ""}),
        (b"\xff\x00", {"mimeType": "application/octet-stream", "blob": "/wA="}),
        (bytearray(b"a"), {"mimeType": "application/octet-stream", "blob": "YQ=="}),
        ({"a": [1, None]}, {"mimeType": "application/json", "text": '{"a":[1,null]}'}),
        (Order("A-1", 2.5), {"mimeType": "application/json", "text": '{"id":"A-1","total":2.5}'}),
        ([], {"mimeType": "application/json", "text": "[]"}),
        (0, {"mimeType": "application/json", "text": "0"}),
        (Image(b"png"), {"mimeType": "image/png", "blob": b64encode(b"png").decode()}),
        (File(b"%PDF", format="pdf"), {"mimeType": "application/pdf", "blob": "JVBERg=="}),
    ],
)
async def test_a_value_is_read_as_what_it_is(revision: str, value: Any, contents: dict[str, Any]) -> None:
    server = Server("s")

    @server.resource("test://x")
    def x() -> Any:
        return value

    async with Pair(server, revision) as pair:
        assert await read(pair, "test://x") == {"uri": "test://x", **contents}


async def test_the_declared_type_counts() -> None:
    server = Server("s")
    server.add_resource("test://a", "a,b", mime_type="text/csv")
    server.add_resource("test://b", b"a", mime_type="image/gif")

    @server.resource("test://c", mime_type="application/vnd.order+json")
    async def c() -> dict[str, int]:
        return {"a": 1}

    async with Pair(server) as pair:
        assert (await read(pair, "test://a"))["mimeType"] == "text/csv"
        assert await read(pair, "test://b") == {
            "uri": "test://b",
            "mimeType": "image/gif",
            "blob": "YQ==",
        }
        assert (await read(pair, "test://c"))["mimeType"] == "application/vnd.order+json"


@pytest.mark.parametrize(
    ("name", "data", "mime_type", "found"),
    [
        ("a.md", "# é".encode(), None, ("text/markdown", "text")),
        ("a.json", b"{}", None, ("application/json", "text")),
        ("a.svg", b"<svg/>", None, ("image/svg+xml", "text")),
        ("a.png", b"text, really", None, ("image/png", "blob")),
        ("a.txt", b"\xff\xfe", None, ("text/plain", "blob")),  # no UTF-8, whatever its name says
        ("a.unknown", b"text", None, ("text/plain", "text")),
        ("a.unknown", b"te\x00xt", None, ("application/octet-stream", "blob")),
        ("noend", b"\xff", None, ("application/octet-stream", "blob")),
        ("a.md", b"x", "text/x-special", ("text/x-special", "text")),
        ("a.md", b"x", "application/x-special", ("application/x-special", "blob")),
        ("a.log", b"x", "text/plain; charset=utf-8", ("text/plain; charset=utf-8", "text")),
    ],
)
async def test_a_path_is_the_file_there(
    tmp_path: Path, name: str, data: bytes, mime_type: str | None, found: tuple[str, str]
) -> None:
    (tmp_path / name).write_bytes(data)
    options: Any = {} if mime_type is None else {"mime_type": mime_type}
    server = Server("s")
    server.add_resource("test://static", tmp_path / name, **options)

    @server.resource("test://given", **options)
    def given() -> Path:
        return tmp_path / name

    async with Pair(server) as pair:
        for uri in ("test://static", "test://given"):
            contents = await read(pair, uri)
            assert contents["mimeType"] == found[0]
            held = contents["text"].encode() if found[1] == "text" else b64decode(contents["blob"])
            assert held == data


async def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    server = Server("s")
    server.add_resource("test://a", path)
    async with Pair(server) as pair:
        assert (await refused(pair, "test://a"))["data"] == {"uri": "test://a"}  # not there yet
        path.write_text("one")
        assert (await read(pair, "test://a"))["text"] == "one"
        path.write_text("two")
        assert (await read(pair, "test://a"))["text"] == "two"


async def test_where_a_file_lies_is_not_told(tmp_path: Path) -> None:
    server = Server("s")
    server.add_resource("test://a", tmp_path)  # a folder: it cannot be read
    async with Pair(server) as pair:
        error = await refused(pair, "test://a")
        assert error["code"] == -32603
        assert str(tmp_path) not in str(error)
        assert "test://a" in error["message"]


@ON_ALL
async def test_one_resource_may_hold_several(revision: str) -> None:
    server = Server("s")

    @server.resource("test://folder")
    def folder() -> list[TextResourceContents | BlobResourceContents]:
        return [
            TextResourceContents(uri="test://folder/a", mime_type="text/plain", text="a"),
            BlobResourceContents.of("test://folder/b", b"b"),
        ]

    @server.resource("test://whole")
    def whole() -> ReadResourceResult:
        return ReadResourceResult(contents=[TextResourceContents(uri="test://whole/1", text="1")])

    async with Pair(server, revision) as pair:
        result = (await pair.ask("resources/read", {"uri": "test://folder"}))["result"]
        assert result["contents"] == [
            {"uri": "test://folder/a", "mimeType": "text/plain", "text": "a"},
            {"uri": "test://folder/b", "blob": "Yg=="},
        ]
        assert await read(pair, "test://whole") == {"uri": "test://whole/1", "text": "1"}


async def test_a_plain_function_runs_in_a_thread_and_an_inline_one_on_the_loop() -> None:
    server = Server("s")

    @server.resource("test://thread")
    def thread() -> bool:
        return threading.current_thread() is threading.main_thread()

    @server.resource("test://loop", inline=True)
    def loop() -> bool:
        return threading.current_thread() is threading.main_thread()

    async with Pair(server) as pair:
        assert (await read(pair, "test://thread"))["text"] == "false"
        assert (await read(pair, "test://loop"))["text"] == "true"


async def test_uris_are_listed_as_the_rfc_writes_them_and_read_either_way() -> None:
    server = Server("s")
    server.add_resource("notes://서울/a b", "x")
    async with Pair(server) as pair:
        (entry,) = await listed(pair)
        assert entry["uri"] == "notes://%EC%84%9C%EC%9A%B8/a%20b"
        for uri in (entry["uri"], "notes://서울/a b"):
            contents = await read(pair, uri)
            assert contents == {"uri": entry["uri"], "mimeType": "text/plain", "text": "x"}
        server.remove_resource("notes://서울/a b")
        assert await listed(pair) == []


# What is not there, and what goes wrong --------------------------------------------------------------


@ON_ALL
async def test_what_is_not_there_is_told_with_the_revisions_own_code(revision: str) -> None:
    server = Server("s")
    server.add_resource("test://x", "x")

    @server.resource("test://none")
    def none() -> str | None:
        return None

    @server.resource("test://gone")
    def gone() -> str:
        raise ResourceNotFound("it went away yesterday")

    @server.resource("test://file")
    def file() -> str:
        return Path("/nowhere/at/all").read_text()

    async with Pair(server, revision) as pair:
        for uri in ("test://nowhere", "test://none", "test://gone", "test://file", "", "no uri at all"):
            error = await refused(pair, uri)
            # 2026-07-28, server/resources: Error Handling; -32002 in the revisions before.
            assert error["code"] == (-32602 if revision == LATEST else -32002)
            assert error["data"] == {"uri": uri}
            said = "it went away yesterday" if uri == "test://gone" else f"Resource not found: {uri}"
            assert error["message"] == said


@ON_BOTH
async def test_what_a_function_raises_is_an_internal_error_with_its_message(revision: str) -> None:
    server = Server("s")

    @server.resource("test://broken")
    def broken() -> str:
        raise ValueError("the moon is full")

    @server.resource("test://told")
    def told() -> str:
        raise ToolError("come back tomorrow")

    @server.resource("test://refused")
    def refuses() -> str:
        raise Refusal(-32000, "not for you", {"why": "because"})

    @server.resource("test://nan")
    def nan() -> float:
        return float("nan")

    @server.resource("test://surrogate")
    def surrogate() -> str:
        return "\ud800"

    async with Pair(server, revision) as pair:
        assert await refused(pair, "test://broken") == {
            "code": -32603,
            "message": "test://broken: the moon is full",
            "data": {"uri": "test://broken"},
        }
        assert (await refused(pair, "test://told"))["message"] == "test://told: come back tomorrow"
        assert await refused(pair, "test://refused") == {
            "code": -32000,
            "message": "not for you",
            "data": {"why": "because"},
        }
        for uri in ("test://nan", "test://surrogate"):
            assert (await refused(pair, uri))["code"] == -32603


# Caching hints ---------------------------------------------------------------------------------------


def hints(result: dict[str, Any]) -> tuple[Any, Any]:
    return result.get("ttlMs"), result.get("cacheScope")


async def test_hints_are_said_by_server_by_list_and_by_resource() -> None:
    server = Server(
        "s",
        ttl_ms=1000,
        page_size=1,
        caching={
            "resources/list": {"ttl_ms": 2000, "cache_scope": "private"},
            "resources/read": {"ttl_ms": 3000},
            "server/discover": {"ttl_ms": 4000},
        },
    )
    server.add_resource("test://plain", "x")
    server.add_resource("test://public", "x", cache_scope="public")
    server.add_resource("test://long", "x", ttl_ms=9000, cache_scope="public")

    @server.resource("test://itself", ttl_ms=1)
    def itself() -> ReadResourceResult:
        return ReadResourceResult(
            contents=[TextResourceContents(uri="test://itself", text="")], ttl_ms=5, cache_scope="public"
        )

    async with Pair(server) as pair:
        assert hints((await pair.ask("server/discover"))["result"]) == (4000, "public")
        assert hints((await pair.ask("tools/list"))["result"]) == (1000, "public")
        assert hints((await pair.ask("resources/templates/list"))["result"]) == (1000, "public")
        cursor: dict[str, Any] = {}
        for _ in range(4):  # the same scope on all pages (utilities/caching: Interaction with Pagination)
            page = (await pair.ask("resources/list", cursor))["result"]
            assert hints(page) == (2000, "private")
            cursor = {"cursor": page.get("nextCursor")}
        for uri, expected in {
            "test://plain": (3000, "private"),  # what is read is nobody else's unless it is said to be
            "test://public": (3000, "public"),
            "test://long": (9000, "public"),
            "test://itself": (5, "public"),
        }.items():
            assert hints((await pair.ask("resources/read", {"uri": uri}))["result"]) == expected


async def test_without_hints_nothing_that_was_read_is_kept() -> None:
    server = Server("s", ttl_ms=1000)
    server.add_resource("test://x", "x")
    async with Pair(server) as pair:
        assert hints((await pair.ask("resources/read", {"uri": "test://x"}))["result"]) == (0, "private")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"caching": {"tools/call": {"ttl_ms": 1}}}, "none of server/discover"),
        ({"caching": {"tools/list": {"ttl_ms": -1}}}, "0 or more milliseconds"),
        ({"caching": {"tools/list": {"cache_scope": "all"}}}, '"public" or "private"'),
        ({"ttl_ms": -1}, "0 or more milliseconds"),
        ({"cache_scope": "everybody"}, '"public" or "private"'),
    ],
)
def test_hints_that_cannot_be_are_told_at_once(options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Server("s", **options)


# Context ---------------------------------------------------------------------------------------------


@ON_BOTH
async def test_a_resource_may_ask_before_it_answers(revision: str) -> None:
    server = Server("s", caching={"resources/read": {"ttl_ms": 5000, "cache_scope": "public"}})

    @server.resource("test://guarded")
    async def guarded(ctx: Context) -> str:
        answer = await ctx.elicit("The password?", str)
        return f"the secret, opened with {answer.data}"

    async with Asked(server, revision, accept(value="sesame")) as client:
        answer = await client.go("resources/read", {"uri": "test://guarded"})
        (contents,) = answer["result"]["contents"]
        assert contents["text"] == "the secret, opened with sesame"
        if revision == LATEST:
            asked = client.frames[0]["result"]
            assert asked["resultType"] == "input_required"
            # utilities/caching: an interim result carries no hints, and what answers a retry is not kept.
            assert hints(asked) == (None, None)
            assert hints(answer["result"]) == (0, "private")


@ON_BOTH
async def test_a_resource_may_ask_in_the_raw_form(revision: str) -> None:
    server = Server("s")

    @server.resource("test://guarded")
    async def guarded(ctx: Context) -> str | InputRequiredResult:
        answer = ctx.input_responses.get("password")
        if answer is None:
            schema = {"type": "object", "properties": {"value": {"type": "string"}}}
            question = ElicitRequest(params=ElicitFormParams(message="?", requested_schema=schema))
            return InputRequiredResult(input_requests={"password": question})
        return answer["content"]["value"]

    async with Asked(server, revision, accept(value="sesame")) as client:
        answer = await client.go("resources/read", {"uri": "test://guarded"})
        assert answer["result"]["contents"][0]["text"] == "sesame"


@ON_BOTH
async def test_a_tool_reads_the_resources_of_its_server(revision: str) -> None:
    server = Server("s")
    server.add_resource("test://a", "hello")

    @server.resource("test://b/{n}")
    async def b(n: int, ctx: Context) -> str:
        inner = (await ctx.read_resource("test://a"))[0]
        return f"{inner.text} {n}"

    @server.tool
    async def quote(ctx: Context) -> str:
        (contents,) = await ctx.read_resource("test://b/7")
        assert contents.data() == b"hello 7"
        return str(contents.text)

    @server.tool
    async def missing(ctx: Context) -> str:
        try:
            await ctx.read_resource("test://c")
        except ResourceNotFound as exc:
            return f"caught: {exc}"
        return "found"

    @server.tool
    async def unguarded(ctx: Context) -> str:
        await ctx.read_resource("test://c")
        return "found"

    async with Pair(server, revision) as pair:
        assert text(await pair.call("quote")) == "hello 7"
        assert text(await pair.call("missing")) == "caught: Resource not found: test://c"
        result = await pair.call("unguarded")
        assert (result["isError"], text(result)) == (True, "Resource not found: test://c")


@ON_BOTH
async def test_a_tool_may_read_a_resource_that_asks(revision: str) -> None:
    server = Server("s")

    @server.resource("test://guarded")
    async def guarded(ctx: Context) -> str:
        answer = await ctx.elicit("The password?", str)
        return f"opened with {answer.data}"

    @server.tool
    async def both(ctx: Context) -> str:
        first = await ctx.elicit("Who are you?", str)
        (contents,) = await ctx.read_resource("test://guarded")
        return f"{first.data}: {contents.text}"

    answers = iter(["Ada", "sesame"])
    async with Asked(server, revision, lambda *_: accept(value=next(answers))("", {})) as client:
        assert text(await client.run("both")) == "Ada: opened with sesame"


async def test_dependencies_reach_resources() -> None:
    server = Server("s")

    def words() -> list[str]:
        return ["a", "b"]

    @server.resource("test://words")
    def joined(found: Annotated[list[str], Depends(words)]) -> str:
        return "".join(found)

    async with Pair(server) as pair:
        assert (await read(pair, "test://words"))["text"] == "ab"


# Changes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_hears_of_the_resources_that_it_watches(revision: str) -> None:
    server = Server("s")
    server.add_resource("test://a", "a")
    server.add_resource("test://b", "b")
    method = "notifications/resources/updated"
    async with Pair(server, revision) as pair:
        assert (await pair.ask("resources/subscribe", {"uri": "test://a"}))["result"] == {}
        before = len(pair.frames)
        server.notify_resource_updated("test://b")
        server.notify_resource_updated("test://a")
        await pair.said(before + 1)
        (frame,) = pair.frames[before:]
        assert frame == {"jsonrpc": "2.0", "method": method, "params": {"uri": "test://a"}}
        for _ in range(2):  # what is not watched needs no second word
            assert (await pair.ask("resources/unsubscribe", {"uri": "test://a"}))["result"] == {}
        server.notify_resource_updated("test://a")
        await pair.ask("ping")
        assert sum(frame.get("method") == method for frame in pair.frames) == 1
        error = (await pair.ask("resources/subscribe", {"uri": "test://c"}))["error"]
        assert (error["code"], error["data"]) == (-32002, {"uri": "test://c"})


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/unsubscribe"])
async def test_a_stateless_revision_has_no_such_methods(method: str) -> None:
    server = Server("s")
    server.add_resource("test://a", "a")
    async with Pair(server) as pair:
        assert (await pair.ask(method, {"uri": "test://a"}))["error"]["code"] == -32601


async def test_a_listener_hears_of_the_resources_that_it_named() -> None:
    server = Server("s")
    server.add_resource("test://a", "a")
    async with Pair(server) as pair:
        wish = {"resourceSubscriptions": ["test://a"], "resourcesListChanged": True}
        id_ = pair.send("subscriptions/listen", {"notifications": wish})
        await pair.said(1)
        assert pair.frames[0]["params"]["notifications"] == wish
        server.notify_resource_updated("test://b")
        server.notify_resource_updated("test://a")
        server.add_resource("test://b", "b")
        await pair.said(3)
        tag = {"io.modelcontextprotocol/subscriptionId": id_}
        assert [(frame["method"], frame["params"]) for frame in pair.frames[1:]] == [
            ("notifications/resources/updated", {"_meta": tag, "uri": "test://a"}),
            ("notifications/resources/list_changed", {"_meta": tag}),
        ]


async def test_a_listener_is_not_told_what_it_did_not_ask_for() -> None:
    server = Server("s")
    server.add_resource("test://a", "a")
    async with Pair(server) as pair:
        pair.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await pair.said(1)
        server.notify_resource_updated("test://a")
        server.notify_resources_changed()
        await pair.ask("resources/list")
        assert [frame["method"] for frame in pair.frames if "method" in frame] == [
            "notifications/subscriptions/acknowledged"
        ]


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_session_is_told_that_the_lists_changed(revision: str) -> None:
    server = Server("s")
    server.add_resource("test://a", "a")
    async with Pair(server, revision) as pair:
        await pair.ask("ping")
        before = len(pair.frames)
        server.add_resource("test://b", "b")
        server.add_resource("test://c/{x}", _template)
        server.remove_resource("test://c/{x}")
        server.remove_resource("test://b")
        await pair.said(before + 4)
        told = [frame["method"] for frame in pair.frames[before:]]
        assert told == ["notifications/resources/list_changed"] * 4


def _template(x: str) -> str:
    return x


# What cannot be --------------------------------------------------------------------------------------


def _asks(name: str) -> str:
    return name


@pytest.mark.parametrize(
    ("uri", "source", "options", "says"),
    [
        ("today", "x", {}, "needs a scheme"),
        ("/etc/passwd", "x", {}, "needs a scheme"),
        ("", "x", {}, "needs a scheme"),
        ("test://taken", "x", {}, "already"),
        ("test://x", _asks, {}, r"_asks\(\) asks for name"),
        ("test://x", 5, {}, "function"),
        ("test://x", "x", {"ttl_ms": -1}, "0 or more milliseconds"),
        ("test://x", "x", {"cache_scope": "all"}, '"public" or "private"'),
        ("test://x", "x", {"annotations": {"priority": "high"}}, "annotations"),
        ("test://x", "x", {"complete": {"a": ["b"]}}, "no variables to complete"),
        ("test://{x}", "x", {}, "needs a function"),
    ],
)
def test_what_cannot_be_is_told_when_it_is_added(uri: str, source: Any, options: Any, says: str) -> None:
    server = Server("s")
    server.add_resource("test://taken", "x")
    with pytest.raises(UsageError, match=says):
        server.add_resource(uri, source, **options)


def test_a_decorator_without_a_uri_says_what_is_missing() -> None:
    with pytest.raises(UsageError, match="needs a URI"):
        Server("s").resource(_template)  # type: ignore[arg-type]  # the mistake itself


def test_what_is_not_there_cannot_be_removed() -> None:
    server = Server("s")
    for uri in ("test://x", "test://{x}"):
        with pytest.raises(UsageError, match="to remove"):
            server.remove_resource(uri)


async def test_many_are_read_at_once() -> None:
    server = Server("s")
    all_in = asyncio.Event()
    inside = 0

    @server.resource("test://slow/{n}")
    async def slow(n: int) -> str:
        nonlocal inside
        inside += 1
        if inside == 20:
            all_in.set()
        await all_in.wait()
        return str(n)

    async with Pair(server) as pair:
        ids = [pair.send("resources/read", {"uri": f"test://slow/{n}"}) for n in range(20)]
        answers = [await pair.answer(id_) for id_ in ids]
        assert [a["result"]["contents"][0]["text"] for a in answers] == [str(n) for n in range(20)]


# Who sees what ---------------------------------------------------------------------------------------


@ON_BOTH
async def test_what_is_not_seen_is_not_there(revision: str) -> None:
    server = Server("s", visible=lambda _entry, _principal, tags: "secret" not in tags)
    server.add_resource("test://open", "x")
    server.add_resource("test://secret", "x", tags={"secret"})
    server.add_resource("test://a/{x}", _template, tags=["secret"], complete={"x": ["hush"]})
    server.add_resource("test://{+path}", lambda path: path, name="rest")
    server.add_prompt(lambda: "x", name="open")
    server.add_prompt(lambda a: a, name="secret", tags=["secret"], complete={"a": ["hush"]})
    async with Pair(server, revision) as pair:
        assert [entry["uri"] for entry in await listed(pair)] == ["test://open"]
        (template,) = (await pair.ask("resources/templates/list"))["result"]["resourceTemplates"]
        assert template["uriTemplate"] == "test://{+path}"
        (prompt,) = (await pair.ask("prompts/list"))["result"]["prompts"]
        assert prompt["name"] == "open"
        assert (await pair.ask("prompts/get", {"name": "secret"}))["error"]["code"] == -32602
        # The next template takes what the unseen ones would have had.
        assert (await read(pair, "test://secret"))["text"] == "secret"
        assert (await read(pair, "test://a/1"))["text"] == "a/1"
        for ref, argument in (
            ({"type": "ref/prompt", "name": "secret"}, "a"),
            ({"type": "ref/resource", "uri": "test://a/{x}"}, "x"),
        ):
            params = {"ref": ref, "argument": {"name": argument, "value": ""}}
            answer = await pair.ask("completion/complete", params)
            assert answer["error"]["code"] == -32602
