"""What the common answer formats dictate, to be drafted before anything similar was said."""

from __future__ import annotations

__all__ = ["SKELETONS"]

SKELETONS = (
    "```diff\n--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n",
    "```\n<<<<<<< SEARCH\n",
    "\n>>>>>>> REPLACE\n```\n",
    "*** Begin Patch\n*** Update File: f\n@@\n",
    "\n*** End Patch\n",
    '<tool_call>\n{"name": "str_replace", "arguments": {"path": "f", "old_str": "',
    '", "new_str": "',
    '"}}\n</tool_call>\n<tool_call>\n{"name": "',
    '<tool_call>\n{"name": "write_file", "arguments": {"path": "f", "content": "',
)
"""Each is one document: unified diffs, Aider's blocks, OpenAI's patches, tool calls of Hermes and Qwen models."""
