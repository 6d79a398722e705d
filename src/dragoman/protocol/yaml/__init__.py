"""YAML, as much of it as people write by hand and every reader understands in one way. It opens no files."""

from __future__ import annotations

from dragoman.protocol.yaml.reader import YamlFault, read_yaml

__all__ = ["YamlFault", "read_yaml"]
