"""The rules of "Backward Compatibility" (2026-07-28: versioning, stdio, Streamable HTTP) as tables.

Each case tells the machine what came back, step by step, and names what it must say to send next.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from dragoman.jsonrpc.message import ErrorObject
from dragoman.model import DiscoverResult, InitializeResult
from dragoman.protocol.negotiation import GiveUp, Negotiator, Ready, Send, Step
from dragoman.revisions import BY_VERSION, REVISIONS

NEW, OLD = "2026-07-28", "2025-11-25"


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def error(code: int, data: Any = UNSET) -> ErrorObject:
    return ErrorObject(code, "no", UNSET if data is UNSET else raw(data))


def supported(*versions: str, code: int = -32022) -> ErrorObject:
    return error(code, {"supported": list(versions), "requested": NEW})


DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [NEW],
    "capabilities": {"tools": {}},
    "ttlMs": 0,
    "cacheScope": "private",
}


def discovered(**changes: Any) -> Raw:
    return raw({name: value for name, value in {**DISCOVERED, **changes}.items() if value is not None})


def initialized(version: str = OLD) -> Raw:
    return raw({"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})


def machine(protocol: str = "auto", **options: Any) -> Negotiator:
    revisions = REVISIONS if protocol == "auto" else (BY_VERSION[protocol],)
    return Negotiator(revisions, **{"shared": True, **options})


def brief(step: Step) -> Any:
    """A step in one word: ("discover", version), ("initialize", version), ("ready", version) or "give up"."""
    match step:
        case Send(method=method, version=version):
            return (method.removeprefix("server/"), version)
        case Ready(revision=revision):
            return ("ready", revision.version)
        case GiveUp():
            return "give up"


DISCOVER, INITIALIZE = ("discover", NEW), ("initialize", OLD)


def test_the_probe_comes_first_and_on_a_shared_channel_has_a_time() -> None:
    assert machine(probe_timeout=3.0).start() == Send("server/discover", NEW, timeout=3.0)
    assert machine(shared=False).start() == Send("server/discover", NEW, timeout=None)


# What comes back to `server/discover` over a shared channel -> what follows.
PROBE = [
    ("a discover result", "answered", discovered(), ("ready", NEW)),
    (
        "without what only the newest shape has",
        "answered",
        discovered(ttlMs=None, cacheScope=None),
        ("ready", NEW),
    ),
    ("without resultType", "answered", discovered(resultType=None), ("ready", NEW)),
    (
        "among other versions",
        "answered",
        discovered(supportedVersions=["2031-01-01", OLD, NEW]),
        ("ready", NEW),
    ),
    (
        "it names older versions only",
        "answered",
        discovered(supportedVersions=["2024-11-05", OLD]),
        INITIALIZE,
    ),
    (
        "it names one older version",
        "answered",
        discovered(supportedVersions=["2025-03-26"]),
        ("initialize", "2025-03-26"),
    ),
    ("nothing in common", "answered", discovered(supportedVersions=["2031-01-01"]), "give up"),
    ("an empty object", "answered", raw({}), INITIALIZE),
    ("a list of tools", "answered", raw({"tools": []}), INITIALIZE),
    ("no object", "answered", raw("hello"), INITIALIZE),
    ("null", "answered", raw(None), INITIALIZE),
    ("no versions", "answered", discovered(supportedVersions=[]), INITIALIZE),
    ("versions that are no strings", "answered", discovered(supportedVersions=[2026]), INITIALIZE),
    ("no capabilities", "answered", discovered(capabilities=None), INITIALIZE),
    ("an unknown resultType", "answered", discovered(resultType="task"), INITIALIZE),
    ("an initialize result", "answered", initialized(NEW), INITIALIZE),
    ("unsupported, with this very version", "refused", supported(NEW), DISCOVER),
    ("unsupported, with older ones", "refused", supported("2025-06-18", OLD), INITIALIZE),
    ("unsupported, disjoint", "refused", supported("2031-01-01"), "give up"),
    ("unsupported, an empty list", "refused", supported(), "give up"),
    ("unsupported, without data", "refused", error(-32022), DISCOVER),
    ("unsupported, with malformed data", "refused", error(-32022, ["no"]), DISCOVER),
    ("header mismatch", "refused", error(-32020), ("ready", NEW)),
    ("missing capability", "refused", error(-32021, {"requiredCapabilities": {}}), ("ready", NEW)),
    ("silence", "silent", None, INITIALIZE),
    ("the end of the process", "died", None, INITIALIZE),
] + [
    (f"error {code}", "refused", error(code), INITIALIZE)
    for code in (-32601, -32602, -32600, -32603, -32700, -32000, -32001, -32002, -32023, 0, 1, -1, 404)
]


@pytest.mark.parametrize(("what", "event", "value", "then"), PROBE, ids=[case[0] for case in PROBE])
def test_what_the_answer_to_the_probe_means(what: str, event: str, value: Any, then: Any) -> None:
    negotiation = machine()
    negotiation.start()
    tell = getattr(negotiation, event)
    assert brief(tell() if value is None else tell(value)) == then


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000])
def test_over_http_too_no_error_code_of_its_own_means_an_old_server(code: int) -> None:
    negotiation = machine(shared=False)
    negotiation.start()
    assert brief(negotiation.refused(error(code))) == INITIALIZE


@pytest.mark.parametrize("status", [400, 404, 405, 406, 410, 415, 422])
def test_a_client_error_without_an_answer_in_it_means_an_old_server(status: int) -> None:
    negotiation = machine(shared=False)
    negotiation.start()
    assert brief(negotiation.rejected(status)) == INITIALIZE


@pytest.mark.parametrize("status", [200, 301, 307, 401, 403, 407, 421, 429, 500, 502, 503])
def test_authorization_redirects_and_server_errors_never_mean_an_old_server(status: int) -> None:
    negotiation = machine(shared=False)
    negotiation.start()
    assert negotiation.rejected(status) == GiveUp(None)  # the fault itself says it best


@pytest.mark.parametrize("event", ["silent", "died"])
def test_over_http_neither_silence_nor_a_lost_connection_is_a_verdict(event: str) -> None:
    negotiation = machine(shared=False)
    negotiation.start()
    assert brief(getattr(negotiation, event)()) == "give up"


def test_a_process_that_ended_at_the_probe_is_started_once_more_without_one() -> None:
    negotiation = machine()
    negotiation.start()
    assert negotiation.died() == Send("initialize", OLD, fresh=True)
    assert negotiation.died() == GiveUp(None)


def test_a_process_that_reads_the_probe_late_and_ends_at_it_is_started_once_more() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    assert negotiation.died() == Send("initialize", OLD, fresh=True)
    assert brief(negotiation.answered(initialized())) == ("ready", OLD)


def test_unsupported_is_retried_once() -> None:
    negotiation = machine()
    negotiation.start()
    assert brief(negotiation.refused(supported(NEW))) == DISCOVER
    assert brief(negotiation.refused(supported(NEW))) == "give up"


def test_unsupported_retried_may_succeed() -> None:
    negotiation = machine(shared=False)
    negotiation.start()
    negotiation.refused(supported(NEW))
    assert brief(negotiation.answered(discovered())) == ("ready", NEW)


@pytest.mark.parametrize("version", [r.version for r in REVISIONS if r.handshake])
def test_the_server_may_choose_any_older_revision(version: str) -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.refused(error(-32601))
    ready = negotiation.answered(initialized(version))
    assert isinstance(ready, Ready)
    assert ready.revision is BY_VERSION[version]
    assert isinstance(ready.hello, InitializeResult)
    assert ready.hello.server_info.name == "s"


@pytest.mark.parametrize("version", ["1999-01-01", NEW, "2031-01-01", ""])
def test_a_version_that_no_handshake_has_ends_it_and_both_sides_are_named(version: str) -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.refused(error(-32601))
    end = negotiation.answered(initialized(version))
    assert isinstance(end, GiveUp)
    assert end.why is not None
    assert OLD in end.why
    assert version in end.why


def test_a_malformed_answer_to_initialize_ends_it_and_says_what_is_wrong() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    end = negotiation.answered(raw({"protocolVersion": OLD}))
    assert isinstance(end, GiveUp)
    assert end.why is not None
    assert "capabilities" in end.why


def test_a_refused_handshake_ends_it_and_tells_both_answers() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.refused(error(-32601))
    end = negotiation.refused(error(-32603))
    assert isinstance(end, GiveUp)
    assert end.why is not None
    assert "-32601" in end.why
    assert "-32603" in end.why


def test_a_refused_handshake_that_names_older_versions_is_sent_again_with_one() -> None:
    # 2025-11-25, lifecycle: the example of an initialization error.
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    refusal = error(-32602, {"supported": ["2024-11-05"], "requested": OLD})
    assert brief(negotiation.refused(refusal)) == ("initialize", "2024-11-05")
    assert brief(negotiation.refused(refusal)) == "give up"


def test_unsupported_in_answer_to_the_handshake_is_probed_once_more() -> None:
    # The slow start: the probe was read late after all and settled the process.
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    assert brief(negotiation.refused(supported(NEW))) == DISCOVER
    assert brief(negotiation.answered(discovered())) == ("ready", NEW)


def test_the_second_probe_waits_as_long_as_it_takes() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    assert negotiation.refused(supported(NEW)) == Send("server/discover", NEW, timeout=None)


def test_after_the_second_probe_there_is_no_third_way() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    negotiation.refused(supported(NEW))
    assert brief(negotiation.refused(error(-32601))) == "give up"


def test_a_late_answer_to_the_probe_counts_when_the_handshake_is_refused() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    negotiation.late(discovered())
    ready = negotiation.refused(error(-32601))
    assert isinstance(ready, Ready)
    assert ready.revision.version == NEW
    assert isinstance(ready.hello, DiscoverResult)


def test_a_late_answer_to_the_probe_does_not_count_when_the_handshake_succeeds() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    negotiation.late(discovered())
    assert brief(negotiation.answered(initialized())) == ("ready", OLD)


def test_a_malformed_late_answer_counts_for_nothing() -> None:
    negotiation = machine()
    negotiation.start()
    negotiation.silent()
    negotiation.late(raw({}))
    assert brief(negotiation.refused(error(-32601))) == "give up"


# A pinned revision is the only one spoken.


def test_pinned_to_a_handshake_revision_there_is_no_probe() -> None:
    for revision in REVISIONS:
        if revision.handshake:
            negotiation = machine(revision.version)
            assert negotiation.start() == Send("initialize", revision.version)
            assert brief(negotiation.answered(initialized(revision.version))) == ("ready", revision.version)


def test_pinned_to_a_handshake_revision_another_one_is_refused() -> None:
    negotiation = machine("2025-06-18")
    negotiation.start()
    assert brief(negotiation.answered(initialized("2025-03-26"))) == "give up"


PINNED = [
    ("answered", raw({})),
    ("answered", discovered(supportedVersions=[OLD])),
    ("refused", error(-32601)),
    ("refused", error(-32602)),
    ("refused", supported(OLD)),
    ("died", None),
]


@pytest.mark.parametrize(("event", "value"), PINNED)
def test_pinned_to_a_stateless_revision_there_is_no_handshake(event: str, value: Any) -> None:
    negotiation = machine(NEW)
    assert negotiation.start() == Send("server/discover", NEW, timeout=None)
    tell = getattr(negotiation, event)
    assert brief(tell() if value is None else tell(value)) == "give up"


def test_pinned_over_http_a_server_without_discover_is_spoken_to_all_the_same() -> None:
    negotiation = machine(NEW, shared=False)
    negotiation.start()
    assert negotiation.refused(error(-32601)) == Ready(BY_VERSION[NEW], None)


def test_pinned_over_http_an_old_server_is_an_error() -> None:
    negotiation = machine(NEW, shared=False)
    negotiation.start()
    assert negotiation.rejected(400) == GiveUp(None)


# What the server spoke before.


def test_a_server_known_to_be_stateless_is_waited_for() -> None:
    negotiation = machine(known=BY_VERSION[NEW])
    assert negotiation.start() == Send("server/discover", NEW, timeout=None)


def test_a_server_known_to_be_stateless_may_be_an_old_one_today() -> None:
    negotiation = machine(known=BY_VERSION[NEW])
    negotiation.start()
    assert brief(negotiation.refused(error(-32601))) == INITIALIZE


def test_a_server_known_to_be_old_is_not_probed_but_offered_the_newest() -> None:
    negotiation = machine(known=BY_VERSION["2025-03-26"])
    assert negotiation.start() == Send("initialize", OLD)
    assert brief(negotiation.answered(initialized("2025-03-26"))) == ("ready", "2025-03-26")


@pytest.mark.parametrize("code", [-32601, -32602, -32022])
def test_a_server_known_to_be_old_that_refuses_is_probed_after_all(code: int) -> None:
    negotiation = machine(known=BY_VERSION[OLD])
    negotiation.start()
    assert brief(negotiation.refused(error(code))) == DISCOVER
    assert brief(negotiation.answered(discovered())) == ("ready", NEW)


def test_an_address_known_to_be_old_that_rejects_is_probed_after_all() -> None:
    negotiation = machine(shared=False, known=BY_VERSION[OLD])
    negotiation.start()
    assert brief(negotiation.rejected(404)) == DISCOVER
    assert negotiation.rejected(404) == GiveUp(None)


def test_what_was_known_does_not_count_against_a_pinned_revision() -> None:
    assert brief(machine(NEW, known=BY_VERSION[OLD]).start()) == DISCOVER
    assert brief(machine(OLD, known=BY_VERSION[NEW]).start()) == INITIALIZE
