"""The version of the package, where every layer may read it; it knows nothing else."""

from __future__ import annotations

VERSION = "0.1.0"
