"""A weather server over HTTP: text and structured content, progress while it works, a list that keeps.

    python examples/weather/server.py                                   # http://127.0.0.1:8000/mcp
    dragoman call http://127.0.0.1:8000/mcp get_weather location=서울

The list of tools may be used for a minute without asking again (`ttl_ms`). While a call runs it tells
how far it is; over HTTP that turns the answer into a stream of events, and only then.
"""

from __future__ import annotations

import sys
from typing import TypedDict

from dragoman import Context, Server, ToolError

server = Server("weather", version="1.0.0", ttl_ms=60_000, cache_scope="public")


class Weather(TypedDict):
    """Temperature in degrees Celsius, wind in metres per second."""

    location: str
    temperature: float
    wind: float
    conditions: str


STATIONS: dict[str, list[Weather]] = {
    "서울": [
        {"location": "서울", "temperature": 21.0, "wind": 2.0, "conditions": "맑음"},
        {"location": "서울", "temperature": 22.0, "wind": 4.0, "conditions": "맑음"},
    ],
    "Reykjavík": [
        {"location": "Reykjavík", "temperature": 4.0, "wind": 11.0, "conditions": "drizzle"},
    ],
}


@server.tool(annotations={"readOnlyHint": True})
async def get_weather(location: str, ctx: Context) -> Weather:
    """Tell the weather of a place, as the mean of its stations."""
    stations = STATIONS.get(location)
    if stations is None:
        raise ToolError(f"no station in {location}; there are some in {', '.join(STATIONS)}")
    for done, _ in enumerate(stations, start=1):
        await ctx.report_progress(done, len(stations), f"{location} {done}/{len(stations)}")
    return {
        "location": location,
        "temperature": sum(station["temperature"] for station in stations) / len(stations),
        "wind": sum(station["wind"] for station in stations) / len(stations),
        "conditions": stations[-1]["conditions"],
    }


if __name__ == "__main__":
    server.run("http", port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
