"""Shows an answer while it is written: coloured by source on a terminal, as plain text elsewhere."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.segment import Segment, Segments

from .colours import printable, style_of

__all__ = ["Screen"]


class Screen:
    """A streamer for `Lookahead.generate` and for `generate`.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        Gives the text; special tokens are left out.
    console : Console or None
        Where to write; None keeps the text and writes nothing.
    ahead : Lookahead, optional
        Whose statistics tell each token's source, already when the token is shown; without it nothing is coloured.
    """

    def __init__(self, tokenizer: Any, console: Console | None, ahead: Any = None) -> None:
        self._tokenizer, self._console, self._ahead = tokenizer, console, ahead
        self._begun = False
        self._shown = self._from = 0
        self.tokens: list[int] = []
        self.text = ""

    def put(self, value: Any) -> None:
        """Show one token, int64 [1]; the first call brings the prompt, which is not shown."""
        if not self._begun:
            self._begun = True
            return
        self.tokens.append(int(value))
        self._show(finished=False)

    def end(self) -> None:
        """Show what was held back, and finish the line."""
        self._show(finished=True)
        if self._console is not None and self._console.is_terminal:
            self._console.print()

    def _show(self, finished: bool) -> None:
        """Show the text that the tokens since the last time add; a character may take several of them."""
        known = self._decoded(self._from, self._shown)
        text = self._decoded(self._from, len(self.tokens))[len(known) :]
        if not text or (text.endswith("\N{REPLACEMENT CHARACTER}") and not finished):
            return
        self._from, self._shown = self._shown, len(self.tokens)
        self.text += text
        if self._console is None:
            return
        if self._console.is_terminal:
            style = "none" if self._ahead is None else style_of(self._ahead.stats.token_sources[-1])
            segment = Segment(printable(text), self._console.get_style(style))  # a Text would widen tabs
            self._console.print(Segments([segment]), end="", soft_wrap=True)
        else:
            sys.stdout.write(text)
        sys.stdout.flush()

    def _decoded(self, begin: int, end: int) -> str:
        """Return the text of some tokens; those before are decoded again, since a space may depend on them."""
        text: str = self._tokenizer.decode(self.tokens[begin:end], skip_special_tokens=True)
        return text
