"""The page of the documentation says what the tables say."""

from __future__ import annotations

from tests.interop.page import PAGE, page


def test_the_page_is_that_of_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.interop.page"
