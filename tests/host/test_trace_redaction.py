"""Nothing secret is on record: by name, by path, by look, by value, in headers, and before hashing."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import UsageError
from dragoman.host.trace import HIDDEN, Redaction, Trace
from dragoman.host.trace.redaction import DEEP
from dragoman.protocol.secrets import FORMS

SECRETS = {
    "bearer": "Bearer abcdEFGH1234",
    "basic": "basic dXNlcjpwYXNzd29yZA==",
    "openai": "sk-" + "a1" * 12,
    "stripe": "sk_live_" + "a1" * 12,
    "github": "ghp_" + "A1" * 18,
    "github fine": "github_pat_" + "A1" * 18,
    "gitlab": "glpat-" + "A1" * 10,
    "npm": "npm_" + "A1" * 18,
    "hugging face": "hf_" + "Ab" * 16,
    "slack": "xoxb-" + "123456789012",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "google": "AIza" + "a" * 35,
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE-x\nabc\n-----END RSA PRIVATE KEY-----",
    "cut key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIB",
    "url": "https://user:hunter22@example.com/x",
    "query": "https://example.com/x?access_token=hunter22",
    "json": '{"client_secret": "hunter22"}',
    "header": "GET /\nAuthorization: Digest hunter22\nHost: x",
    "cookie": "set-cookie: sid=hunter22; Path=/",
    "environment": "HOME=/root\nAWS_SECRET_ACCESS_KEY=hunter22\nTERM=x",
    "assignment": "export DB_PASSWORD = hunter22",
    "quoted assignment": "export DB_PASSWORD='hunter22'",
    "text in a text": json.dumps({"body": json.dumps({"client_secret": "hunter22"})}),
    "text in a text in a text": json.dumps([json.dumps([json.dumps({"api_key": "hunter22"})])]),
    "number in a text": json.dumps({"body": json.dumps({"pin_token": 12345678901})}),
    "headers in a text": json.dumps({"sent": "GET / HTTP/1.1\r\nX-Api-Key: hunter22\r\nHost: x"}),
    "python": "{'password': 'hunter22'}",
    "refusal": 'Invalid arguments for x:\n- login.password: expected a longer string; received "hunter22"',
    "refusal in a text": json.dumps({"text": '- secret.pin: expected a string; received "hunter22\\n"'}),
    "yaml": "db:\n  password: hunter22\n",
    "option": "psql --db-password hunter22 -h x",
    "user": "curl -u me:hunter22 https://example.com",
    "signed": "https://example.com/x?X-Amz-Signature=hunter22&y=1",
}
PARTS = [
    "hunter22",
    "abcdEFGH1234",
    "dXNlcjpw",
    "a1a1",
    "A1A1",
    "AbAb",
    "1234567890",
    "IOSFODNN",
    "aaaa",
    "MIIE",
    "c2ln",
]


@pytest.mark.parametrize("kind", SECRETS)
def test_common_forms_of_secrets_in_texts_are_taken_out(kind):
    text = f"before {SECRETS[kind]}" if "\n" not in SECRETS[kind] else SECRETS[kind]
    if kind == "cookie":
        text = SECRETS[kind]
    shown = Redaction()({"block": {"content": [{"type": "text", "text": text}]}})["block"]["content"][0][
        "text"
    ]
    assert HIDDEN in shown
    assert not any(part in shown for part in PARTS)


def test_the_marks_of_a_form_are_in_what_it_finds():
    """The quick look for marks may not pass over what the pattern would find."""
    redaction = Redaction()
    for text in SECRETS.values():
        assert HIDDEN in redaction.text(text + " " * 5000)  # a long text takes another way
    assert all(mark == mark.lower() for _, marks in FORMS for mark in marks)


def test_plain_texts_stay_as_they_are():
    texts = [
        "Order A-1042 is on its way.",
        "token",
        "the secret garden",
        "a basic idea",
        "https://example.com/a?b=c",
        "Password: at least 8 letters",
        "docker run -u 1000:1000 --secret-free x",
        '{"token": null, "secret": false, "key": "A-1042"}',
    ]
    line = {"block": {"input": {"text": texts, "tokens": 7, "author": "x", "max_tokens": 5}}}
    assert Redaction()(line) == line


def test_names_paths_patterns_values_and_headers_of_ones_own():
    redaction = Redaction(
        ["iban"],
        paths=["$.block.input.card.number", "$..pin"],
        patterns=[r"K-(?P<secret>\d+)"],
        values=["Anna"],
        headers=["X-Sig"],
    )
    line = {
        "kind": "tool_use",
        "block": {
            "input": {
                "card": {"number": "4111 1111", "kind": "visa"},
                "deep": [{"pin": 1234}],
                "IBAN": "DE02",
                "text": "K-77 for Anna\nX-Sig: abc\nend",
            }
        },
    }
    assert redaction(line)["block"]["input"] == {
        "card": {"number": HIDDEN, "kind": "visa"},
        "deep": [{"pin": HIDDEN}],
        "IBAN": HIDDEN,
        "text": f"K-{HIDDEN} for {HIDDEN}\nX-Sig: {HIDDEN}\nend",
    }


def test_headers_as_pairs_and_as_objects():
    pairs = [["Authorization", "x1"], ["Accept", "text/html"]]
    objects = [{"name": "Cookie", "value": "sid=1"}, {"name": "Accept", "value": "x"}]
    assert Redaction()({"a": pairs, "b": objects}) == {
        "a": [["Authorization", HIDDEN], ["Accept", "text/html"]],
        "b": [{"name": "Cookie", "value": HIDDEN}, {"name": "Accept", "value": "x"}],
    }


def test_what_was_found_under_a_name_is_taken_out_of_what_the_server_says_of_it():
    redaction = Redaction(paths=["$..card"])
    redaction({"input": {"password": "correct horse", "card": "4111-1111-1111"}})
    told = redaction({"text": 'no user with "correct horse" and 4111-1111-1111'})
    assert told == {"text": f'no user with "{HIDDEN}" and {HIDDEN}'}


@pytest.mark.parametrize(
    "given",
    [
        {"args": ["--api-key", "hunter22"]},
        {"env": [{"key": "API_KEY", "value": "hunter22"}]},
        {"passwords": ["hunter22"]},
        {"credentials": {"user": "somebody", "what": "hunter22"}},
    ],
)
def test_secrets_in_lists_and_objects_are_known_again(given):
    line = Redaction()({"input": given, "text": "somebody has hunter22"})
    assert "hunter22" not in json.dumps(line)
    assert line["text"] == f"somebody has {HIDDEN}"


def test_a_word_under_a_secrets_name_does_not_take_it_out_of_every_text():
    redaction = Redaction()
    assert redaction({"cookie": "required"}) == {"cookie": HIDDEN}
    assert redaction({"text": "a name is required"}) == {"text": "a name is required"}


def test_a_path_below_what_is_hidden_already_is_nothing():
    assert Redaction(paths=["$.password.inner"])({"password": {"inner": 1}}) == {"password": HIDDEN}


def test_a_wrong_path_or_pattern_is_told():
    with pytest.raises(UsageError, match=r"'\$\[' is no JSONPath query \(RFC 9535\): "):
        Redaction(paths=["$["])
    with pytest.raises(UsageError, match=r"pattern '\(': "):
        Redaction(patterns=["("])


def test_the_hash_is_of_the_line_without_its_secrets(tmp_path):
    trace = Trace(tmp_path / "t.jsonl")
    trace.begin().tool_use({"name": "n", "input": {"password": "hush"}}, name=None, faults=(), decision=None)
    assert "hush" not in (tmp_path / "t.jsonl").read_text()


def test_long_values_are_redacted_before_they_go_beside(tmp_path):
    trace = Trace(tmp_path / "t.jsonl")
    text = "x" * 100_000 + " Bearer abcdEFGH1234"
    trace.begin().result({"content": [{"type": "text", "text": text}]}, by="server")
    (kept,) = (tmp_path / "t.jsonl.spill").iterdir()
    assert "abcdEFGH1234" not in kept.read_text()
    assert kept.read_text().endswith(HIDDEN)


def test_names_of_members_that_look_like_secrets_are_taken_out_too():
    assert Redaction()({"map": {"ghp_" + "A1" * 18: 1}}) == {"map": {HIDDEN: 1}}


@pytest.mark.parametrize(
    "piece",
    [
        *("eyJ-", "-----BEGIN PRIVATE KEY-----", "bearer ", "://a:b", "token=", "token ", "authorization:"),
        *("password: expected ", "- password: expected x; received ", "a.", "password"),
        *("\\", '"', '\\"', "--", "--token ", "token: ", "- ", "\\n", "-u a:", "?a-", '"token":', "A_"),
        *('"token":"', "PASSWORD", "set-cookie:", "_", "\n", " ", "a", "github_pat_", "xoxb-", "://x:a:"),
    ],
)
def test_texts_of_a_server_cannot_hold_the_host_up(piece):
    text = piece * (1_000_000 // len(piece))
    begun = time.process_time()
    Redaction().text(text)
    assert time.process_time() - begun < 5


def test_values_that_are_nested_without_end_are_cut():
    value: object = "bottom"
    for _ in range(5000):
        value = [value]
    lines: list[bytes] = []
    Trace(lines.append).begin().result({"content": value}, by="server")
    assert DEEP in lines[0].decode()


def test_what_json_has_no_form_for_is_written_all_the_same():
    lines: list[bytes] = []
    block = {"name": "n\ud800", "input": {"when": object, "many": 10**30, "nan": float("nan"), "set": {1}}}
    Trace(lines.append).begin().tool_use(block, name=None, faults=(), decision=None)
    assert json.loads(lines[0])["block"]["name"] == "n\\ud800"
    assert json.loads(lines[0])["block"]["input"]["many"] == 10**30


@given(
    st.recursive(st.text() | st.integers() | st.none(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))
)
def test_redacting_twice_changes_nothing_more(value):
    redaction = Redaction()
    once = redaction({"value": value})
    assert redaction(once) == once
