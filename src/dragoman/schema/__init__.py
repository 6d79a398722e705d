"""Python signatures as JSON Schema, argument decoding, and validation with bounds.

This package holds everything that knows types and schemas, and refuses to know messages.
"""

from __future__ import annotations
