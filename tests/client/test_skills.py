"""Skills as a client uses them: listed without being read, checked before they are used, read when needed.

The clauses are those of the extension `io.modelcontextprotocol/skills`, by the names of their sections.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import (
    Client,
    ClientGroup,
    RemoteError,
    Server,
    SkillFault,
    Skills,
    SyncClient,
    SyncClientGroup,
    UsageError,
)
from dragoman.model.skills_extension import MAX_BYTES, NAME, Skill, SkillResource
from dragoman.protocol.skills import entry_fault, frontmatter_fault, locate, size_fault
from tests.client.scripted import NEW, OLD, Fail, Heard, Script, Scripted

ROOT = "skill://acme/refunds"
MANIFEST = f"{ROOT}/SKILL.md"
STYLE = f"{ROOT}/references/STYLE.md"
FRONTMATTER = {"name": "refunds", "description": "Pay back."}
TEXT = "---\nname: refunds\ndescription: Pay back.\n---\n\nSee [style](references/STYLE.md).\n"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def listed(files: dict[str, bytes], **frontmatter: Any) -> dict[str, Any]:
    """The entry for the skill of these files."""
    return {
        "uri": MANIFEST,
        "frontmatter": {**FRONTMATTER, **frontmatter},
        "resources": [{"uri": uri, "digest": digest(data), "size": len(data)} for uri, data in files.items()],
    }


class Shop:
    """A server with one skill, whose entry and files can be made to differ."""

    def __init__(self, *, settings: dict[str, Any] | None = None, ttl_ms: int = 0) -> None:
        self.files = {MANIFEST: TEXT.encode(), STYLE: b"Be brief.\n"}
        self.entry: dict[str, Any] = listed(self.files)
        self.capabilities: dict[str, Any] = {"resources": {}, "extensions": {NAME: settings or {}}}
        self.hints = {"resultType": "complete", "ttlMs": ttl_ms, "cacheScope": "private"}
        self.transport = Scripted(self.answer)

    async def answer(self, transport: Scripted, heard: Heard) -> Any:
        match heard.method:
            case "server/discover":
                return {**self.hints, "supportedVersions": [NEW], "capabilities": self.capabilities}
            case "skills/list":
                return {**self.hints, "skills": [self.entry]}
            case "skills/get" if heard.params["uri"] == MANIFEST:
                return {**self.hints, "skill": self.entry}
            case "resources/read" if heard.params["uri"] in self.files:
                return {**self.hints, "contents": [self.content(heard.params["uri"])]}
        raise Fail(-32602, "there is nothing like that")

    def content(self, uri: str) -> dict[str, Any]:
        data = self.files[uri]
        try:
            return {"uri": uri, "text": data.decode()}
        except UnicodeDecodeError:
            return {"uri": uri, "blob": base64.b64encode(data).decode()}

    @property
    def read(self) -> list[str]:
        """The files that were asked for."""
        return [heard.params["uri"] for heard in self.transport.heard if heard.method == "resources/read"]


async def test_listing_and_getting_read_no_file() -> None:  # Lazy Retrieval
    shop = Shop()
    async with Client(shop.transport) as client:
        (skill,) = await client.list_skills()
        assert (skill.uri, skill.frontmatter) == (MANIFEST, FRONTMATTER)
        assert await client.get_skill(MANIFEST) == skill
    assert shop.read == []


async def test_a_skill_is_loaded_and_its_files_are_read_when_they_are_needed() -> None:
    shop = Shop()
    shop.files[f"{ROOT}/seal.bin"] = bytes(range(256))
    shop.entry = listed(shop.files)
    async with Client(shop.transport, name="shop") as client:
        (entry,) = await client.list_skills()
        skill = await client.load_skill(entry)
        assert shop.read == [MANIFEST]
        assert (skill.name, skill.description, skill.server, skill.text) == (
            "refunds",
            "Pay back.",
            "shop",
            TEXT,
        )
        assert skill.files == ["SKILL.md", "references/STYLE.md", "seal.bin"]
        assert (await client.read_skill(skill, "references/STYLE.md")).text == "Be brief.\n"
        assert (await client.read_skill(skill, "./references/../seal.bin")).data == bytes(range(256))
        assert (await client.read_skill(skill, STYLE)).uri == STYLE
        assert (await client.read_skill(skill, "SKILL.md")).text == TEXT
    assert shop.read == [MANIFEST, STYLE, f"{ROOT}/seal.bin"]


async def test_a_skill_that_is_not_listed_is_loaded_by_its_uri() -> None:  # Listing Skills, Semantics
    shop = Shop()
    async with Client(shop.transport) as client:
        assert (await client.load_skill(MANIFEST)).text == TEXT
        with pytest.raises(RemoteError, match="nothing like that"):
            await client.load_skill("skill://other/SKILL.md")


def changed(shop: Shop) -> None:
    shop.files[MANIFEST] = TEXT.replace("See", "Sea").encode()


def longer(shop: Shop) -> None:
    shop.files[MANIFEST] += b"more\n"


def described_otherwise(shop: Shop) -> None:
    shop.files[MANIFEST] = TEXT.replace("Pay back.", "Pay me.").encode()
    shop.entry = listed(shop.files)


def allowed_more(shop: Shop) -> None:
    shop.files[MANIFEST] = TEXT.replace("---\n\n", "allowed-tools: Bash\n---\n\n").encode()
    shop.entry = listed(shop.files)


def allowed_less(shop: Shop) -> None:
    shop.entry = listed(shop.files, license="MIT")


def no_frontmatter(shop: Shop) -> None:
    shop.files[MANIFEST] = b"Do what I say.\n"
    shop.entry = listed(shop.files)


def no_text(shop: Shop) -> None:
    shop.files[MANIFEST] = TEXT.encode() + b"\xff"
    shop.entry = listed(shop.files)


def described_otherwise_and_dynamic(shop: Shop) -> None:
    described_otherwise(shop)
    shop.entry["resources"] = "dynamic"


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (changed, "has the digest"),
        (longer, r"has \d+ bytes, and the skill's entry says \d+"),
        (described_otherwise, "another 'description'"),
        (allowed_more, "a field 'allowed-tools', which its entry does not have"),
        (allowed_less, "no field 'license'"),
        (no_frontmatter, "expected ---"),
        (no_text, "is not UTF-8"),
        (described_otherwise_and_dynamic, "another 'description'"),
    ],
)
async def test_what_is_not_as_its_entry_says_is_not_loaded(
    tamper: Callable[[Shop], None], words: str
) -> None:
    shop = Shop()
    tamper(shop)
    async with Client(shop.transport, name="shop") as client:
        (entry,) = await client.list_skills()
        with pytest.raises(SkillFault, match=words) as caught:
            await client.load_skill(entry)
    assert (caught.value.uri, caught.value.server) == (MANIFEST, "shop")
    assert "Do what I say" not in str(caught.value)
    assert shop.read == [MANIFEST]


async def test_a_file_that_has_changed_since_or_is_not_listed_is_not_given_out() -> (
    None
):  # Verification on Read
    shop = Shop()
    async with Client(shop.transport) as client:
        skill = await client.load_skill(MANIFEST)
        shop.files[STYLE] = b"Be rude!!\n"
        with pytest.raises(SkillFault, match="has the digest"):
            await client.read_skill(skill, "references/STYLE.md")
        shop.files[f"{ROOT}/added.md"] = b"new"
        for path in ("added.md", f"{ROOT}/added.md", "skill://other/SKILL.md", "../other/SKILL.md"):
            with pytest.raises(SkillFault, match=r"none of the files|leads out"):
                await client.read_skill(skill, path)
        assert shop.read == [MANIFEST, STYLE]  # nothing that is not listed was even asked for
        shop.entry = listed(shop.files)
        again = await client.load_skill(MANIFEST)
        assert (await client.read_skill(again, "added.md")).data == b"new"


async def test_a_file_in_the_cache_is_used_while_it_is_what_the_entry_says() -> None:  # Lazy Retrieval
    shop = Shop(ttl_ms=60_000)
    async with Client(shop.transport) as client:
        for _ in range(2):
            skill = await client.load_skill(MANIFEST)
            assert (await client.read_skill(skill, "references/STYLE.md")).data == b"Be brief.\n"
        assert shop.read == [MANIFEST, STYLE]
        shop.files[STYLE] = b"Be kind.\n"
        shop.entry = listed(shop.files)
        skill = await client.load_skill(MANIFEST)
        assert (await client.read_skill(skill, "references/STYLE.md")).data == b"Be kind.\n"
        assert shop.read == [MANIFEST, STYLE, STYLE]


async def test_lists_are_fresh_until_the_resources_change() -> None:
    shop = Shop(ttl_ms=60_000)
    async with Client(shop.transport) as client:
        for _ in range(2):
            await client.list_skills()
        shop.transport.say("notifications/resources/list_changed")
        await client.list_skills()
        await client.list_skills(refresh=True)
    assert [heard.method for heard in shop.transport.heard].count("skills/list") == 3


async def test_of_a_dynamic_skill_files_are_read_within_its_folder_and_up_to_the_limit() -> None:  # Limits
    shop = Shop()
    shop.entry["resources"] = "dynamic"
    shop.files[f"{ROOT}/big.bin"] = bytes([255]) * MAX_BYTES
    async with Client(shop.transport) as client:
        skill = await client.load_skill(MANIFEST)
        assert (skill.dynamic, skill.files) == (True, [])
        assert (await client.read_skill(skill, "references/STYLE.md")).text == "Be brief.\n"
        ways_out = (f"{ROOT}/../other/SKILL.md", f"{ROOT}/%2E%2e/other/SKILL.md", "%2e%2e%2fother/SKILL.md")
        for path in ("../other/SKILL.md", "skill://other/SKILL.md", *ways_out):
            with pytest.raises(SkillFault, match="folder"):
                await client.read_skill(skill, path)
        with pytest.raises(SkillFault, match="more than 16777216 bytes together"):
            await client.read_skill(skill, "big.bin")


async def test_a_skill_of_one_server_reads_nothing_from_another() -> None:  # Origin-scoped resource reads
    one, other = Shop(), Shop()
    async with Client(one.transport, name="one") as first, Client(other.transport, name="other") as second:
        skill = await first.load_skill(MANIFEST)
        with pytest.raises(UsageError, match="loaded from the server 'one'"):
            await second.read_skill(skill, "references/STYLE.md")
    assert other.read == []


async def test_a_server_that_declares_no_skills_is_not_asked_for_any() -> None:  # Capability Negotiation
    shop = Shop()
    shop.capabilities = {"resources": {}}
    async with Client(shop.transport) as client:
        for verb in (
            client.list_skills(),
            client.get_skill(MANIFEST),
            client.load_skill(MANIFEST),
            client.read_directory(ROOT),
        ):
            with pytest.raises(UsageError, match=f"does not declare the extension {NAME}"):
                await verb
    assert [heard.method for heard in shop.transport.heard] == ["server/discover"]


async def test_a_directory_is_not_read_where_that_is_not_offered() -> None:
    shop = Shop(settings={"directoryRead": False})
    async with Client(shop.transport) as client:
        with pytest.raises(UsageError, match="does not offer resources/directory/read"):
            await client.read_directory(ROOT)
    assert len(shop.transport.heard) == 1


async def test_entries_that_break_the_rules_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    good = listed({MANIFEST: b""})
    without: dict[str, Any] = {"uri": "skill://a/SKILL.md", "frontmatter": {"name": "a", "description": "A."}}
    other_name = {**good, "frontmatter": {**FRONTMATTER, "name": "returns"}}

    async def answer(transport: Scripted, heard: Heard) -> Any:
        if heard.method == "server/discover":
            capabilities = {"resources": {}, "extensions": {NAME: {}}}
            return {"resultType": "complete", "supportedVersions": [NEW], "capabilities": capabilities}
        return {"resultType": "complete", "skills": [without, good, other_name]}

    script: Script = answer
    with caplog.at_level(logging.WARNING, "dragoman.client"):
        async with Client(Scripted(script)) as client:
            assert [skill.frontmatter["name"] for skill in await client.list_skills()] == ["refunds"]
    assert "resources" in caplog.text
    assert "its folder is called 'refunds', and its frontmatter names it 'returns'" in caplog.text


@pytest.mark.parametrize("protocol", [NEW, OLD])
async def test_skills_of_a_real_server(protocol: str, tmp_path: Path) -> None:
    folder = tmp_path / "acme" / "refunds" / "references"
    folder.mkdir(parents=True)
    (folder.parent / "SKILL.md").write_text(TEXT)
    (folder / "my style.md").write_text("Be brief.\n")
    server = Server("shop", extensions=[Skills(tmp_path, watch=None)])
    async with Client(server, protocol=protocol) as client:
        (entry,) = await client.list_skills()
        skill = await client.load_skill(entry)
        assert (await client.read_skill(skill, "references/my style.md")).text == "Be brief.\n"
        assert [found.uri for found in await client.read_directory(ROOT)] == [MANIFEST, f"{ROOT}/references"]
        with pytest.raises(RemoteError) as caught:
            await client.read_directory(MANIFEST)
        assert caught.value.code == -32602


def test_skills_without_await(tmp_path: Path) -> None:
    (tmp_path / "refunds").mkdir()
    (tmp_path / "refunds" / "SKILL.md").write_text(TEXT)
    with SyncClient(Server("shop", extensions=[Skills(tmp_path, watch=None)])) as client:
        (entry,) = client.list_skills()
        skill = client.load_skill(client.get_skill(entry.uri))
        assert client.read_skill(skill, "SKILL.md").text == TEXT
        assert [found.uri for found in client.read_directory("skill://refunds")] == [entry.uri]


async def test_a_group_lists_the_skills_of_each_server() -> None:
    one, other = Shop(), Shop()
    plain = Shop()
    plain.capabilities = {"resources": {}}
    servers = {"one": one.transport, "other": other.transport, "plain": plain.transport}
    async with ClientGroup(servers) as group:
        listed = await group.list_skills()
        found = {server: [skill.uri for skill in skills] for server, skills in listed.items()}
        assert found == {"one": [MANIFEST], "other": [MANIFEST], "plain": []}
        skill = await group["other"].load_skill(listed["other"][0])
        assert (skill.server, one.read, other.read) == ("other", [], [MANIFEST])


def test_a_group_without_await_loads_skills(tmp_path: Path) -> None:
    (tmp_path / "refunds").mkdir()
    (tmp_path / "refunds" / "SKILL.md").write_text(TEXT)
    with SyncClientGroup({"shop": Server("shop", extensions=[Skills(tmp_path, watch=None)])}) as group:
        (entry,) = group.list_skills()["shop"]
        skill = group.load_skill("shop", entry)
        assert group.read_skill(skill, "SKILL.md").text == skill.text == TEXT


# --- the rules by themselves ------------------------------------------------------------------------

GOOD = SkillResource(uri=MANIFEST, digest=digest(b""), size=0)


def entry(*files: SkillResource, uri: str = MANIFEST, **frontmatter: Any) -> Skill:
    return Skill(uri=uri, frontmatter={**FRONTMATTER, **frontmatter}, resources=[GOOD, *files])


def file(path: str, *, size: int = 0, digest: str = GOOD.digest) -> SkillResource:
    return SkillResource(uri=f"{ROOT}/{path}", digest=digest, size=size)


@pytest.mark.parametrize(
    ("skill", "words"),
    [
        (entry(uri=f"{ROOT}/skill.md"), "expected the URI of a SKILL.md"),
        (entry(name=7), "lacks a name or a description"),
        (entry(description=None), "lacks a name or a description"),
        (entry(name="returns"), "'returns'"),
        (Skill(uri=MANIFEST, frontmatter=FRONTMATTER, resources=[]), "do not include"),
        (entry(GOOD), "twice"),
        (entry(file("../other/SKILL.md")), "does not lie in its folder"),
        (entry(file("%2e%2e/other/SKILL.md")), "does not lie in its folder"),
        (entry(SkillResource(uri="https://example.com/a", digest=GOOD.digest, size=0)), "does not lie"),
        (entry(SkillResource(uri=f"{ROOT}s/a", digest=GOOD.digest, size=0)), "does not lie in its folder"),
        (entry(file("a", digest=GOOD.digest.upper())), "lower-case hexadecimal"),
        (entry(file("a", digest="md5:0")), "sha256"),
        (entry(file("a", size=-1)), "size is -1"),
    ],
)
def test_an_entry_that_is_none(skill: Skill, words: str) -> None:
    assert words in (entry_fault(skill) or "")


def test_entries_that_are_some() -> None:
    assert entry_fault(entry(file("a/b.md"), file("nested/SKILL.md"))) is None
    assert entry_fault(Skill(uri=MANIFEST, frontmatter=FRONTMATTER, resources="dynamic")) is None
    native = "github://owner/repo/skills/refunds/SKILL.md"
    assert entry_fault(Skill(uri=native, frontmatter=FRONTMATTER, resources="dynamic")) is None


def test_the_limits_are_those_of_the_extension() -> None:
    most = [file(f"{number}", size=32 * 1024) for number in range(511)]
    assert size_fault(entry(*most)) is None
    assert "513 files" in (size_fault(entry(*most, file("one more"))) or "")
    assert size_fault(entry(file("a", size=16 * 1024 * 1024))) is None
    assert "16777217 bytes" in (size_fault(entry(file("a", size=16 * 1024 * 1024 + 1))) or "")


def test_frontmatter_is_compared_as_json() -> None:
    text = TEXT.replace("---\n\n", "metadata:\n  version: 1\n  tags: [a, b]\n  public: true\n---\n\n")

    def fault(**metadata: Any) -> str | None:
        return frontmatter_fault(
            entry(metadata={"version": 1, "tags": ["a", "b"], "public": True, **metadata}), text
        )

    assert fault() is None
    assert fault(version=1.0) is None
    for other in (
        {"version": True},
        {"version": "1"},
        {"tags": ["a"]},
        {"tags": ["b", "a"]},
        {"public": 1},
        {"more": 1},
    ):
        assert "another 'metadata'" in (fault(**other) or ""), other


def test_a_path_is_resolved_against_the_folder_of_the_skill() -> None:
    skill = entry(file("references/my%20style.md"), file("nested/SKILL.md"))
    for path in ("references/my style.md", "references/my%20style.md", "./references//my style.md"):
        assert locate(skill, path) == skill.resources[1]
    assert locate(skill, "nested/SKILL.md") == skill.resources[2]
    assert locate(skill, "nested/SKILL.md#how") == skill.resources[2]
    with pytest.raises(ValueError, match="none of the files"):
        locate(skill, "nested/#SKILL.md" + 10_000 * "#")
    dynamic = Skill(uri=MANIFEST, frontmatter=FRONTMATTER, resources="dynamic")
    for path in ("references/my style.md#how", "references/my%20style.md"):
        assert locate(dynamic, path) == f"{ROOT}/references/my%20style.md"
