"""What one server makes of the tools of others, and of its own: mounts and transformations, in order.

Transformations are remembered: a mounted server may take a tool away and add it again.
"""

from __future__ import annotations

from dragoman.errors import UsageError
from dragoman.server.kernel import Kernel
from dragoman.server.mount import Inner, has_inside, mounts
from dragoman.server.sight import Sight
from dragoman.server.tool import Tool
from dragoman.server.transform import Transformation, transformed


class Composition:
    """The mounts and transformations of one server."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._shapes: list[tuple[str, Transformation]] = []

    def mount(self, inner: Kernel, prefix: str) -> None:
        """Show what `inner` offers, with `prefix` before each name.

        Raises:
            UsageError: a name is taken, or one of the two has the other inside already.
        """
        if has_inside(inner, self._kernel):
            raise UsageError(
                f"{inner.identity.info.name!r} has {self._kernel.identity.info.name!r} inside already: "
                "it cannot be mounted in it"
            )
        way = Inner(inner)
        opened = mounts(self._kernel, way, prefix=prefix, reshape=self._reshape)
        for mount in opened:
            mount.check_all()
        for mount in opened:
            mount.open()
        self._kernel.home.mounted.append(inner.home)
        inner.hub.outward.append(self._kernel.hub.updated)
        if self._kernel.sight is None:
            self._kernel.sight = Sight()
        self._kernel.sight.others.append(way)

    def transform(self, name: str, options: Transformation) -> None:
        """Change the tool `name`. Raises UsageError: there is none, or what it should be cannot be."""
        tools = self._kernel.tools
        tool = tools.get(name)
        if tool is None:
            has = ", ".join(known.name for known in tools) or "none"
            raise UsageError(f"transform: there is no tool {name!r} (there is: {has})")
        shown = _apply(tool, options)
        if tool not in shown:
            if shown:
                tools.replace(name, shown[0])
            else:
                tools.remove(name)
        elif len(shown) > 1:
            tools.add(shown[1])
        self._shapes.append((name, options))

    def _reshape(self, tool: Tool) -> list[Tool]:
        shown = [tool]
        for name, options in self._shapes:
            shown = [
                each
                for known in shown
                for each in (_apply(known, options) if known.name == name else [known])
            ]
        return shown


def _apply(tool: Tool, options: Transformation) -> list[Tool]:
    if options.get("keep", False):
        if options.get("name", tool.name) == tool.name:
            raise UsageError(f"transform {tool.name}: keep=True needs another name= for the new shape")
        return [tool, transformed(tool, options)]
    return [] if options.get("hidden", False) else [transformed(tool, options)]
