"""What every test has: `async def` tests run on a loop of their own, and crowded areas keep to one worker."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator

import pytest
from hypothesis import settings

# Property tests run the same examples everywhere, and take the time that a busy machine needs.
settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.load_profile("steady")

# Areas whose tests start servers and suites of other projects: one at a time, on one worker.
ONE_WORKER = ("conformance", "interop", "pins")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a fresh event loop, which reports what it leaves behind."""
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    wanted = inspect.signature(function).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    asyncio.run(function(**arguments))
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parts = item.path.parts
        for area in ONE_WORKER:
            if area in parts:
                item.add_marker(pytest.mark.xdist_group(area))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test printed or logged may be no Unicode text, and workers pass reports on as UTF-8."""
    report = yield
    report.sections = [(_text(title), _text(content)) for title, content in report.sections]
    return report


def _text(words: str) -> str:
    return words.encode("utf-8", "backslashreplace").decode("utf-8")
