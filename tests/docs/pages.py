"""The pages that users read, and the code in them."""

from __future__ import annotations

from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = {page.name: page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}


def blocks(name: str, *languages: str) -> list[tuple[int, str]]:
    """Return the fenced code of a page in some languages, each with the number of lines before it."""
    text = PAGES[name].read_text(encoding="utf-8")
    fences = [token for token in MarkdownIt().parse(text) if token.type == "fence" and token.map]
    return [(fence.map[0] + 1, fence.content) for fence in fences if fence.info.strip() in languages]
