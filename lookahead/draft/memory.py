"""What a session remembers: texts of earlier requests, and conversations that may go on."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..index.corpus import Corpus
from ..index.static_corpus import StaticCorpus
from .calibration import Calibration
from .foreign import Foreign, Recalled
from .reader import Reader
from .remembered import Remembered

__all__ = ["Memory"]

_SHARED = 64  # tokens that two prompts begin with in common, for one to go on from the other
_TAIL = 64  # tokens that are said again where a prompt leaves the way of an earlier one

Started: TypeAlias = tuple[Corpus, "Reader | None"]


@dataclass(eq=False)
class Conversation:
    """A prompt as it was read, before any answer; `stale` tokens of the corpus belong to other branches."""

    ids: NDArray[np.int32]
    corpus: Corpus
    reader: Reader | None
    stale: int = 0

    def shared(self, prompt: NDArray[np.int32]) -> int:
        """Count the tokens that a prompt begins with in common."""
        size = min(len(self.ids), len(prompt))
        differ = np.flatnonzero(self.ids[:size] != prompt[:size])
        return int(differ[0]) if differ.size else size

    def copy(self) -> Conversation:
        """Return one that goes its own way."""
        corpus = self.corpus.copy()
        return Conversation(self.ids, corpus, self.reader and self.reader.fork(corpus), self.stale)

    def go_on(self, prompt: NDArray[np.int32], shared: int) -> None:
        """Read on to the end of a prompt."""
        if shared < len(self.ids):
            self.stale += len(self.ids) - shared
            self.corpus.begin("prompt")
            self.corpus.extend(prompt[max(0, shared - _TAIL) : shared])
        more = prompt[shared:]
        if self.reader is not None:
            self.reader.resume(more.tolist())
        else:
            self.corpus.relabel("prompt")
            self.corpus.extend(more)
            self.corpus.relabel("output")
        self.ids = prompt

    @property
    def nbytes(self) -> int:
        """Bytes of the index and the ids."""
        return self.corpus.nbytes + self.ids.nbytes


class Memory:
    """What the drafters of one session share; any number of threads may use it.

    Half of `max_bytes` is for texts to copy from, half for conversations; of both the least recently useful goes first.

    Parameters
    ----------
    max_bytes : int
        Cap on what is remembered, in bytes; a sequence that is being written has its own memory.
    corpora : sequence of StaticCorpus
        Texts known beforehand.

    Attributes
    ----------
    calibration : Calibration
        What became of earlier guesses.
    """

    def __init__(self, max_bytes: int, corpora: Sequence[StaticCorpus] = ()) -> None:
        self._share = max_bytes // 2
        self._corpora = tuple(corpora)
        self._lock = threading.RLock()
        self.calibration = Calibration()
        self.clear()

    def clear(self) -> None:
        """Forget all texts and conversations, but not how often guesses were right."""
        with self._lock:
            self._texts = Remembered(self._share)
            self._conversations: list[Conversation] = []  # the most recently useful last

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        with self._lock:
            return self._texts.nbytes + sum(one.nbytes for one in self._conversations)

    def foreign(self) -> list[Foreign]:
        """Return the other texts that a new sequence may copy from."""
        found = [Foreign(f"corpus:{corpus.name}", corpus) for corpus in self._corpora]
        return [Recalled("session", self._texts, self._lock), *found]

    def add(self, ids: Sequence[int]) -> None:
        """Remember a text."""
        with self._lock:
            self._texts.add(np.asarray(ids, np.int32))

    def passages(self) -> list[NDArray[np.int32]]:
        """Return what is remembered, int32 [n] each, the least recently useful first."""
        with self._lock:
            return self._texts.passages()

    def fill(self, passages: Sequence[NDArray[np.int32]]) -> None:
        """Remember passages as `passages` gave them, as less useful than what is remembered already."""
        with self._lock:
            self._texts.fill(list(passages))

    # ---- Conversations ----

    def resume(self, prompt: Sequence[int], max_bytes: int | None) -> tuple[Started | None, int]:
        """Return the corpus and the reader of a prompt, if another begins as it does, and how much of it was read.

        They are copies; the conversation goes on, and where the prompt leaves its way, another one begins.
        """
        ids = np.asarray(prompt, np.int32)
        with self._lock:
            best, known = self._nearest(ids, max_bytes)
            if best is None:
                return None, 0
            if known < len(best.ids):
                best = best.copy()
            else:
                self._conversations.remove(best)
            best.go_on(ids, known)
            self._keep(best)
            copied = best.copy()
            return (copied.corpus, copied.reader), known

    def keep(self, prompt: Sequence[int], corpus: Corpus, reader: Reader | None) -> None:
        """Remember a prompt as it was read; the corpus and the reader are copied."""
        conversation = Conversation(np.asarray(prompt, np.int32), corpus, reader).copy()
        with self._lock:
            self._keep(conversation)

    def _nearest(self, prompt: NDArray[np.int32], max_bytes: int | None) -> tuple[Conversation | None, int]:
        """Return the conversation that saves most of the reading, and how many tokens of the prompt it has read."""
        best, most, known = None, 0, 0
        for one in reversed(self._conversations):
            if one.corpus.max_bytes != max_bytes or one.corpus.first:
                continue
            shared = one.shared(prompt)
            saved = 2 * shared - one.stale - len(one.ids)  # what is read already, less what is of no use
            if shared >= _SHARED and saved > most:
                best, most, known = one, saved, shared
        return best, known

    def _keep(self, conversation: Conversation) -> None:
        """Add a conversation as the latest; where the bytes pass the cap, the least recently useful go."""
        self._conversations.append(conversation)
        while sum(one.nbytes for one in self._conversations) > self._share:
            del self._conversations[0]
