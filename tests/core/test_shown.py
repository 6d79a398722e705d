"""What a prompt and a failed test show of records: what is there, and not a screenful of it."""

from __future__ import annotations

import base64

from dragoman.client import OtherContent, ToolResult
from dragoman.model import (
    Annotations,
    EmbeddedResource,
    Icon,
    ImageContent,
    Params,
    TextContent,
    TextResourceContents,
    Tool,
)

PICTURE = base64.b64encode(bytes(range(256)) * 40).decode()


def test_members_that_are_absent_are_left_out() -> None:
    assert repr(Tool(name="t", input_schema={"type": "object"})) == (
        "Tool(name='t', input_schema={'type': 'object'})"
    )
    assert repr(Params()) == "Params()"
    noted = TextContent(text="x", annotations=Annotations(priority=1))
    assert repr(noted) == "TextContent(text='x', annotations=Annotations(priority=1))"
    inner = EmbeddedResource(resource=TextResourceContents(uri="a:b", text="y"))
    assert repr(inner) == "EmbeddedResource(resource=TextResourceContents(uri='a:b', text='y'))"


def test_base64_is_cut_and_its_length_told() -> None:
    said = repr(ImageContent(data=PICTURE, mime_type="image/png"))
    assert (
        said == f"ImageContent(data='{PICTURE[:24]}…' ({len(PICTURE):,} characters), mime_type='image/png')"
    )
    assert len(repr(Icon(src="data:image/png;base64," + PICTURE))) < 100


def test_prose_is_shown_further_than_base64() -> None:
    sentence = "All work and no play makes for a long log. " * 4
    assert repr(TextContent(text=sentence)) == f"TextContent(text={sentence!r})"
    said = repr(TextContent(text=sentence * 100))
    assert said.endswith("…' (17,200 characters))")
    assert len(said) < 260


def test_a_result_shows_what_it_has() -> None:
    assert repr(ToolResult(content=[TextContent(text="5")])) == "ToolResult(content=[TextContent(text='5')])"
    null = ToolResult(content=[], structured=None, has_structured=True)
    assert repr(null) == "ToolResult(content=[], structured=None)"
    bad = ToolResult(content=[], is_error=True, invalid=("why",), meta={"k": 1})
    assert repr(bad) == "ToolResult(content=[], is_error=True, invalid=('why',), meta={'k': 1})"


def test_long_and_deep_values_are_cut() -> None:
    said = repr(
        ToolResult(content=[], structured={"rows": [{"n": n} for n in range(1000)]}, has_structured=True)
    )
    assert "{'n': 19}, … 980 more]" in said
    assert len(said) < 300
    deep: list[object] = []
    deep.append(deep)
    assert repr(OtherContent("hologram", deep)) == f"OtherContent(type='hologram', raw={'[' * 6}…{']' * 6})"
