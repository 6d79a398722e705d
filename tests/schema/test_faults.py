"""The text that a model gets when its arguments are refused: field, what was expected, what came."""

import builtins
import dataclasses
import json
import sys
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta

from dragoman.schema.errors import ArgumentError, Fault
from dragoman.schema.explain import explain
from dragoman.schema.signature import reflect
from dragoman.schema.wording import field_path, nearest, pointer


@dataclasses.dataclass
class User:
    emails: list[str]
    age: int | None = None


def build(project_dir: str, configuration: Literal["Debug", "Release"], arch: Literal["arm64", "x86_64"]): ...


def refused(function: Any, arguments: Any) -> ArgumentError:
    with pytest.raises(ArgumentError) as caught:
        reflect(function).decode(json.dumps(arguments).encode())
    return caught.value


def test_the_text_names_field_allowed_values_and_the_value_received():
    signature = reflect(build, name="build-app")
    with pytest.raises(ArgumentError) as caught:
        signature.decode(b'{"project_dir": "/p", "configuration": "Debug", "arch": "ARM"}')
    assert str(caught.value) == (
        'Invalid arguments for build-app:\n- arch: expected one of "arm64", "x86_64"; received "ARM"'
    )
    assert caught.value.faults == (
        Fault(
            field="arch",
            expected='one of "arm64", "x86_64"',
            received='"ARM"',
            allowed=("arm64", "x86_64"),
            rule="/properties/arch/enum",
        ),
    )


def test_every_fault_is_listed_not_only_the_first():
    error = refused(build, {"project_dir": 5, "arch": "ARM", "target": "x"})
    assert {(fault.field, fault.received) for fault in error.faults} == {
        ("project_dir", "5"),
        ("arch", '"ARM"'),
        ("configuration", "nothing"),
        ("target", '"x"'),
    }


def test_a_missing_field_says_what_it_should_be():
    (fault,) = refused(build, {"project_dir": "/p", "arch": "arm64"}).faults
    assert (fault.field, fault.expected, fault.received) == (
        "configuration",
        'one of "Debug", "Release"',
        "nothing",
    )


def test_an_unknown_field_gets_the_nearest_name_that_is_still_free():
    def tool(query: str, limit: int = 10): ...

    (fault,) = refused(tool, {"query": "x", "limt": 5}).faults
    assert (fault.field, fault.expected) == ("limt", 'no member of this name (did you mean "limit"?)')
    assert str(refused(tool, {"query": "x", "limt": 5})) == (
        'Invalid arguments for tool:\n- unknown argument "limt"; did you mean "limit"?'
    )
    (fault,) = refused(tool, {"query": "x", "qwery": "y"}).faults
    assert fault.expected == "no member of this name"
    assert str(fault) == 'unknown member "qwery"'  # of a result, say, which has no arguments


@pytest.mark.parametrize(
    ("annotation", "value", "field", "expected"),
    [
        (int, "5", "a", "an integer"),
        (int, True, "a", "an integer"),
        (str, None, "a", "a string"),
        (bool, "yes", "a", "true or false"),
        (list[int], {"x": 1}, "a", "an array"),
        (dict[str, int], [], "a", "an object"),
        (int | None, "x", "a", "an integer or null"),
        (int | str | None, [], "a", "an integer or a string or null"),
        (Annotated[int, Meta(ge=1)], 0, "a", "a number of at least 1"),
        (Annotated[int, Meta(gt=1)], 1, "a", "a number greater than 1"),
        (Annotated[int, Meta(le=1)], 2, "a", "a number of at most 1"),
        (Annotated[float, Meta(lt=1)], 1, "a", "a number less than 1"),
        (Annotated[int, Meta(multiple_of=5)], 3, "a", "a multiple of 5"),
        (Annotated[str, Meta(min_length=1)], "", "a", "a string of at least 1 character"),
        (Annotated[str, Meta(max_length=2)], "abc", "a", "a string of at most 2 characters"),
        (Annotated[str, Meta(pattern="^x$")], "y", "a", "a string that matches ^x$"),
        (Annotated[list[int], Meta(min_length=2)], [1], "a", "an array of at least 2 items"),
        (list[Annotated[int, Meta(ge=1)]], [1, 0], "a[1]", "a number of at least 1"),
        (User, {"emails": ["a", 5]}, "a.emails[1]", "a string"),
        (User | None, {"emails": "x"}, "a.emails", "an array"),
        (User | None, {"age": 5}, "a.emails", "an array"),
        (dict[str, User], {"x y": {"emails": 1}}, 'a["x y"].emails', "an array"),
    ],
    ids=str,
)
def test_wording(annotation, value, field, expected):
    def tool(a): ...

    tool.__annotations__ = {"a": annotation}
    (fault,) = refused(tool, {"a": value}).faults
    assert (fault.field, fault.expected) == (field, expected)


class Cat(msgspec.Struct, tag_field="kind", tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag_field="kind", tag="dog"):
    name: str


def test_a_tagged_union_blames_the_member_that_was_meant():
    def tool(pet: Cat | Dog | None): ...

    (fault,) = refused(tool, {"pet": {"kind": "cat", "lives": "nine"}}).faults
    assert (fault.field, fault.expected) == ("pet.lives", "an integer")
    (fault,) = refused(tool, {"pet": {"kind": "cow"}}).faults
    assert (fault.field, fault.allowed) == ("pet.kind", ("cat", "dog"))


def test_a_long_value_is_cut():
    def tool(a: int): ...

    (fault,) = refused(tool, {"a": "x" * 5000}).faults
    assert len(fault.received) == 200
    assert fault.received.startswith('"xxx')
    assert fault.received.endswith("…")


def test_a_format_is_named_when_nothing_else_is_wrong():
    from uuid import UUID

    def tool(a: UUID, b: int): ...

    (fault,) = refused(tool, {"a": "x", "b": 1}).faults
    assert (fault.field, fault.expected) == ("a", "a string in the format uuid")


def test_what_the_schema_does_not_see_is_told_by_the_decoder():
    def tool(a: bytes): ...

    (fault,) = refused(tool, {"a": "%%%"}).faults
    assert (fault.field, fault.received) == ("a", '"%%%"')


def test_without_the_validator_the_first_fault_is_still_named(monkeypatch):
    imported = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "jsonschema_rs":
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "jsonschema_rs", raising=False)

    def tool(user: User, arch: Literal["arm64"], n: Annotated[int, Meta(ge=1)] = 1): ...

    cases = [
        ({"user": {"emails": ["a", 5]}, "arch": "arm64"}, "user.emails[1]", "str", "5"),
        ({"arch": "arm64"}, "user", "a value", "nothing"),
        ({"user": {"emails": []}, "arch": "arm64", "x": 1}, "x", "no member of this name", "1"),
        ({"user": {"emails": []}, "arch": "arm64", "n": 0}, "n", "int >= 1", "0"),
        (
            {"user": {"emails": []}, "arch": "ARM"},
            "arch",
            "a value that can be read (Invalid enum value 'ARM')",
            '"ARM"',
        ),
        ({"user": {}, "arch": "arm64"}, "user.emails", "a value", "nothing"),
    ]
    for arguments, field, expected, received in cases:
        (fault,) = refused(tool, arguments).faults
        assert (fault.field, fault.expected, fault.received) == (field, expected, received)


def test_explain_lists_the_faults_of_a_value():
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"const": "x"}}, "required": ["c"]}
    assert explain(schema, {"a": 1, "b": "x", "c": None}) == ()
    faults = explain(schema, {"a": 3, "b": "y"})
    assert {(fault.field, fault.expected, fault.allowed) for fault in faults} == {
        ("a", "one of 1, 2", (1, 2)),
        ("b", '"x"', ("x",)),
        ("c", "a value", None),
    }


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["user", "emails", 0], "user.emails[0]"),
        ([0, 1], "[0][1]"),
        (["a", "b c", "d-e"], 'a["b c"].d-e'),
        (["이름"], "이름"),
    ],
)
def test_field_paths(path, text):
    assert field_path(path) == text


def test_pointers_are_escaped():
    assert pointer(["a/b", "~", 0]) == "/a~1b/~0/0"


@pytest.mark.parametrize(
    ("name", "candidates", "found"),
    [
        ("limt", ["limit", "offset"], "limit"),
        ("ilmit", ["limit"], "limit"),
        ("Limit", ["limit"], "limit"),
        ("LIMIT", ["limit"], "limit"),
        ("project-dir", ["project_dir"], "project_dir"),
        ("q", ["n"], None),
        ("colour", ["color"], "color"),
        ("abc", ["xyz"], None),
        ("x" * 10_000, ["y" * 10_000], None),
        ("a", [], None),
    ],
)
def test_nearest(name, candidates, found):
    assert nearest(name, candidates) == found
