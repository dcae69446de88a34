"""What the common answer formats dictate, to be drafted before anything similar was said."""

from __future__ import annotations

import re

from .dialects import Dialect

__all__ = ["named_blocks", "skeletons"]

_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]{1,64}/){0,16}[\w.-]{1,64}\.\w{1,8}(?=[`*:]{0,3}$)")
_FIXED = (
    "```\n<<<<<<< SEARCH\n",
    "\n>>>>>>> REPLACE\n```\n",
    "\n*** End Patch\n",
)
_NAMING = (
    "```diff\n--- a/{path}\n+++ b/{path}\n@@ -1,7 +1,7 @@\n",
    "*** Begin Patch\n*** Update File: {path}\n@@\n",
)
_TOOLS = (("str_replace", "old_str"), ("write_file", "content"))  # and the key behind the path


def named_blocks(text: str) -> list[tuple[int, str]]:
    """Return where the fenced blocks begin that stand right behind a path, and their paths."""
    found, at = [], text.find("\n```")
    while at >= 0:
        if match := _PATH.search(text, text.rfind("\n", 0, at) + 1, at):
            found.append((at, match[0]))
        at = text.find("\n```", at + 1)
    return found


def skeletons(paths: list[str], dialects: list[Dialect]) -> list[str]:
    """Return pieces of unified diffs, Aider's blocks, OpenAI's patches and tool calls, for the last two files."""
    latest = list(reversed(list(dict.fromkeys(reversed(paths)))[:2] or ["file"]))
    fixed = [text for dialect in dialects for text in (dialect.next("new_str"), dialect.tail)]
    naming = [text.replace("{path}", path) for path in latest for text in _NAMING]
    calls = [dialect.call(tool, {"path": path}, key) for path in latest for dialect in dialects for tool, key in _TOOLS]
    return [*_FIXED, *fixed, *naming, *calls]
