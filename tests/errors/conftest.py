"""Certificates, and nothing that is remembered of servers from other tests."""

from __future__ import annotations

from tests.faults.conftest import no_verdicts, pki

__all__ = ["no_verdicts", "pki"]
