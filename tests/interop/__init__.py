"""Real packages of other projects, both ways: our client at their servers, their clients at ours."""

import pytest

pytest.register_assert_rewrite("tests.interop.playing", "tests.interop.wire")
