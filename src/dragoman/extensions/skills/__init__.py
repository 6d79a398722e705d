"""The extension `io.modelcontextprotocol/skills`: folders of instructions for agents, served as resources."""

from __future__ import annotations

from dragoman.extensions.skills.skills import Skills
from dragoman.model.skills_extension import NAME, Skill, SkillResource

__all__ = ["NAME", "Skill", "SkillResource", "Skills"]
