"""What a search among deferred tools finds."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.host.models.base import Shown
from dragoman.host.search import ToolIndex, words
from dragoman.host.tokens import cost, estimate
from dragoman.model import Tool


def shown(name: str, description: str = "", **properties: Any) -> Shown:
    tool = Tool(
        name=name.rpartition("__")[2],
        description=description,
        input_schema={"type": "object", "properties": properties},
    )
    return Shown(name, tool)


TOOLS = [
    shown("mcp__orders__lookup_order", "Looks up an order by its number.", order_id={"type": "string"}),
    shown("mcp__orders__refundOrder", "Gives the money back."),
    shown("mcp__weather__get_weather", "도시의 날씨를 알려 줍니다.", city={"description": "도시 이름"}),
    shown("mcp__mail__send_message", "Sends an e-mail to somebody.", recipient={"description": "address"}),
    shown("mcp__kr__find", "주문을 조회합니다."),
    shown("mcp__jp__find", "東京の天気を調べます。"),
    shown("mcp__th__find", "ค้นหาคำสั่งซื้อตามหมายเลข"),
    shown("mcp__files__HTTPFetch", "Gets a page."),
]


def names(query: str, **more: Any) -> list[str]:
    return [found.tool.name for found in ToolIndex(TOOLS).search(query, **more)]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("look up an order", "mcp__orders__lookup_order"),
        ("refund", "mcp__orders__refundOrder"),
        ("refund orders", "mcp__orders__refundOrder"),
        ("money", "mcp__orders__refundOrder"),
        ("recipient address", "mcp__mail__send_message"),
        ("날씨", "mcp__weather__get_weather"),
        ("날씨가 어때", "mcp__weather__get_weather"),
        ("주문 조회", "mcp__kr__find"),
        ("天気", "mcp__jp__find"),
        ("คำสั่งซื้อ", "mcp__th__find"),
        ("http", "mcp__files__HTTPFetch"),
        ("EMAIL e-mail", "mcp__mail__send_message"),
        ("refu", "mcp__orders__refundOrder"),  # no word of its own: the beginning of one
    ],
)
def test_the_best_one_comes_first(query: str, best: str) -> None:
    assert names(query)[0] == best


def test_nothing_fits() -> None:
    assert names("zzz") == []
    assert names("") == []
    assert ToolIndex([]).search("order") == []


def test_no_more_than_was_asked_for() -> None:
    assert len(names("find")) == 3
    assert len(names("find", limit=2)) == 2


def test_equals_come_by_name_and_the_order_of_tools_does_not_matter() -> None:
    same = [shown(f"t{n}", "the same words") for n in range(9)]
    expected = [f"t{n}" for n in range(5)]
    for seed in range(5):
        mixed = random.Random(seed).sample(same, len(same))
        assert [found.tool.name for found in ToolIndex(mixed).search("same words")] == expected


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    tools = [shown(f"t{n}", "reads a file") for n in range(20)] + [shown("z", "reads a ledger")]
    assert ToolIndex(tools).search("file ledger")[0].tool.name == "z"


def test_a_pattern() -> None:
    def match(pattern: str) -> list[str]:
        return [found.tool.name for found in ToolIndex(TOOLS).match(pattern)]

    assert match("order$") == ["mcp__orders__lookup_order"]
    assert match("(?i)order") == ["mcp__orders__lookup_order", "mcp__orders__refundOrder"]
    assert match("^city$") == ["mcp__weather__get_weather"]
    with pytest.raises(UsageError, match="expected a regular expression"):
        match("(")
    with pytest.raises(UsageError, match="at most 200 characters"):
        match("a" * 201)


def test_a_pattern_that_would_run_for_ever_does_not() -> None:
    tools = [shown("a" * 50 + "!")]
    assert ToolIndex(tools).match("^(a+)+$") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["get", "user", "name"]),
        ("XMLHttpRequest", ["xml", "http", "request"]),
        ("get-user_names", ["get", "user", "name"]),
        ("queries class status", ["query", "class", "status"]),
        ("서울", ["서울"]),
        ("날씨를", ["날씨", "씨를"]),
        ("東京", ["東京", "東", "京"]),
        ("v2의", ["v2", "의"]),
        ("ＡＢＣ", ["abc"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert list(words(text)) == expected


@given(st.text(), st.text())
def test_any_text_is_searched(name: str, query: str) -> None:
    index = ToolIndex([shown(name, query)])
    assert len(index.search(query)) <= 1
    if list(words(name)):
        assert index.search(name)[0].tool.name == name


# What these cost by two published vocabularies (the `tekken` of mistral-common 1.13.1, `qwen` of dashscope).
@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Looks up an order by its number. Returns items, quantity, price and state.", 16, 16),
        ('{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}', 19, 21),
        ("주문 번호로 주문을 조회합니다. 결과에는 상품, 수량, 가격, 배송 상태가 포함됩니다.", 28, 33),
    ],
)
def test_tokens_are_about_what_models_count(text: str, least: int, most: int) -> None:
    assert least * 0.75 <= estimate(text) <= most * 1.35


def test_tokens_of_nothing_and_of_a_definition() -> None:
    assert estimate("") == 0
    small, large = shown("a"), shown("a", "Adds two numbers. " * 20)
    assert 0 < cost("a", small.tool) < cost("a", large.tool)


@given(st.text(), st.text())
def test_more_text_costs_no_less(one: str, other: str) -> None:
    assert estimate(one) >= 0
    assert estimate(one + " " + other) <= estimate(one) + estimate(other) + 3
