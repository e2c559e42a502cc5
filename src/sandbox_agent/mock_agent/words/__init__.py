"""All words, in the order of the manual."""

from sandbox_agent.mock_agent.words import asking, faults, flood, helping, kinds, talking
from sandbox_agent.mock_agent.words.table import WORDS, Command, Word, parse_prompt

__all__ = ["WORDS", "Command", "Word", "asking", "faults", "flood", "helping", "kinds", "parse_prompt", "talking"]
