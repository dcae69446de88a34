"""What one user's requests share: earlier texts to copy from, conversations that go on, corpora known beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .draft.drafter import Drafter
from .draft.memory import Memory
from .hf.loop import Lookahead
from .index.static_corpus import StaticCorpus
from .index.storage import SESSION, StorageError, check_tokenizer, read, write
from .views.tokens import Tokens

__all__ = ["Session"]

_SMALLEST = 2**20
_BORDER = np.full(1, -1, np.int32)


class Session:
    """Gives `Lookahead` objects that draft from each other's prompts and outputs, in bounded memory.

    What one session has seen never reaches another's drafts. A conversation's next turn costs what is new in it: the
    beginning that its prompt shares with an earlier one is not indexed again. Threads may share a session.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase, optional
        The model's; without it texts are token ids.
    max_bytes : int
        Cap on what is remembered, 1,048,576 and above; beyond it the least recently useful goes first. Some 30 to 60
        bytes are needed for a token. What a call needs while it runs, and corpora, come on top.
    corpora : sequence of str, Path or StaticCorpus
        Files that ``lookahead index`` has written with the same tokenizer, to draft from as well.
    **options
        The fields of `Options`, for all `Lookahead` objects.

    Raises
    ------
    StorageError
        A ValueError for a corpus that cannot be used.
    ValueError
        For a `max_bytes` that is too small.
    TypeError
        For corpora that are none.

    Examples
    --------
    >>> session = Session()
    >>> ahead = session.lookahead()  # model.generate(..., custom_generate=ahead), turn after turn
    """

    def __init__(
        self,
        tokenizer: Any = None,
        max_bytes: int = 256 * 2**20,
        corpora: Sequence[str | Path | StaticCorpus] = (),
        **options: Any,
    ) -> None:
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < _SMALLEST:
            raise ValueError(f"max_bytes={max_bytes!r}; allowed is an int of {_SMALLEST} and above")
        if isinstance(corpora, str | Path | StaticCorpus):
            raise ValueError(f"corpora={corpora!r} is one corpus; allowed is a list of them: corpora=[...]")
        if not isinstance(corpora, Sequence) or not all(isinstance(one, str | Path | StaticCorpus) for one in corpora):
            raise TypeError(f"corpora={corpora!r} is no list of corpora; allowed are paths and StaticCorpus objects")
        Drafter(tokenizer, **options)  # says at once what is wrong with the options
        self._tokenizer = tokenizer
        self._tokens = None if tokenizer is None else Tokens.of(tokenizer)
        self._options = options
        opened = [one if isinstance(one, StaticCorpus) else StaticCorpus.open(one) for one in corpora]
        given = self._fingerprint if opened else ""
        for corpus in opened if given else ():  # without a tokenizer the caller vouches for the ids
            then = "build one with this one: lookahead index"
            check_tokenizer(f"the corpus {corpus.name}", corpus.fingerprint, given, then)
        self._memory = Memory(max_bytes, opened)

    def lookahead(self, **settings: Any) -> Lookahead:
        """Return an object for ``custom_generate`` that shares what this session has seen.

        Parameters
        ----------
        **settings
            What `Lookahead` takes beside the tokenizer; they come before the session's options.
        """
        return Lookahead(self._tokenizer, **{**self._options, **settings}).remember(self._memory)

    def __call__(self, *_: Any, **__: Any) -> None:
        """Refuse to be a ``custom_generate`` itself, which would be passed over in silence.

        Raises
        ------
        TypeError
            Always.
        """
        raise TypeError("a Session does not decode; pass one of its objects: custom_generate=session.lookahead()")

    def drafter(self, **options: Any) -> Drafter:
        """Return a `Drafter` that shares what this session has seen; what it says is remembered by its `end`."""
        drafter = Drafter(self._tokenizer, **{**self._options, **options})
        drafter.memory, drafter.calibration = self._memory, self._memory.calibration
        return drafter

    def add(self, text: Any) -> None:
        """Remember a text, or token ids, int [n], that nobody has said yet.

        Raises
        ------
        ValueError
            For ids that are no vector of integers from 0 to 2**31 - 1, or for text without a tokenizer.
        """
        self._memory.add(Drafter(self._tokenizer).ids(text))

    def clear(self) -> None:
        """Forget all texts; how often guesses were right stays known."""
        self._memory.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return self._memory.nbytes

    # ---- Files ----

    def save(self, path: str | Path) -> None:
        """Write what is remembered to a file, which takes its name when it is whole: a crash leaves the last one.

        Conversations are written as texts: the first turn after `load` reads its prompt anew.
        """
        passages = self._memory.passages()
        sections = {
            "tokens": np.concatenate([part for one in passages for part in (one, _BORDER)] or [_BORDER[:0]]),
            "evidence": self._memory.calibration.evidence.reshape(-1).copy(),  # other threads go on learning
        }
        facts = {"fingerprint": self._fingerprint, "kinds": self._memory.calibration.kinds}
        write(Path(path).expanduser(), facts, sections, SESSION)

    def load(self, path: str | Path) -> None:
        """Remember what `save` has written, as the least recently useful; what is remembered already stays.

        Raises
        ------
        StorageError
            A ValueError for a file that is no session, is damaged, or was written with another tokenizer.
        """
        stored = read(Path(path).expanduser(), SESSION)
        stored.verify()
        if given := self._fingerprint:
            check_tokenizer(str(path), str(stored.facts.get("fingerprint")), given, SESSION.again)
        calibration, tokens = self._memory.calibration, stored.array("tokens", np.int32).copy()  # the file may change
        evidence = stored.array("evidence", calibration.evidence.dtype)
        try:
            calibration.restore(stored.facts.get("kinds"), evidence)
        except ValueError as error:
            raise StorageError(f"{path} is damaged: {error}; {SESSION.again}") from error
        self._memory.fill([part[:-1] for part in np.split(tokens, np.flatnonzero(tokens < 0) + 1)[:-1]])

    @property
    def _fingerprint(self) -> str:
        """That of the tokenizer, empty without one."""
        return "" if self._tokens is None else self._tokens.fingerprint
