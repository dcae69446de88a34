"""All steps of one call, and the figures that follow from them."""

from __future__ import annotations

import codecs
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..stats import MODEL
from .file import Pieces, read, write
from .page import page
from .step import Step

__all__ = ["Trace", "numbered"]


def numbered(tokens: list[int]) -> list[bytes]:
    """Return what stands for tokens where no tokenizer tells their text: their numbers."""
    return [f"⟨{token}⟩".encode() for token in tokens]


@dataclass(eq=False)
class Trace:
    """Every step of one call.

    Attributes
    ----------
    prompts : list of list of int
        Each row's prompt, without padding.
    steps : list of Step
        In the order in which they happened. A step that was interrupted is not there.
    pieces : callable
        ``pieces(tokens)`` gives the bytes of each token.
    about : dict of str
        The model and the releases.
    note : str or None
        Why nothing could be drafted, if so.
    """

    prompts: list[list[int]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    pieces: Pieces = numbered
    about: dict[str, str] = field(default_factory=dict)
    note: str | None = None

    def save(self, path: str | Path) -> None:
        """Write a file of JSON Lines that `load` reads, with the texts of all tokens."""
        write(self, Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read what `save` has written.

        Raises
        ------
        ValueError
            For what is no trace, is damaged, or was written by a later version.
        """
        return cls(*read(Path(path)))

    def html(self) -> str:
        """Return one page that shows everything, in need of nothing beside it."""
        return page(self)

    def row(self, row: int) -> list[Step]:
        """Return the steps of one row."""
        return [step for step in self.steps if step.row == row]

    def texts(self, tokens: list[int]) -> list[str]:
        """Return the text that each token adds; a character of several tokens comes with the last of them."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        texts = [decoder.decode(piece) for piece in self.pieces(tokens)]
        rest = decoder.decode(b"", final=True)
        if rest:
            texts[-1] += rest
        return texts

    # ---- Figures ----

    @property
    def sources(self) -> list[str]:
        """All sources that drafts named, ``"model"`` first, then in order of appearance."""
        return list(dict.fromkeys([MODEL, *(source for step in self.steps for source in step.draft.sources)]))

    @property
    def tokens(self) -> int:
        """Tokens emitted, of all rows."""
        return sum(len(step.tokens) for step in self.steps)

    @property
    def forwards(self) -> int:
        """Forwards of the model, the prompt's included."""
        return max((step.forward for step in self.steps), default=0)

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Time of drafting, of verifying, and the rest; rows that share a forward count it once."""
        times = {step.forward: step for step in self.steps}.values()
        return (
            sum(step.draft_seconds for step in times),
            sum(step.verify_seconds for step in times),
            sum(step.rest_seconds for step in times),
        )

    def by_source(self) -> dict[str, tuple[int, int]]:
        """Return for each source how many tokens were drafted from it and how many of them accepted.

        For ``"model"`` the second number is that of the tokens that were not drafted.
        """
        drafted, accepted = Counter[str](), Counter[str]()
        for step in self.steps:
            drafted.update(step.draft.sources)
            accepted.update(one.source for one in step.emitted())
        return {source: (drafted[source], accepted[source]) for source in self.sources}
