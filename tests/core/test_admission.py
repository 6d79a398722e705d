"""Which requests are let in, by which revision, and what the others are told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.errors import Refusal
from dragoman.jsonrpc.message import Request, decode
from dragoman.model import CallToolParams, ClientCapabilities, Implementation
from dragoman.protocol.admission import admit
from dragoman.protocol.link import Link, Session
from dragoman.protocol.reading import READING
from dragoman.revisions import BY_VERSION, LATEST, REVISIONS
from dragoman.revisions.base import Caller, Revision

NS = "io.modelcontextprotocol/"
META = {
    NS + "protocolVersion": "2026-07-28",
    NS + "clientInfo": {"name": "c", "version": "1"},
    NS + "clientCapabilities": {"elicitation": {}},
}


class Nowhere:
    """A channel for calls that are admitted and never run."""

    congested = False

    def notify(self, method: str, params: object) -> None:
        raise AssertionError

    async def ask(self, method: str, params: object) -> Any:
        raise AssertionError


def request(method: str, params: Any = None, id_: Any = 1) -> Request:
    return Request(method, id_, Raw(b"") if params is None else Raw(msgspec.json.encode(params)))


def session(version: str) -> Link:
    caller = Caller(Implementation(name="old", version="1"), ClientCapabilities(sampling={}))
    return Link(session=Session(BY_VERSION[version], caller))


def let_in(
    method: str,
    params: Any = None,
    *,
    link: Link | None = None,
    carrier: Revision | None = None,
    id_: Any = 1,
) -> Any:
    return admit(request(method, params, id_), link or Link(), channel=Nowhere(), carrier=carrier)


def refused(method: str, params: Any = None, **more: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        let_in(method, params, **more)
    return caught.value


def test_a_stateless_request_says_who_calls_and_leaves_no_trace() -> None:
    link = Link()
    call = let_in("tools/call", {"name": "add", "arguments": {"a": 1}, "_meta": META}, link=link)
    assert call.revision is LATEST
    assert isinstance(call.params, CallToolParams)
    assert call.params.name == "add"
    assert bytes(call.params.arguments) == b'{"a":1}'
    assert call.caller.info.name == "c"
    assert call.caller.capabilities.elicitation == {}
    assert link.session is None


def test_a_session_lends_its_caller_to_later_requests() -> None:
    call = let_in("tools/list", link=session("2025-06-18"))
    assert call.revision.version == "2025-06-18"
    assert call.caller.info.name == "old"


def test_both_kinds_of_request_are_served_side_by_side_on_one_connection() -> None:
    link = session("2025-11-25")
    assert let_in("tools/list", {"_meta": META}, link=link).revision is LATEST
    assert let_in("tools/list", link=link).revision.version == "2025-11-25"


def test_a_session_s_caller_never_answers_for_a_stateless_request() -> None:
    call = let_in("tools/list", {"_meta": META}, link=session("2025-11-25"))
    assert call.caller.info.name == "c"
    assert call.caller.capabilities.sampling is msgspec.UNSET


@pytest.mark.parametrize("version", [r.version for r in REVISIONS if r.handshake])
@pytest.mark.parametrize("method", ["initialize", "ping"])
def test_the_handshake_and_ping_are_open_to_all(version: str, method: str) -> None:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    assert let_in(method, params if method == "initialize" else None).method.name == method


def test_a_request_before_the_handshake_is_told_exactly_that() -> None:
    exc = refused("tools/list")
    assert exc.code == -32600
    assert exc.message.startswith("Not initialized")


@pytest.mark.parametrize("id_", [None, 1.5, 1.0])
def test_ids_that_json_rpc_has_and_mcp_has_not(id_: Any) -> None:
    exc = refused("ping", id_=id_)
    assert exc.code == -32600
    assert "id must be a string or an integer" in exc.message


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities"])
@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
@pytest.mark.parametrize("carrier", [None, LATEST])
def test_a_stateless_request_without_a_required_member_is_malformed(
    missing: str, method: str, carrier: Revision | None
) -> None:
    meta = {key: value for key, value in META.items() if key != NS + missing}
    params = {"name": "add", "_meta": meta} if method == "tools/call" else {"_meta": meta}
    exc = refused(method, params, carrier=carrier)
    assert exc.code == -32602
    assert NS + missing in exc.message
    assert exc.data == {"missing": NS + missing}


def test_client_info_is_optional() -> None:
    meta = {key: value for key, value in META.items() if key != NS + "clientInfo"}
    assert let_in("server/discover", {"_meta": meta}).caller.info is msgspec.UNSET


def test_discover_without_meta_is_a_stateless_request_that_says_too_little() -> None:
    assert refused("server/discover").code == -32602


@pytest.mark.parametrize("version", ["v999.0.0", "1900-01-01", "", "2025-11-25"])
def test_a_revision_that_requests_cannot_name_is_refused_with_those_they_can(version: str) -> None:
    exc = refused("tools/list", {"_meta": META | {NS + "protocolVersion": version}})
    assert exc.code == -32022
    assert exc.data == {"supported": ["2026-07-28"], "requested": version}


def test_an_unsupported_revision_outranks_params_of_the_wrong_shape() -> None:
    exc = refused("tools/call", {"name": 5, "_meta": META | {NS + "protocolVersion": "v999"}})
    assert exc.code == -32022


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "unknown/method",
    ],
)
def test_what_2026_07_28_does_not_have_does_not_exist_there(method: str) -> None:
    exc = refused(method, {"_meta": META}, carrier=LATEST)
    assert exc.code == -32601
    assert method in exc.message


def test_initialize_on_a_stateless_revision_names_what_is_supported() -> None:
    assert "2026-07-28" in refused("initialize", {"_meta": META}).message


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
def test_what_older_revisions_do_not_have_is_never_served_from_a_session(method: str) -> None:
    assert (
        refused(method, link=session("2025-11-25")).code == -32602
    )  # it lacks `_meta`: it is a stateless request


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({"name": 5}, "params.name"),
        ({}, "name"),
        ({"name": "x", "inputResponses": []}, "params.inputResponses"),
        ([1, 2], "params"),
        ({"name": "x", "_meta": 3}, "_meta"),
        ({"name": "x", "_meta": {"progressToken": 1.5}}, "_meta.progressToken"),
        ({"name": "x", "_meta": {"progressToken": None}}, "_meta.progressToken"),
        ({"name": "x", "_meta": META | {NS + "clientCapabilities": []}}, NS + "clientCapabilities"),
        ({"name": "x", "_meta": META | {NS + "clientInfo": {"name": "c"}}}, NS + "clientInfo"),
        ({"name": "x", "_meta": META | {NS + "logLevel": "loud"}}, NS + "logLevel"),
        ({"name": "x", "_meta": META | {NS + "protocolVersion": 2026}}, NS + "protocolVersion"),
    ],
)
def test_params_of_the_wrong_shape_are_named(params: Any, place: str) -> None:
    exc = refused("tools/call", params, link=session("2025-11-25"))
    assert exc.code == -32602
    assert place in exc.message


def test_ids_are_kept_as_they_are() -> None:
    assert let_in("ping", id_="7").id == "7"
    assert let_in("ping", id_=7).id == 7


# What is said in the same bytes is read once ------------------------------------------------------


def said(name: str, **more: Any) -> dict[str, Any]:
    return {"_meta": META | {NS + "clientInfo": {"name": name, "version": "1"}} | more}


def test_clients_that_take_turns_are_told_apart() -> None:
    names = ["a", "b", "a", "a", "c", "b"]
    assert [let_in("tools/list", said(name)).caller.info.name for name in names] == names


def test_more_clients_than_are_remembered_are_told_apart() -> None:
    names = [f"client {number}" for number in range(200)] * 2
    assert [let_in("tools/list", said(name)).caller.info.name for name in names] == names


def test_what_belongs_to_one_request_is_its_own() -> None:
    for token in (1, 2, 1, "1"):
        call = let_in("tools/list", said("a", progressToken=token))
        assert (call.meta.progress_token, type(call.meta.progress_token)) == (token, type(token))
        assert let_in("tools/list", said("a")).meta.progress_token is msgspec.UNSET


def test_a_refused_request_is_refused_again_however_often_it_comes() -> None:
    wrong = {"_meta": META | {NS + "protocolVersion": "1999-01-01"}}
    lacking = {"_meta": {NS + "protocolVersion": "2026-07-28"}}
    for _ in range(3):
        let_in("tools/list", said("a"))
        assert refused("tools/list", wrong).code == -32022
        assert refused("tools/list", lacking).data == {"missing": NS + "clientCapabilities"}


def test_a_meta_that_names_no_revision_is_read_by_whoever_is_connected() -> None:
    plain = {"_meta": {"progressToken": 5}}
    for version in ("2025-06-18", "2025-11-25"):
        call = let_in("tools/list", plain, link=session(version))
        assert (call.revision.version, call.caller.info.name) == (version, "old")
    assert refused("tools/list", plain).code == -32600


def test_params_that_came_with_the_envelope_are_let_in_as_those_that_did_not() -> None:
    params = {"name": "add", "arguments": {"a": 1}, "_meta": META}
    frame = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    plain = let_in("tools/call", params)
    let_in("tools/call", params)  # the second of its method: from now on it is read with its envelope
    message = decode(frame, known=READING.envelope)
    assert isinstance(message, Request)
    assert isinstance(message.params, CallToolParams)
    whole = admit(message, Link(), channel=Nowhere())
    assert whole.params == plain.params
    assert (whole.id, whole.method, whole.revision) == (plain.id, plain.method, plain.revision)
    assert whole.caller == plain.caller
