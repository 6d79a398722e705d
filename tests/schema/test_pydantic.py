"""Types of pydantic and `pydantic.Field`: the schema and the call agree, as they do for msgspec's types."""

import dataclasses
import datetime as dt
import re
import subprocess
import sys
from typing import Annotated, Generic, Literal, Optional, TypeVar

import jsonschema_rs
import pydantic
import pydantic.dataclasses
import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from dragoman.errors import UsageError
from dragoman.schema.errors import ArgumentError, OutputError
from dragoman.schema.signature import reflect

T = TypeVar("T")


class User(BaseModel):
    name: str = Field(min_length=1)
    email: str | None = Field(default=None, alias="eMail")
    born: dt.date | None = None


class Team(BaseModel):
    lead: User
    members: list[User] = []


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Envelope(BaseModel, Generic[T]):
    content: T


@pydantic.dataclasses.dataclass
class Range:
    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def ordered(self):
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


def test_an_alias_is_the_name_on_the_wire_and_the_only_one():
    def tool(
        query: Annotated[str, Field(alias="q", description="what to look for")],
        limit: int = Field(10, alias="max", ge=1),
    ):
        return query, limit

    signature = reflect(tool)
    assert signature.input_schema == {
        "type": "object",
        "properties": {
            "q": {"type": "string", "description": "what to look for"},
            "max": {"type": "integer", "minimum": 1, "default": 10},
        },
        "required": ["q"],
        "additionalProperties": False,
    }
    assert signature.function(**signature.decode(b'{"q": "x", "max": 2}')) == ("x", 2)
    assert signature.function(**signature.decode(b'{"q": "x"}')) == ("x", 10)
    for refused in (b'{"query": "x"}', b'{"q": "x", "limit": 1}', b'{"q": "x", "max": 0}'):
        with pytest.raises(ArgumentError):
            signature.decode(refused)


def test_two_parameters_of_one_wire_name_are_refused():
    def tool(a: int, b: Annotated[int, Field(alias="a")]): ...

    with pytest.raises(UsageError, match="both a and b are named 'a'"):
        reflect(tool)


def test_an_alias_of_several_paths_is_refused():
    def tool(a: Annotated[int, Field(validation_alias=pydantic.AliasChoices("x", "y"))]): ...

    with pytest.raises(UsageError, match="not one name"):
        reflect(tool)


def test_field_constraints_and_words():
    def tool(
        code: Annotated[str, Field(pattern=r"^[A-Z]-\d{4}$", title="Code", examples=["A-1042"])],
        share: Annotated[float, Field(gt=0, le=1, json_schema_extra={"x-mcp-header": "Share"})],
        tags: Annotated[list[str], Field(min_length=1, max_length=2)],
        old: Annotated[int, Field(deprecated=True, multiple_of=5)] = 5,
        made: Annotated[list[int], Field(default_factory=list)] = [],  # noqa: B006  # never changed
    ): ...

    signature = reflect(tool)
    assert signature.input_schema["properties"] == {
        "code": {"type": "string", "pattern": r"^[A-Z]-\d{4}$", "title": "Code", "examples": ["A-1042"]},
        "share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "x-mcp-header": "Share"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "old": {"type": "integer", "multipleOf": 5, "deprecated": True, "default": 5},
        "made": {"type": "array", "items": {"type": "integer"}, "default": []},
    }
    signature.decode(b'{"code": "A-1042", "share": 1, "tags": ["a"]}')
    for refused in (
        b'{"code": "A-1042\\n", "share": 1, "tags": ["a"]}',
        b'{"code": "A-1042", "share": 0, "tags": ["a"]}',
        b'{"code": "A-1042", "share": 1, "tags": []}',
    ):
        with pytest.raises(ArgumentError):
            signature.decode(refused)


def test_patterns_that_only_pydantic_reads():
    def tool(
        a: Annotated[str, Field(pattern=r"^\p{Lu}$")],
        b: Annotated[str, Field(pattern=re.compile("^x$", re.IGNORECASE))],
    ): ...

    signature = reflect(tool)
    assert signature.input_schema["properties"]["a"]["pattern"] == r"^\p{Lu}$"
    assert signature.decode(b'{"a": "A", "b": "X"}') == {"a": "A", "b": "X"}
    with pytest.raises(ArgumentError):
        signature.decode(b'{"a": "a", "b": "x"}')


def test_a_default_factory_makes_a_new_value_each_time():
    def tool(a: list[int] = Field(default_factory=list)):  # noqa: B008  # what people write
        return a

    signature = reflect(tool)
    assert "required" not in signature.input_schema
    assert signature.decode(b"{}") == {"a": []}
    assert signature.decode(b"{}")["a"] is not signature.decode(b"{}")["a"]


def test_a_model_is_an_argument():
    def tool(team: Team, extra: Optional[User] = None): ...

    signature = reflect(tool)
    team = signature.input_schema["properties"]["team"]
    assert team["properties"]["lead"] == {"$ref": "#/$defs/User"}
    assert "eMail" in signature.input_schema["$defs"]["User"]["properties"]
    jsonschema_rs.Draft202012Validator(signature.input_schema)
    decoded = signature.decode(b'{"team": {"lead": {"name": "A", "eMail": "a@x", "born": "2000-01-02"}}}')
    assert decoded == {
        "team": Team(lead=User(name="A", eMail="a@x", born=dt.date(2000, 1, 2))),
        "extra": None,
    }


def test_models_are_read_strictly():
    def tool(node: Node): ...

    signature = reflect(tool)
    assert signature.decode(b'{"node": {"value": 5.0, "children": [{"value": 1}]}}') == {
        "node": Node(value=5, children=[Node(value=1)])
    }
    for refused in (
        b'{"node": {"value": "5"}}',
        b'{"node": {"value": true}}',
        b'{"node": "{\\"value\\": 5}"}',
        b'{"node": null}',
    ):
        with pytest.raises(ArgumentError):
            signature.decode(refused)


def test_faults_in_models_have_paths():
    def tool(team: Team): ...

    with pytest.raises(ArgumentError) as caught:
        reflect(tool).decode(b'{"team": {"lead": {"name": ""}, "members": [{"name": "B"}, {"name": 5}]}}')
    assert {(fault.field, fault.received) for fault in caught.value.faults} == {
        ("team.lead.name", '""'),
        ("team.members[1].name", "5"),
    }


def test_what_only_the_model_knows_is_told_in_its_words():
    def tool(span: Range): ...

    signature = reflect(tool)
    assert signature.decode(b'{"span": {"low": 1, "high": 2}}') == {"span": Range(1, 2)}
    with pytest.raises(ArgumentError, match="low is above high"):
        signature.decode(b'{"span": {"low": 3, "high": 2}}')


def test_validators_in_annotated_are_run():
    def tool(
        even: Annotated[int, AfterValidator(lambda value: value * 2)],
        name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=3)],
    ): ...

    signature = reflect(tool)
    assert signature.decode(b'{"even": 2, "name": " a "}') == {"even": 4, "name": "a"}
    assert signature.input_schema["properties"]["name"]["maxLength"] == 3


def test_discriminated_unions_and_generics():
    def tool(pet: Annotated[Cat | Dog, Field(discriminator="kind")], box: Envelope[int]): ...

    signature = reflect(tool)
    decoded = signature.decode(b'{"pet": {"kind": "dog", "name": "R"}, "box": {"content": 1}}')
    assert decoded == {"pet": Dog(kind="dog", name="R"), "box": Envelope[int](content=1)}
    with pytest.raises(ArgumentError):
        signature.decode(b'{"pet": {"kind": "cow"}, "box": {"content": 1}}')


def test_models_inside_other_types():
    @dataclasses.dataclass
    class Holder:
        user: User

    def tool(users: dict[str, list[User]], holder: Holder): ...

    signature = reflect(tool)
    jsonschema_rs.Draft202012Validator(signature.input_schema)
    decoded = signature.decode(b'{"users": {"a": [{"name": "A"}]}, "holder": {"user": {"name": "B"}}}')
    assert decoded == {"users": {"a": [User(name="A")]}, "holder": Holder(User(name="B"))}
    with pytest.raises(ArgumentError):
        signature.decode(b'{"users": {}, "holder": {"user": {"name": ""}}}')


def test_two_models_of_one_name_keep_their_own_definitions():
    def make(kind: type) -> type[BaseModel]:
        inner = pydantic.create_model("Inner", value=(kind, ...))
        return pydantic.create_model("Outer", inner=(inner, ...))

    def tool(a, b): ...

    tool.__annotations__ = {"a": make(int), "b": make(str)}
    signature = reflect(tool)
    signature.decode(b'{"a": {"inner": {"value": 1}}, "b": {"inner": {"value": "x"}}}')
    validator = jsonschema_rs.Draft202012Validator(signature.input_schema)
    assert validator.is_valid({"a": {"inner": {"value": 1}}, "b": {"inner": {"value": "x"}}})
    assert not validator.is_valid({"a": {"inner": {"value": 1}}, "b": {"inner": {"value": 1}}})


def test_a_model_default_is_published_as_json():
    def tool(user: User = User(name="A", eMail="x")): ...  # noqa: B008  # never changed

    signature = reflect(tool)
    assert signature.input_schema["properties"]["user"]["default"] == {
        "name": "A",
        "eMail": "x",
        "born": None,
    }
    assert signature.decode(b"{}") == {"user": User(name="A", eMail="x")}


def test_results_of_models_are_serialized_by_alias_and_checked():
    class Out(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        total: int = Field(serialization_alias="sum")
        when: dt.date

    def tool() -> Out: ...

    output = reflect(tool).output
    assert output is not None
    assert not output.wraps
    assert output.schema["properties"].keys() == {"sum", "when"}
    assert output.schema["required"] == ["sum", "when"]
    assert output.structured(Out(total=1, when=dt.date(2026, 1, 2))) == {"sum": 1, "when": "2026-01-02"}
    assert output.structured({"total": 1, "when": "2026-01-02"}) == {"sum": 1, "when": "2026-01-02"}
    with pytest.raises(OutputError):
        output.structured({"total": "one", "when": "2026-01-02"})
    with pytest.raises(OutputError):
        output.structured(Out.model_construct(total="one", when=dt.date(2026, 1, 2)))


def test_lists_of_models_are_wrapped_and_nan_is_refused():
    class Point(BaseModel):
        x: float

    def tool() -> list[Point]: ...

    output = reflect(tool).output
    assert output is not None
    assert output.wraps
    assert output.structured([Point(x=1.5)]) == {"result": [{"x": 1.5}]}
    with pytest.raises(OutputError, match=r"\[0\].x: nan"):
        output.structured([Point(x=float("nan"))])


def test_a_model_returned_where_nothing_was_promised_is_still_plain():
    from dragoman.schema.output import builtins

    assert builtins({"user": User(name="A")}) == {"user": {"name": "A", "eMail": None, "born": None}}


def test_importing_and_reflecting_do_not_import_pydantic():
    code = (
        "import sys; from dragoman.schema.signature import reflect\n"
        "def f(a: int, b: list[str] = []) -> dict[str, int]: ...\n"
        "reflect(f).decode(b'{\"a\": 1}'); reflect(f).output.encode({'x': 1})\n"
        "print([m for m in ('pydantic', 'annotated_types', 'jsonschema_rs', 'pathlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
