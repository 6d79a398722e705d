"""URI templates, read backwards: RFC 6570 says what a client makes of one, this what a server reads in it."""

from __future__ import annotations

import time
from urllib.parse import quote

import pytest

from dragoman.errors import UsageError
from dragoman.protocol.uritemplate import MAX_URI, UriTemplate, encoded


def match(template: str, uri: str) -> dict[str, str] | None:
    return UriTemplate(template).match(uri)


# The expansions of RFC 6570, section 1.2 and 3.2, for one value each, read back.
@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("x:{var}", "x:value", {"var": "value"}),
        ("x:{hello}", "x:Hello%20World%21", {"hello": "Hello World!"}),
        ("x:{+hello}", "x:Hello%20World!", {"hello": "Hello World!"}),
        ("x:{+path}/here", "x:foo/bar/here", {"path": "foo/bar"}),
        ("x:map?{x,y}", "x:map?1024,768", {"x": "1024", "y": "768"}),
        ("x:{x,hello,y}", "x:1024,Hello%20World%21,768", {"x": "1024", "hello": "Hello World!", "y": "768"}),
        ("x:{+path,x}/here", "x:foo/bar,1024/here", {"path": "foo/bar", "x": "1024"}),
        ("x:a{/var}", "x:a/value", {"var": "value"}),
        ("x:a{/var,x}/here", "x:a/value/1024/here", {"var": "value", "x": "1024"}),
        ("x:a{?x,y}", "x:a?x=1024&y=768", {"x": "1024", "y": "768"}),
        ("x:a{?x,y,empty}", "x:a?x=1024&y=768&empty=", {"x": "1024", "y": "768", "empty": ""}),
        ("x:a?fixed=yes{&x}", "x:a?fixed=yes&x=1024", {"x": "1024"}),
        ("x:a{?x}{&y}", "x:a?x=1&y=2", {"x": "1", "y": "2"}),
        ("x:a{?half}", "x:a?half=50%25", {"half": "50%"}),
    ],
)
def test_what_the_rfc_expands_is_read_back(template: str, uri: str, found: dict[str, str]) -> None:
    assert match(template, uri) == found


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        ("o://{a}{/b,c}", "o://1", {"a": "1"}),
        ("o://{a}{/b,c}", "o://1/2", {"a": "1", "b": "2"}),
        ("o://all{?q,page}", "o://all", {}),
        ("o://all{?q,page}", "o://all?page=2", {"page": "2"}),
        ("o://all{?q,page}", "o://all?page=2&q=a", {"q": "a", "page": "2"}),
        ("o://all?f=1{&q}", "o://all?f=1", {}),
    ],
)
def test_what_a_uri_need_not_give_may_be_absent(template: str, uri: str, found: dict[str, str]) -> None:
    assert match(template, uri) == found


@pytest.mark.parametrize(
    ("template", "uri", "found"),
    [
        # Where several readings fit: {x} takes as little, {+x} as much as it can.
        ("o://{a}-{b}", "o://x-y-z", {"a": "x", "b": "y-z"}),
        ("o://{+path}/{name}", "o://a/b/c", {"path": "a/b", "name": "c"}),
        ("o://{+path}.{ext}", "o://a/b.tar.gz", {"path": "a/b.tar", "ext": "gz"}),
        # A first reading that leads nowhere is not the last.
        ("o://{+p}/x/{i}", "o://a/x/b/x/c", {"p": "a/x/b", "i": "c"}),
        ("o://{a}ab", "o://abab", {"a": "ab"}),
        ("o://{a}/x{/b}", "o://1/x/x", {"a": "1", "b": "x"}),
    ],
)
def test_several_readings(template: str, uri: str, found: dict[str, str]) -> None:
    assert match(template, uri) == found


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("orders://{id}", "orders://"),
        ("orders://{id}", "orders://a/b"),
        ("orders://{id}", "order://a"),
        ("orders://{id}", "orders://a?b=c"),
        ("orders://{id}", "orders://a#b"),
        ("orders://{id}/items", "orders://a"),
        ("orders://{id}/items", "orders:///items"),
        ("orders://all{?q}", "orders://all?z=1"),
        ("orders://all{?q}", "orders://all?q=1&z=1"),
        ("orders://all{?q}", "orders://all?q=1&q=2"),
        ("orders://all{?q}", "orders://all?q"),
        ("orders://all{?q}", "orders://all?"),
        ("orders://all?f=1{&q}", "orders://all?f=12"),
        ("orders://all?f=1{&q}", "orders://all?q=1"),
    ],
)
def test_what_does_not_fit(template: str, uri: str) -> None:
    assert match(template, uri) is None


@pytest.mark.parametrize(
    "value",
    [
        "..", ".", "%2e%2e", "%2E.", "a%2fb", "a%2Fb", "%2fetc%2fpasswd", "..%5c..%5cwindows", "a%5cb",
        "a\\b", "a%00", "%00",
    ],
)  # fmt: skip
def test_a_variable_is_no_way_out_of_its_segment(value: str) -> None:
    assert match("files://base/{name}", f"files://base/{value}") is None
    assert match("files://base/{name}.txt", f"files://base/{value}.txt") is None


@pytest.mark.parametrize(
    "path",
    [
        "..", "../etc/passwd", "a/../../b", "a/..", "%2e%2e/b", "a/%2E%2e/b", "a%2f..%2fb", "./a", "a/./b",
        "/etc/passwd", "%2fetc/passwd", "a\\..\\b", "a%5c..%5cb", "a%00b",
    ],
)  # fmt: skip
def test_a_path_is_no_way_out_of_its_folder(path: str) -> None:
    assert match("files://base/{+path}", f"files://base/{path}") is None


def test_values_are_decoded_once() -> None:
    assert match("files://{name}", "files://%252e%252e") == {"name": "%2e%2e"}
    assert match("files://{+path}", "files://a/%252e%252e/b") == {"path": "a/%2e%2e/b"}
    assert match("files://{+path}", "files://a%2Fb") == {"path": "a/b"}  # a slash is what it may hold
    assert match("files://x{?q}", "files://x?q=%2541+b") == {"q": "%41+b"}


@pytest.mark.parametrize("value", ["%", "%4", "%zz", "a%", "%ff", "%c3%28", "%u0041"])
def test_what_is_not_percent_encoding_fits_nothing(value: str) -> None:
    assert match("o://{a}", f"o://{value}") is None
    assert match("o://x{?q}", f"o://x?q={value}") is None


def test_text_beyond_ascii_is_the_same_encoded_or_not() -> None:
    for uri in ("o://서울/é", "o://%EC%84%9C%EC%9A%B8/%C3%A9", "o://%ec%84%9c%ec%9a%b8/%c3%a9"):
        assert match("o://서울/{a}", uri) == {"a": "é"}
    assert encoded("o://é b?<") == "o://%C3%A9%20b?%3C"
    assert encoded(encoded("o://é")) == encoded("o://é")


@pytest.mark.parametrize(
    "value", ["a b", "é", "100%", "a/b", "a&b=c", "A+B", "~._-", "서울", "%41", "a,b;c:d@e"]
)
def test_any_value_that_a_client_writes_into_a_query_comes_back(value: str) -> None:
    uri = f"o://x?q={quote(value, safe='')}"
    assert match("o://x{?q}", uri) == {"q": value}


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{x}", "scheme"),
        ("/orders/{x}", "scheme"),
        ("{+url}", "scheme"),
        ("1o://{x}", "scheme"),
        ("o://{x", "without its }"),
        ("o://x}", "without its {"),
        ("o://{}", "names no variable"),
        ("o://{a b}", "names no variable"),
        ("o://{a,}", "names no variable"),
        ("o://{x*}", r"write \{\+x\}"),
        ("o://{x:3}", "prefix"),
        ("o://{#x}", "not read here"),
        ("o://{.x}", "not read here"),
        ("o://{;x}", "not read here"),
        ("o://{x}/{x}", "twice"),
        ("o://{x}{y}", "nothing tells"),
        ("o://{+x}{y}", "nothing tells"),
        ("o://{?q}/x", "at the end"),
        ("o://{?q}{x}", "at the end"),
        ("o://{?q}{?r}", "stands once"),
        ("o://{x}?a={y}{&z}", "plain text"),
    ],
)
def test_what_cannot_be_read_backwards_is_refused_with_the_reason(template: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        UriTemplate(template)


def test_a_template_knows_its_variables() -> None:
    template = UriTemplate("o://{a}/{+b}{/c}{?q,page}")
    assert template.variables == ("a", "b", "c", "q", "page")
    assert template.optional == {"c", "q", "page"}


@pytest.mark.parametrize(
    "template", ["o://" + "-".join(f"{{v{n}}}" for n in range(16)) + "!", "o://{+a}x{+b}x{+c}x"]
)
def test_hostile_uris_take_no_longer_than_long_ones(template: str) -> None:
    matched = UriTemplate(template)
    start = time.process_time()
    for filler in ("-", "x", "-x", "%2d"):
        matched.match("o://" + filler * (MAX_URI // len(filler) - 10) + "?")
    # With backtracking these are thousands of years.
    assert time.process_time() - start < 5
    assert matched.match("o://" + "a" * MAX_URI) is None
