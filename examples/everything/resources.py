"""The part of the everything server that is read: resources, templates, and one that changes."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, Literal

from dragoman import ResourceNotFound, Server

HERE = Path(__file__).parent

versions = count(1)
watched = {"version": next(versions)}


def template_data(id: str) -> dict[str, Any]:  # noqa: A002  # the variable of its URI has this name
    """One of a family: the variable of its URI is the parameter of this function."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def primes(below: int = 100, order: Literal["rising", "falling"] = "rising") -> list[int]:
    """The primes below a number, which is written into the query of the URI."""
    if below > 10_000:
        raise ResourceNotFound(f"there are no primes here beyond 10000, so not all below {below}")
    found = [n for n in range(2, below) if all(n % d for d in range(2, int(n**0.5) + 1))]
    return found if order == "rising" else found[::-1]


def source(name: str) -> Path | None:
    """The source of a part of this server; None says that there is none of this name."""
    return HERE / name if name in sources() else None


def sources() -> list[str]:
    return sorted(path.name for path in HERE.glob("*.py"))


def watched_resource() -> dict[str, int]:
    """Changes whenever the tool `test_touch_watched_resource` is called."""
    return watched


def add_to(server: Server, picture: bytes) -> None:
    """All of them, the simplest first."""
    server.add_resource(
        "test://static-text",
        "This is the content of the static text resource.",
        title="Static text",
        description="Text that never changes, so it may be kept for a day",
        ttl_ms=24 * 60 * 60 * 1000,
        cache_scope="public",
    )
    server.add_resource(
        "test://static-binary",
        picture,
        title="Static picture",
        description="One red pixel",
        mime_type="image/png",
        annotations={"audience": ["user"], "priority": 0.5},
        last_modified="2026-07-28T12:00:00Z",
    )
    server.add_resource("test://watched-resource", watched_resource, mime_type="application/json")
    server.add_resource("test://template/{id}/data", template_data, mime_type="application/json")
    server.add_resource("test://primes{?below,order}", primes, mime_type="application/json")
    server.add_resource("test://source/{name}", source, complete={"name": sources()})

    @server.tool
    def test_touch_watched_resource() -> str:
        """Changes `test://watched-resource` and tells everybody who watches it."""
        watched["version"] = next(versions)
        server.notify_resource_updated("test://watched-resource")
        return f"It is in version {watched['version']} now"
