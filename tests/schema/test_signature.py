"""How a function's parameters become arguments: kinds, defaults, names, contexts, documentation."""

import functools
import typing
from typing import Annotated, Any, Generic, Optional, TypeVar, Union

import pytest
from msgspec import Meta, Raw

from dragoman.errors import UsageError
from dragoman.schema.errors import ArgumentError
from dragoman.schema.signature import reflect

S = TypeVar("S")


class Context:
    pass


class SessionContext(Context, Generic[S]):
    pass


def call(function, arguments: bytes, **supplied: Any):
    signature = reflect(function, context_types=(Context,))
    return signature.function(**signature.decode(arguments), **supplied)


def test_a_function_without_parameters_accepts_only_the_empty_object():
    def tool(): ...

    signature = reflect(tool)
    assert signature.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}
    assert signature.decode(b"{}") == {}
    with pytest.raises(ArgumentError):
        signature.decode(b'{"a": 1}')


@pytest.mark.parametrize("source", [b"[]", b"null", b'"x"', b"5", b"[1, 2]"])
def test_arguments_that_are_no_object_are_refused(source):
    def tool(): ...

    with pytest.raises(ArgumentError) as caught:
        reflect(tool).decode(source)
    assert caught.value.faults[0].field == ""
    assert caught.value.faults[0].expected == "an object"


@pytest.mark.parametrize("source", [b'{"a": "\xff"}', b'{"a": ', b"", b'{"a": "\\ud800"}'])
def test_text_that_is_no_json_never_reaches_the_function(source):
    def tool(a: str): ...

    with pytest.raises(ArgumentError):
        reflect(tool).decode(source)


def test_raw_is_taken_like_bytes():
    def tool(a: int): ...

    assert reflect(tool).decode(Raw(b'{"a": 1}')) == {"a": 1}


def test_parameters_without_annotation_take_anything():
    def tool(a, b=None): ...

    signature = reflect(tool)
    assert signature.input_schema["properties"] == {"a": {}, "b": {"default": None}}
    assert signature.input_schema["required"] == ["a"]
    assert signature.decode(b'{"a": [1, {"x": null}]}') == {"a": [1, {"x": None}], "b": None}


def test_defaults_are_published_and_used_as_the_very_object():
    marker = ["m"]

    def tool(a: int = 3, b: list[str] = marker, c: tuple[int, str] = (1, "x")): ...

    signature = reflect(tool)
    properties = signature.input_schema["properties"]
    assert [properties[name]["default"] for name in "abc"] == [3, ["m"], [1, "x"]]
    assert "required" not in signature.input_schema
    assert signature.decode(b"{}")["b"] is marker


def test_a_default_that_json_cannot_say_is_not_published_but_used():
    sentinel = object()

    def tool(a: Any = sentinel, b: float = float("inf"), c: Any = ({"x": float("-inf")},)): ...

    signature = reflect(tool)
    assert signature.input_schema["properties"] == {"a": {}, "b": {"type": "number"}, "c": {}}
    assert signature.decode(b"{}") == {"a": sentinel, "b": float("inf"), "c": ({"x": float("-inf")},)}


def test_null_is_refused_for_a_defaulted_parameter_that_is_not_optional():
    def tool(a: int = None, b: Optional[int] = None): ...  # noqa: RUF013  # what people write

    signature = reflect(tool)
    assert signature.input_schema["properties"]["a"] == {
        "type": "integer"
    }  # null is no default a caller may send
    assert signature.input_schema["properties"]["b"]["default"] is None
    assert signature.decode(b'{"b": null}') == {"a": None, "b": None}
    with pytest.raises(ArgumentError, match="a: expected an integer; received null"):
        signature.decode(b'{"a": null}')


def test_an_optional_without_default_is_required_and_nullable():
    def tool(a: int | None): ...

    signature = reflect(tool)
    assert signature.input_schema["required"] == ["a"]
    assert signature.decode(b'{"a": null}') == {"a": None}
    with pytest.raises(ArgumentError):
        signature.decode(b"{}")


def test_positional_only_keyword_only_and_plain_parameters_are_all_arguments():
    def tool(a: int, /, b: int, *, c: int = 3):
        return a, b, c

    assert list(reflect(tool).input_schema["properties"]) == ["a", "b", "c"]
    assert call(tool, b'{"a": 1, "b": 2}') == (1, 2, 3)
    assert call(tool, b'{"a": 1, "b": 2, "c": 4}') == (1, 2, 4)


def test_a_positional_only_context_is_supplied_by_name():
    def tool(ctx: Context, a: int, /):
        return ctx, a

    context = Context()
    assert call(tool, b'{"a": 1}', ctx=context) == (context, 1)


def test_star_args_are_refused_with_a_way_out():
    def tool(*values: int): ...

    with pytest.raises(UsageError, match=r"tool\(\) takes \*values") as caught:
        reflect(tool)
    assert "list" in (caught.value.hint or "")


def test_star_kwargs_take_what_the_other_parameters_do_not():
    def tool(a: int, **rest: int):
        return a, rest

    signature = reflect(tool)
    assert signature.input_schema["additionalProperties"] == {"type": "integer"}
    assert call(tool, b'{"a": 1, "x": 2, "y": 3.0}') == (1, {"x": 2, "y": 3})
    with pytest.raises(ArgumentError, match="x: expected an integer"):
        call(tool, b'{"a": 1, "x": "2"}')
    with pytest.raises(ArgumentError, match="a: expected an integer; received nothing"):
        call(tool, b'{"x": 1}')


def test_untyped_star_kwargs_take_anything():
    def tool(**rest):
        return rest

    assert reflect(tool).input_schema["additionalProperties"] is True
    assert call(tool, b'{"x": [1], "not an identifier": null}') == {"x": [1], "not an identifier": None}


def test_star_kwargs_cannot_be_used_to_supply_the_context():
    def tool(ctx: Context, **rest):
        return ctx, rest

    with pytest.raises(ArgumentError):
        call(tool, b'{"ctx": 5}', ctx=Context())


@pytest.mark.parametrize(
    "annotation",
    [
        Context,
        SessionContext,
        SessionContext[int],
        Optional[Context],
        Context | None,
        Union[None, Context],
        Annotated[Context, "text"],
        Annotated[Context | None, Meta(description="d")],
        "Context",
        "Context | None",
    ],
)
def test_a_context_is_found_by_its_type(annotation):
    def tool(a: int, whatever=None, b: int = 2): ...

    tool.__annotations__["whatever"] = annotation
    signature = reflect(tool, context_types=(Context,))
    assert signature.context == "whatever"
    assert list(signature.input_schema["properties"]) == ["a", "b"]
    assert signature.decode(b'{"a": 1}') == {"a": 1, "b": 2}


def test_a_parameter_called_ctx_is_an_argument_like_any_other():
    def tool(ctx: int, context: str): ...

    signature = reflect(tool, context_types=(Context,))
    assert signature.context is None
    assert list(signature.input_schema["properties"]) == ["ctx", "context"]


def test_two_contexts_are_refused():
    def tool(a: Context, b: Context): ...

    with pytest.raises(UsageError, match="two contexts, a and b"):
        reflect(tool, context_types=(Context,))


def test_injected_parameters_are_no_arguments():
    class Supplied:
        pass

    marker = Supplied()

    def tool(a: int, by_type: Supplied, by_default: Any = marker): ...

    signature = reflect(tool, injected=lambda item: item is Supplied or isinstance(item, Supplied))
    assert signature.injected == ("by_type", "by_default")
    assert list(signature.input_schema["properties"]) == ["a"]
    with pytest.raises(ArgumentError):
        signature.decode(b'{"a": 1, "by_type": 1}')


def test_methods_partials_wrappers_and_callable_objects():
    class Service:
        def method(self, a: int) -> int:
            return a + 1

        @classmethod
        def on_class(cls, a: int) -> int:
            return a + 2

        @staticmethod
        def static(a: int) -> int:
            return a + 3

        def __call__(self, a: int) -> int:
            return a + 4

    def plain(secret: str, a: int, b: int = 0) -> tuple[str, int]:
        return secret, a + b

    @functools.wraps(plain)
    def wrapper(*args, **kwargs):
        return plain(*args, **kwargs)

    service = Service()
    for at, function in enumerate((service.method, Service.on_class, Service.static, service), 1):
        assert list(reflect(function).input_schema["properties"]) == ["a"]
        assert call(function, b'{"a": 1}') == 1 + at
    assert call(wrapper, b'{"secret": "s", "a": 1, "b": 2}') == ("s", 3)
    by_place = functools.partial(plain, "k")
    assert call(by_place, b'{"a": 1}') == ("k", 1)
    by_name = functools.partial(plain, secret="k")
    assert (
        "secret" not in reflect(by_name).input_schema["properties"]
    )  # what the author bound is not published
    assert call(by_name, b'{"a": 1}') == ("k", 1)


@pytest.mark.parametrize("function", [len, dict, 5, "x"])
def test_what_is_no_python_function_is_refused(function):
    with pytest.raises(UsageError, match="not a Python function"):
        reflect(function)


def test_names_in_texts_and_of_the_signature():
    def tool(a: int): ...

    assert reflect(tool).name == "tool"
    with pytest.raises(ArgumentError, match=r"^Invalid arguments for build-app:\n- a: "):
        reflect(tool, name="build-app").decode(b"{}")


@pytest.mark.parametrize(
    "name", ["self", "cls", "type", "from_", "_private", "json", "이름", "arguments", "source"]
)
def test_any_parameter_name_works(name):
    space: dict[str, Any] = {}
    exec(f"def tool({name}: int): return {name}", space)
    assert call(space["tool"], f'{{"{name}": 5}}'.encode()) == 5


def test_the_docstring_describes_what_annotations_do_not():
    def tool(
        a: int,
        b: Annotated[int, "said by the annotation"],
        c: Annotated[str, Meta(description="by Meta")] = "",
    ):
        """Add.

        Args:
            a: the first
            b: not this
            c: nor this
        """

    signature = reflect(tool)
    described = {name: part["description"] for name, part in signature.input_schema["properties"].items()}
    assert described == {"a": "the first", "b": "said by the annotation", "c": "by Meta"}
    assert signature.description == "Add."


def test_one_reflection_reads_the_annotations_once(monkeypatch):
    from dragoman.schema import callables

    calls: list[Any] = []

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return typing.get_type_hints(*args, **kwargs)

    monkeypatch.setattr(callables, "get_type_hints", counting)

    def tool(a: int, b: "str", c: list["int"]) -> "str": ...

    signature = reflect(tool)
    signature.decode(b'{"a": 1, "b": "x", "c": []}')
    assert len(calls) == 1


def test_decoding_does_not_touch_the_function_or_its_defaults():
    default: dict[str, int] = {"a": 1}

    def tool(options: dict[str, int] = default): ...

    signature = reflect(tool)
    signature.decode(b'{"options": {"b": 2}}')
    assert signature.decode(b"{}") == {"options": {"a": 1}}


def test_an_annotation_that_does_not_resolve_is_named():
    def tool(a: "Nowhere"): ...  # noqa: F821  # the point

    with pytest.raises(UsageError, match="Nowhere"):
        reflect(tool)
