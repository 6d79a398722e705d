"""The thread behind faces without `await`: whoever waits for an outcome gets one."""

from __future__ import annotations

import asyncio
import threading

from dragoman.client.background import Background


def test_what_finishes_in_the_last_turn_of_the_loop_is_handed_over():
    background = Background("test")
    outcomes: list[str] = []

    async def last() -> str:
        # The loop ends with the turn in which this is done, before anybody was told that it is.
        background._stopped = True
        asyncio.get_running_loop().stop()
        return "done"

    waiter = threading.Thread(target=lambda: outcomes.append(background.run(last())), daemon=True)
    waiter.start()
    waiter.join(20)
    assert outcomes == ["done"]
    background.stop()
