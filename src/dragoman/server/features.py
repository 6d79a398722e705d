"""The part of `Server` that offers prompts, resources and suggestions. It knows only the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from dragoman.errors import UsageError
from dragoman.server.kernel import Kernel

if TYPE_CHECKING:
    from dragoman.server.completion import Source
    from dragoman.server.prompts import Prompt, PromptOptions
    from dragoman.server.resources import Resource, ResourceOptions, Static
    from dragoman.server.templates import Template

F = TypeVar("F", bound=Callable[..., Any])


class Features:
    """What `Server` offers beside tools."""

    kernel: Kernel

    # Resources -----------------------------------------------------------------------------------

    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Make a resource of a function: `@server.resource("orders://{order_id}", ...)`.

        With variables in the URI (RFC 6570: `{x}`, `{+x}`, `{/x}`, `{?x,y}`, `{&x}`) it is a template
        for all URIs that fit, and the function's parameters have the names of the variables; without,
        it is the one resource under that URI. The function returns text, bytes, a `Path`, `Image`,
        `Audio`, `File`, `ResourceContents`, several of these, or anything that can be written as
        JSON; None says that nothing is there, as does `ResourceNotFound`.

        Raises:
            UsageError: no URI or template, a signature that does not fit it, or the URI is taken.
        """
        if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # `@server.resource` without a URI
            raise UsageError('a resource needs a URI: @server.resource("notes://{name}")')

        def add(function: F) -> F:
            self.add_resource(uri, function, **options)
            return function

        return add

    def add_resource(
        self, uri: str, source: Callable[..., Any] | Static, **options: Unpack[ResourceOptions]
    ) -> None:
        """As `resource`, for a function that is not decorated, for text or bytes that do not change, or
        for the path of a file, which is read each time. Listeners are told at once.
        """
        self.kernel.catalog.add_resource(uri, source, options=options)

    def remove_resource(self, uri: str) -> None:
        """Take a resource or a template away. Listeners are told at once.

        Raises:
            UsageError: there is none.
        """
        self.kernel.catalog.remove_resource(uri)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """The resources in the order in which a list shows them."""
        return tuple(self.kernel.catalog.resources)

    @property
    def resource_templates(self) -> tuple[Template, ...]:
        """The templates in the order in which a list shows them, and in which they are tried."""
        return tuple(self.kernel.catalog.templates)

    def notify_resources_changed(self) -> None:
        """Tell everybody who listens to read the lists of resources and templates again.

        Not needed after `resource` and `remove_resource`.
        """
        self.kernel.changed("resources")

    def notify_resource_updated(self, uri: str) -> None:
        """Tell everybody who watches this resource to read it again."""
        from dragoman.protocol.uritemplate import encoded

        self.kernel.hub.updated(encoded(uri))

    # Prompts -------------------------------------------------------------------------------------

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(
        self, function: str | None = None, /, **options: Unpack[PromptOptions]
    ) -> Callable[[F], F]: ...

    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Make a prompt of a function: `@server.prompt`, or `@server.prompt(name=..., ...)`.

        Its parameters are the prompt's arguments: strings on the wire, read as their types. It
        returns text, a `Message` or `PromptMessage`, content, or a list of these.

        Raises:
            UsageError: the signature cannot be called with named texts, or the name is taken.
        """
        if isinstance(function, str):
            options["name"] = function
            function = None
        if function is None:

            def add(target: F) -> F:
                return self.add_prompt(target, **options)

            return add
        return self.add_prompt(cast("Callable[..., Any]", function), **options)

    def add_prompt(self, function: F, **options: Unpack[PromptOptions]) -> F:
        """As `prompt`, for a function that is not decorated. Listeners are told at once."""
        self.kernel.catalog.add_prompt(function, options)
        return function

    def remove_prompt(self, name: str) -> None:
        """Take a prompt away. Listeners are told at once. Raises UsageError if there is none."""
        self.kernel.catalog.prompts.remove(name)

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts in the order in which a list shows them."""
        return tuple(self.kernel.catalog.prompts)

    def notify_prompts_changed(self) -> None:
        """Tell everybody who listens to read the list again.

        Not needed after `prompt` and `remove_prompt`.
        """
        self.kernel.changed("prompts")

    # Completion ----------------------------------------------------------------------------------

    def completion(self, name: str, argument: str) -> Callable[[F], F]:
        """Suggest values: `@server.completion("prompt", "argument")`, or for a variable of a template.

        The function takes what was typed so far, if it wants the settled arguments (a dict) beside it,
        and a `Context`; it returns the values that suit, the best first. At most 100 are sent.

        Raises:
            UsageError: a signature that does not fit, or there are suggestions already.
        """

        def add(function: F) -> F:
            self.add_completion(name, argument, source=function)
            return function

        return add

    def add_completion(self, name: str, argument: str, *, source: Source) -> None:
        """As `completion`, for a function, or for values to choose from: a sequence of strings, an enum."""
        self.kernel.catalog.completions.add(name, argument, source=source)
