"""The contract: the same handlers, on every revision and every transport, in each revision's own terms."""

import pytest

pytest.register_assert_rewrite("tests.contract.room")
