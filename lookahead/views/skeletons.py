"""What the common answer formats dictate, to be drafted before anything similar was said."""

from __future__ import annotations

import re

__all__ = ["skeletons"]

_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]{1,64}/){0,16}[\w.-]{1,64}\.\w{1,8}(?=[`*:]{0,3}\n```)")
_FIXED = (
    "```\n<<<<<<< SEARCH\n",
    "\n>>>>>>> REPLACE\n```\n",
    "\n*** End Patch\n",
    '", "new_str": "',
    '"}}\n</tool_call>',
)
_NAMING = (
    "```diff\n--- a/{path}\n+++ b/{path}\n@@ -1,7 +1,7 @@\n",
    "*** Begin Patch\n*** Update File: {path}\n@@\n",
    '<tool_call>\n{{"name": "str_replace", "arguments": {{"path": "{path}", "old_str": "',
    '<tool_call>\n{{"name": "write_file", "arguments": {{"path": "{path}", "content": "',
)


def skeletons(prompt: str) -> list[str]:
    """Return pieces of unified diffs, Aider's blocks, OpenAI's patches and tool calls, for the files of a prompt.

    A file counts if its path stands right before a fence; the last two do, or a name that stands for any.
    """
    paths = list(dict.fromkeys(reversed(_PATH.findall(prompt))))[:2] or ["file"]
    return [*_FIXED, *(text.format(path=path) for path in reversed(paths) for text in _NAMING)]
