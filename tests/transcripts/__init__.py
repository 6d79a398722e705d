"""The stories of the project as transcripts: golden frames, played against real servers."""

import pytest

pytest.register_assert_rewrite("tests.transcripts.player")
