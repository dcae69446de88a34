"""What the common answer formats dictate, to be drafted before anything similar was said."""

from __future__ import annotations

import re

__all__ = ["named_blocks", "skeletons"]

_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]{1,64}/){0,16}[\w.-]{1,64}\.\w{1,8}(?=[`*:]{0,3}$)")
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


def named_blocks(text: str) -> list[tuple[int, str]]:
    """Return where the fenced blocks begin that stand right behind a path, and their paths."""
    found, at = [], text.find("\n```")
    while at >= 0:
        if match := _PATH.search(text, text.rfind("\n", 0, at) + 1, at):
            found.append((at, match[0]))
        at = text.find("\n```", at + 1)
    return found


def skeletons(paths: list[str]) -> list[str]:
    """Return pieces of unified diffs, Aider's blocks, OpenAI's patches and tool calls, for the last two files."""
    latest = list(dict.fromkeys(reversed(paths)))[:2] or ["file"]
    return [*_FIXED, *(text.format(path=path) for path in reversed(latest) for text in _NAMING)]
