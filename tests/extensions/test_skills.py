"""Skills as clients see them: listed, read, looked through, told of when they change, on every revision."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from dragoman import Context, Server, UsageError
from dragoman.extensions.skills import NAME, Skills
from dragoman.protocol.call import Call
from dragoman.revisions import BY_VERSION
from tests.extensions.test_skills_folders import skill, write
from tests.server.pair import PATIENCE, Pair
from tests.spec.oracle import validate_frame

LATEST = "2026-07-28"
STYLE = "skill://refunds/references/STYLE.md"
MANIFEST = "skill://refunds/SKILL.md"


class Talk(Pair):
    """As `Pair`, for methods that no schema of a revision has."""

    principal: str | None = None

    def _take(self, frame: bytes) -> None:
        message = json.loads(frame)
        self.frames.append(message)
        self._arrived.set()
        try:
            validate_frame(self.revision, message, self._methods, "to_client", exact=True, others=True)
        except AssertionError as exc:
            self._fault = self._fault or exc

    async def __aenter__(self) -> Talk:
        self.connection.link.principal = self.principal
        return await super().__aenter__()

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.ask(method, params)
        assert "error" in answer, answer
        return answer["error"]

    async def uris(self) -> list[str]:
        """Of all skills."""
        return [entry["uri"] for entry in (await self.result("skills/list"))["skills"]]

    async def read(self, uri: str) -> bytes:
        """The bytes of a resource."""
        (found,) = (await self.result("resources/read", uri=uri))["contents"]
        assert found["uri"] == uri
        return found["text"].encode() if "text" in found else base64.b64decode(found["blob"])

    async def children(self, uri: str) -> dict[str, str]:
        """Name and media type of what is in a directory."""
        found = (await self.result("resources/directory/read", uri=uri))["resources"]
        return {entry["name"]: entry["mimeType"] for entry in found}

    def notices(self) -> list[tuple[str, str | None]]:
        """The notifications so far: what they are about, and the URI if they have one."""
        return [
            (frame["method"].removeprefix("notifications/"), frame.get("params", {}).get("uri"))
            for frame in self.frames
            if frame.get("method", "").startswith("notifications/resources/")
        ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two skills."""
    place = tmp_path / "skills"
    refunds = skill(place / "refunds")
    write(refunds / "references" / "STYLE.md", "Short. Ä\r\n")
    write(refunds / "references" / "regional" / "eu.md", "€")
    write(refunds / "assets" / "logo.png", bytes(range(256)))
    write(refunds / "data.csv", b"caf\xe9")
    skill(place / "acme" / "returns")
    return place


def served(folder: Path, **options: Any) -> Server:
    return Server("shop", extensions=[Skills(folder, **options)])


def everyone(*revisions: str) -> Any:
    return pytest.mark.parametrize("revision", revisions or list(BY_VERSION))


# What a server says, and what is in the lists --------------------------------------------------------


async def test_the_extension_is_declared_with_its_settings_inline(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        capabilities = (await talk.result("server/discover"))["capabilities"]
    assert capabilities["extensions"] == {NAME: {"directoryRead": True}}
    assert capabilities["resources"] == {"listChanged": True, "subscribe": True}


async def test_sessions_have_it_too(folder: Path) -> None:
    async with Talk(served(folder), "2025-11-25") as talk:
        hello = next(frame for frame in talk.frames if frame.get("id") == 1)
    assert hello["result"]["capabilities"]["extensions"] == {NAME: {"directoryRead": True}}


@everyone()
async def test_an_entry_is_a_whole_manifest_of_what_can_be_read(folder: Path, revision: str) -> None:
    async with Talk(served(folder), revision) as talk:
        skills = (await talk.result("skills/list"))["skills"]
        assert [entry["uri"] for entry in skills] == ["skill://acme/returns/SKILL.md", MANIFEST]
        refunds = skills[1]
        assert refunds["frontmatter"] == {"name": "refunds", "description": "About refunds"}
        assert refunds["resources"][0]["uri"] == MANIFEST
        root = folder / "refunds"
        on_disk = {
            path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
        }
        listed = {entry["uri"].removeprefix("skill://refunds/"): entry for entry in refunds["resources"]}
        assert len(listed) == len(refunds["resources"])
        assert {
            path: {
                "uri": f"skill://refunds/{path}",
                "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                "size": len(data),
            }
            for path, data in on_disk.items()
        } == listed
        # What a host gets is what the entry speaks of, to the byte.
        assert {path: await talk.read(entry["uri"]) for path, entry in listed.items()} == on_disk


@everyone()
async def test_hints_for_caches_are_there_where_the_revision_has_them(folder: Path, revision: str) -> None:
    async with Talk(served(folder, ttl_ms=300_000, cache_scope="private"), revision) as talk:
        found = [
            await talk.result("skills/list"),
            await talk.result("skills/get", uri=MANIFEST),
            await talk.result("resources/read", uri=MANIFEST),
            await talk.result("resources/read", uri=STYLE),
        ]
        directory = await talk.result("resources/directory/read", uri="skill://refunds")
    expected = (300_000, "private") if revision == LATEST else (None, None)
    assert [(result.get("ttlMs"), result.get("cacheScope")) for result in found] == [expected] * 4
    # By the extension's text a directory has none; the TypeScript SDK 2.4 refuses one without.
    expected = (0, "private") if revision == LATEST else (None, None)
    assert (directory.get("ttlMs"), directory.get("cacheScope")) == expected


async def test_without_hints_of_their_own_they_have_those_of_the_server(folder: Path) -> None:
    server = Server("shop", ttl_ms=5, cache_scope="private", extensions=[Skills(folder)])
    async with Talk(server) as talk:
        for result in (await talk.result("skills/list"), await talk.result("skills/get", uri=MANIFEST)):
            assert (result["ttlMs"], result["cacheScope"]) == (5, "private")


@everyone(LATEST, "2025-11-25")
async def test_one_skill_by_its_uri(folder: Path, revision: str) -> None:
    async with Talk(served(folder), revision) as talk:
        found = await talk.result("skills/get", uri=MANIFEST)
        listed = (await talk.result("skills/list"))["skills"]
    assert found["skill"] == listed[1]
    assert "nextCursor" not in found


@pytest.mark.parametrize(
    "uri",
    [
        "skill://nobody/SKILL.md",
        "skill://refunds",
        "skill://refunds/",
        STYLE,
        "refunds",
        "",
        "skill://acme/SKILL.md",
    ],
)
async def test_what_is_no_skill(folder: Path, uri: str) -> None:
    async with Talk(served(folder)) as talk:
        error = await talk.error("skills/get", uri=uri)
    assert error == {"code": -32602, "message": f"No skill is served at {uri}", "data": {"uri": uri}}


async def test_params_of_the_wrong_shape(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        for method in ("skills/get", "resources/directory/read"):
            assert (await talk.error(method))["code"] == -32602
            assert (await talk.error(method, uri=7))["code"] == -32602


async def test_pages(tmp_path: Path) -> None:
    for number in range(5):
        skill(tmp_path / f"skill-{number}", **{f"{n}.md": "x" for n in range(4)})
    server = Server("shop", page_size=2, extensions=[Skills(tmp_path)])
    async with Talk(server) as talk:
        for method, member, count, params in (
            ("skills/list", "skills", [2, 2, 1], {}),
            ("resources/directory/read", "resources", [2, 2, 1], {"uri": "skill://skill-1"}),
        ):
            pages = [await talk.result(method, **params)]
            while "nextCursor" in pages[-1]:
                pages.append(await talk.result(method, **params, cursor=pages[-1]["nextCursor"]))
            assert [len(page[member]) for page in pages] == count
            uris = [entry["uri"] for page in pages for entry in page[member]]
            assert len(set(uris)) == 5
            assert (await talk.error(method, **params, cursor="bm8="))["code"] == -32602


async def test_no_skills_are_a_list_too(tmp_path: Path) -> None:
    async with Talk(served(tmp_path)) as talk:
        assert (await talk.result("skills/list"))["skills"] == []
        assert (await talk.result("resources/list"))["resources"] == []
        skill(tmp_path / "refunds")
        assert await talk.uris() == [MANIFEST]


@everyone(LATEST, "2025-11-25")
async def test_resources_show_the_manifest_and_a_template_for_the_rest(folder: Path, revision: str) -> None:
    async with Talk(served(folder), revision) as talk:
        resources = {entry["uri"]: entry for entry in (await talk.result("resources/list"))["resources"]}
        templates = (await talk.result("resources/templates/list"))["resourceTemplates"]
        completed = await talk.result(
            "completion/complete",
            ref={"type": "ref/resource", "uri": "skill://refunds/{+path}"},
            argument={"name": "path", "value": "references/"},
        )
    assert list(resources) == ["skill://acme/returns/SKILL.md", MANIFEST]
    assert resources[MANIFEST]["name"] == "refunds"
    assert resources[MANIFEST]["description"] == "About refunds"
    assert resources[MANIFEST]["mimeType"] == "text/markdown"
    assert resources[MANIFEST]["size"] == (folder / "refunds" / "SKILL.md").stat().st_size
    assert [entry["uriTemplate"] for entry in templates] == ["skill://refunds/{+path}"]
    assert completed["completion"]["values"] == ["references/STYLE.md", "references/regional/eu.md"]


async def test_a_prefix_stands_before_every_path(folder: Path) -> None:
    async with Talk(served(folder, prefix="shop/eu")) as talk:
        assert await talk.uris() == [
            "skill://shop/eu/acme/returns/SKILL.md",
            "skill://shop/eu/refunds/SKILL.md",
        ]
        assert await talk.read("skill://shop/eu/refunds/references/STYLE.md") == "Short. Ä\r\n".encode()
        assert await talk.children("skill://shop") == {"eu": "inode/directory"}


# Reading ---------------------------------------------------------------------------------------------


async def test_text_is_text_and_the_rest_is_base64(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        kinds = {}
        for name in ("SKILL.md", "references/STYLE.md", "assets/logo.png", "data.csv"):
            (found,) = (await talk.result("resources/read", uri=f"skill://refunds/{name}"))["contents"]
            kinds[name] = found["mimeType"], "text" in found
    assert kinds == {
        "SKILL.md": ("text/markdown", True),
        "references/STYLE.md": ("text/markdown", True),
        "assets/logo.png": ("image/png", False),
        "data.csv": ("text/csv", False),  # it is no UTF-8, and its bytes are what counts
    }


@everyone(LATEST, "2025-11-25")
@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "../refunds/SKILL.md",
        "references/../SKILL.md",
        "./SKILL.md",
        "%2e%2e/secret",
        "..%2fsecret",
        "%2e%2e%2fsecret",
        "%252e%252e%252fsecret",
        "..%5csecret",
        "references//STYLE.md",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "references/STYLE.md%00",
        "references/STYLE.md/",
        "references",
        "references/",
        "link.md",
        ".env",
        "SKILL.MD",
        "",
    ],
)
async def test_nothing_else_can_be_read(folder: Path, revision: str, path: str) -> None:
    write(folder.parent / "secret")
    write(folder / "secret")
    write(folder / "refunds" / ".env")
    async with Talk(served(folder), revision) as talk:
        error = await talk.error("resources/read", uri=f"skill://refunds/{path}")
    assert error["code"] == BY_VERSION[revision].missing_resource
    assert error["data"] == {"uri": f"skill://refunds/{path}"}


async def test_what_is_linked_in_later_is_not_read(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        style = folder / "refunds" / "references" / "STYLE.md"
        style.unlink()
        style.symlink_to(write(folder.parent / "secret"))
        assert (await talk.error("resources/read", uri=STYLE))["code"] == -32602
        assert await talk.uris() == ["skill://acme/returns/SKILL.md"]


async def test_other_resources_of_the_server_stay_what_they_are(folder: Path) -> None:
    server = served(folder)
    server.add_resource("skill://by-hand", "mine")

    @server.resource("notes://{name}")
    async def note(name: str) -> str:
        return name

    @server.tool
    async def style(ctx: Context) -> str:
        (found,) = await ctx.read_resource(STYLE)
        return found.text

    async with Talk(server) as talk:
        assert await talk.read("skill://by-hand") == b"mine"
        assert await talk.read("notes://a") == b"a"
        assert (await talk.call("style"))["structuredContent"] == {"result": "Short. Ä\r\n"}


def test_one_extension_for_all_folders(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"io\.modelcontextprotocol/skills is there twice"):
        Server("shop", extensions=[Skills(folder), Skills(folder, prefix="again")])


# Directories -----------------------------------------------------------------------------------------


@everyone(LATEST, "2025-11-25")
async def test_a_directory_shows_its_direct_children(folder: Path, revision: str) -> None:
    (folder / "refunds" / "empty").mkdir()
    async with Talk(served(folder), revision) as talk:
        found = (await talk.result("resources/directory/read", uri="skill://refunds"))["resources"]
        shown = {entry["uri"]: entry for entry in found}
        assert list(shown) == [
            MANIFEST,
            "skill://refunds/assets",
            "skill://refunds/data.csv",
            "skill://refunds/empty",
            "skill://refunds/references",
        ]
        assert shown[MANIFEST]["name"] == "refunds"
        assert shown["skill://refunds/data.csv"]["name"] == "data.csv"
        assert shown["skill://refunds/data.csv"]["size"] == 4
        assert shown["skill://refunds/references"] == {
            "uri": "skill://refunds/references",
            "name": "references",
            "mimeType": "inode/directory",
        }
        references = await talk.children("skill://refunds/references")
        assert references == {"STYLE.md": "text/markdown", "regional": "inode/directory"}
        assert await talk.children("skill://refunds/references/regional") == {"eu.md": "text/markdown"}
        assert await talk.children("skill://refunds/empty") == {}
        assert await talk.children("skill://acme") == {"returns": "inode/directory"}


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        (MANIFEST, f"{MANIFEST} is a file and no directory: resources/read reads it"),
        ("skill://nobody", "No directory is served at skill://nobody"),
        ("skill://refunds/", "No directory is served at skill://refunds/"),
        ("skill://refunds/..", "No directory is served at skill://refunds/.."),
        ("skill://", "No directory is served at skill://"),
        ("file:///", "No directory is served at file:///"),
    ],
)
async def test_what_is_no_directory(folder: Path, uri: str, why: str) -> None:
    async with Talk(served(folder)) as talk:
        error = await talk.error("resources/directory/read", uri=uri)
    assert error == {"code": -32602, "message": why, "data": {"uri": uri}}


# Change ----------------------------------------------------------------------------------------------


async def listening(talk: Talk, *uris: str) -> None:
    if talk.revision == LATEST:
        wish = {"resourcesListChanged": True, "resourceSubscriptions": list(uris)}
        talk.send("subscriptions/listen", {"notifications": wish})
        await talk.said(len(talk.frames) + 1)
        return
    for uri in uris:
        await talk.result("resources/subscribe", uri=uri)


@everyone(LATEST, "2025-11-25")
async def test_a_changed_file_is_told_of_and_its_entry_is_new(folder: Path, revision: str) -> None:
    async with Talk(served(folder), revision) as talk:
        before = await talk.result("skills/get", uri=MANIFEST)
        await listening(talk, STYLE)
        write(folder / "refunds" / "references" / "STYLE.md", "Long.")
        after = await talk.result("skills/get", uri=MANIFEST)
        changed = [
            new["uri"]
            for old, new in zip(before["skill"]["resources"], after["skill"]["resources"], strict=True)
            if old != new
        ]
        assert changed == [STYLE]
        assert await talk.read(STYLE) == b"Long."
        assert talk.notices() == [("resources/list_changed", None), ("resources/updated", STYLE)]


@everyone(LATEST, "2025-11-25")
async def test_many_changes_at_once_are_one_notice(folder: Path, revision: str) -> None:
    async with Talk(served(folder), revision) as talk:
        await listening(talk)
        for name in ("one", "two", "three"):
            skill(folder / name, **{"notes.md": "x"})
        write(folder / "refunds" / "SKILL.md", "---\nname: refunds\ndescription: New\n---\n")
        found = (await talk.result("skills/list"))["skills"]
        assert [entry["frontmatter"]["name"] for entry in found] == [
            "returns",
            "one",
            "refunds",
            "three",
            "two",
        ]
        resources = {entry["uri"]: entry for entry in (await talk.result("resources/list"))["resources"]}
        assert resources[MANIFEST]["description"] == "New"
        assert len(resources) == 5
        assert talk.notices() == [("resources/list_changed", None)]


async def test_a_read_of_a_changed_file_is_what_the_entry_says_from_then_on(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        await talk.result("skills/list")
        write(folder / "refunds" / "references" / "STYLE.md", "Even shorter.")
        data = await talk.read(STYLE)
        assert data == b"Even shorter."
        entry = (await talk.result("skills/get", uri=MANIFEST))["skill"]["resources"]
        digest = {each["uri"]: each["digest"] for each in entry}[STYLE]
        assert digest == f"sha256:{hashlib.sha256(data).hexdigest()}"


async def test_a_new_file_can_be_read_at_once(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        write(folder / "acme" / "returns" / "notes.md", "new")
        assert (await talk.error("resources/read", uri="skill://acme/returns/notes.md"))["code"] == -32602
        # The skill had no files but one, and so no template for others, until it was looked at again.
        await talk.result("skills/list")
        assert await talk.read("skill://acme/returns/notes.md") == b"new"
        write(folder / "refunds" / "more.md", "more")
        assert await talk.read("skill://refunds/more.md") == b"more"


async def test_a_skill_that_breaks_is_gone_until_it_is_mended(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manifest = folder / "refunds" / "SKILL.md"
    good = manifest.read_text()
    async with Talk(served(folder)) as talk:
        write(manifest, good.replace("---\nDo", "Do"))
        assert await talk.uris() == ["skill://acme/returns/SKILL.md"]
        assert (await talk.error("skills/get", uri=MANIFEST))["code"] == -32602
        assert (await talk.error("resources/read", uri=MANIFEST))["code"] == -32602
        assert (await talk.error("resources/read", uri=STYLE))["code"] == -32602
        await talk.uris()
        (told,) = [record.getMessage() for record in caplog.records]
        assert told.startswith(f"not served: {manifest}:1: expected --- on a line of its own after")
        write(manifest, good)
        assert await talk.uris() == ["skill://acme/returns/SKILL.md", MANIFEST]
        assert await talk.read(STYLE) == "Short. Ä\r\n".encode()


async def test_a_removed_skill_is_gone(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        await listening(talk, STYLE)
        (folder / "refunds").rename(folder.parent / "elsewhere")
        assert await talk.uris() == ["skill://acme/returns/SKILL.md"]
        assert (await talk.result("resources/templates/list"))["resourceTemplates"] == []
        assert talk.notices() == [("resources/list_changed", None), ("resources/updated", STYLE)]


async def test_a_skill_whose_uri_is_taken_meanwhile_is_not_served(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = served(folder)
    server.add_resource("skill://new/SKILL.md", "by hand")
    async with Talk(server) as talk:
        skill(folder / "new")
        assert await talk.uris() == ["skill://acme/returns/SKILL.md", MANIFEST]
        assert await talk.read("skill://new/SKILL.md") == b"by hand"
        assert "skill://new/SKILL.md" in caplog.text
        (folder / "new" / "SKILL.md").unlink()
        assert await talk.uris() == ["skill://acme/returns/SKILL.md", MANIFEST]
        assert await talk.read("skill://new/SKILL.md") == b"by hand"


@everyone(LATEST, "2025-11-25")
async def test_listeners_are_told_without_asking(folder: Path, revision: str) -> None:
    server = served(folder, watch=0.01)
    server.kernel.attach()
    try:
        async with Talk(server, revision) as talk:
            await listening(talk)
            said = len(talk.frames)
            skill(folder / "new")
            await talk.said(said + 1)
            assert talk.notices() == [("resources/list_changed", None)]
            resources = (await talk.result("resources/list"))["resources"]
            assert "skill://new/SKILL.md" in [entry["uri"] for entry in resources]
    finally:
        await server.kernel.detach()


async def test_what_is_not_watched_stays_as_it_was(folder: Path) -> None:
    async with Talk(served(folder, watch=None)) as talk:
        skill(folder / "new")
        write(folder / "refunds" / "references" / "STYLE.md", "Long.")
        assert await talk.uris() == ["skill://acme/returns/SKILL.md", MANIFEST]
        # Its entry speaks of other bytes: better none than these.
        error = await talk.error("resources/read", uri=STYLE)
        assert error["code"] == -32603
        assert await talk.read("skill://refunds/references/regional/eu.md") == "€".encode()


async def test_many_who_ask_at_once_get_the_same(folder: Path) -> None:
    async with Talk(served(folder)) as talk:
        skill(folder / "new")
        found = await asyncio.gather(*(talk.uris() for _ in range(100)))
    assert found == [["skill://acme/returns/SKILL.md", "skill://new/SKILL.md", MANIFEST]] * 100


async def test_two_skills_of_one_name_are_served_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    skill(tmp_path / "billing" / "refunds")
    skill(tmp_path / "support" / "refunds")
    caplog.set_level(logging.WARNING)
    async with Talk(served(tmp_path)) as talk:
        assert await talk.uris() == ["skill://billing/refunds/SKILL.md", "skill://support/refunds/SKILL.md"]
    assert "2 skills are called refunds" in caplog.text


# Who sees what ---------------------------------------------------------------------------------------


def visible(item: Any, principal: str | None, tags: frozenset[str]) -> bool:
    uri = getattr(item, "uri", "") or getattr(item, "uri_template", "")
    return "shop" in tags and (principal == "ada" or "refunds" not in uri)


@pytest.mark.parametrize("principal", ["ada", "bob"])
async def test_a_skill_that_is_not_for_them_is_not_there(folder: Path, principal: str) -> None:
    server = Server("shop", visible=visible, extensions=[Skills(folder, tags=["shop"])])
    talk = Talk(server)
    talk.principal = principal
    async with talk:
        listed = await talk.result("skills/list")
        answers = [
            await talk.ask("skills/get", {"uri": MANIFEST}),
            await talk.ask("resources/read", {"uri": MANIFEST}),
            await talk.ask("resources/read", {"uri": STYLE}),
            await talk.ask("resources/directory/read", {"uri": "skill://refunds"}),
            await talk.ask("resources/directory/read", {"uri": "skill://refunds/references"}),
        ]
        file = await talk.ask("resources/directory/read", {"uri": STYLE})
    assert listed["cacheScope"] == "private"
    if principal == "ada":
        assert len(listed["skills"]) == 2
        assert all("result" in answer for answer in answers)
    else:
        assert [entry["uri"] for entry in listed["skills"]] == ["skill://acme/returns/SKILL.md"]
        assert [answer["error"]["code"] for answer in answers] == [-32602] * 5
        assert file["error"]["message"] == f"No directory is served at {STYLE}"


def only_templates(item: Any, principal: str | None, tags: frozenset[str]) -> bool:
    del tags
    return principal == "ada" or not getattr(item, "uri", "").startswith("skill://refunds")


async def test_whoever_does_not_see_the_manifest_sees_no_file_of_it(folder: Path) -> None:
    # The template does not hide itself: what counts is the skill.
    server = Server("shop", visible=only_templates, extensions=[Skills(folder)])
    async with Talk(server) as talk:
        assert (await talk.error("resources/read", uri=STYLE))["code"] == -32602
        assert (await talk.error("resources/read", uri=MANIFEST))["code"] == -32602
        completed = await talk.result(
            "completion/complete",
            ref={"type": "ref/resource", "uri": "skill://refunds/{+path}"},
            argument={"name": "path", "value": ""},
        )
    assert completed["completion"]["values"] == []


async def test_middleware_stands_around_its_methods(folder: Path) -> None:
    server, called = served(folder), list[str]()

    @server.middleware
    async def note(call: Call, proceed: Any) -> Any:
        called.append(call.method.name)
        return await proceed(call)

    async with Talk(server) as talk:
        await talk.uris()
        await talk.children("skill://refunds")
    assert called == ["skills/list", "resources/directory/read"]


async def test_a_mounted_server_brings_its_skills_as_resources(folder: Path) -> None:
    outer = Server("outer")
    outer.mount(served(folder))
    async with Talk(outer) as talk:
        assert await talk.read(STYLE) == "Short. Ä\r\n".encode()
        assert (await talk.error("skills/list"))["code"] == -32601
        skill(folder / "new")
        assert len((await talk.result("resources/list"))["resources"]) == 2


# What cannot be --------------------------------------------------------------------------------------


def test_all_that_cannot_be_served_is_told_when_the_server_is_made(folder: Path) -> None:
    write(folder / "one" / "SKILL.md", "---\nname: one\n---\n")
    write(folder / "two" / "SKILL.md", "---\nname: 2\ndescription: x\n---\n")
    with pytest.raises(UsageError) as caught:
        served(folder)
    head, one, two = str(caught.value).splitlines()
    assert head == "skills that cannot be served:"
    assert (
        one == f"- {folder}/one/SKILL.md:1: description: expected a text of 1 to 1024 characters, found none"
    )
    assert two.startswith(f"- {folder}/two/SKILL.md:2: name: expected 1 to 64 lower-case letters")
    assert two.endswith("; found 2")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"watch": 0}, "watch: expected at least 0.001 seconds, received 0"),
        ({"prefix": "a//b"}, "prefix: expected a path"),
        ({"prefix": "../a"}, "prefix: expected a path"),
        ({"ttl_ms": -1}, "ttl_ms: expected 0 or more"),
        ({"cache_scope": "mine"}, "cache_scope: expected"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Skills(tmp_path, **options)


def test_a_folder_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a folder"):
        Skills()
    with pytest.raises(UsageError, match="No such file or directory"):
        served(tmp_path / "no")


async def test_the_watch_ends_with_the_server(folder: Path) -> None:
    server = served(folder, watch=0.01)
    server.kernel.attach()
    async with asyncio.timeout(PATIENCE):
        while not watches():  # noqa: ASYNC110  # a task that begins tells nobody
            await asyncio.sleep(0)
    await server.kernel.detach()
    assert watches() == 0


def watches() -> int:
    return sum(task.get_name() == "dragoman-skills" for task in asyncio.all_tasks())
