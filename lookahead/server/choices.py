"""One answer as it is told: in parts, or as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .job import Done
from .replies import chat_logprobs, text_logprobs, tool_call
from .tool_calls import FoundCall, ToolStream

if TYPE_CHECKING:
    from ..hf.answering import Answer
    from ..hf.listening import TokenChances

__all__ = ["ChatChoice", "Choice", "TextChoice"]


class Choice(ABC):
    """One answer of a reply.

    Attributes
    ----------
    answer : Answer or None
        The figures, once the answer has ended.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.answer: Answer | None = None
        self._reason: str | None = None

    @abstractmethod
    def begin(self) -> list[dict[str, Any]]:
        """Return the parts that are told before any text."""

    @abstractmethod
    def feed(self, text: str, chances: Sequence[TokenChances]) -> list[dict[str, Any]]:
        """Return the parts that tell of more text."""

    @abstractmethod
    def end(self, done: Done) -> list[dict[str, Any]]:
        """Return the last parts."""

    @abstractmethod
    def whole(self) -> dict[str, Any]:
        """Return the answer as a whole."""


class ChatChoice(Choice):
    """An answer of a chat: text and calls of tools.

    Parameters
    ----------
    index : int
    tokenizer : PreTrainedTokenizerBase
    logprobs : int or None
        Likeliest tokens told of each place; None tells no log-probabilities.
    tools : ToolStream or None
        Finds calls, where there are tools.
    """

    def __init__(self, index: int, tokenizer: Any, logprobs: int | None, tools: ToolStream | None) -> None:
        super().__init__(index)
        self._tokenizer, self._logprobs, self._tools = tokenizer, logprobs, tools
        self._text = ""
        self._calls: list[dict[str, Any]] = []
        self._chances: list[TokenChances] = []
        self._told = 0  # of them

    def begin(self) -> list[dict[str, Any]]:
        """Return the part that names the role."""
        return [self._part({"role": "assistant", "content": ""})]

    def feed(self, text: str, chances: Sequence[TokenChances]) -> list[dict[str, Any]]:
        """Return the parts that tell of more text."""
        self._chances.extend(chances)
        return self._parts([text] if self._tools is None else self._tools.feed(text))

    def end(self, done: Done) -> list[dict[str, Any]]:
        """Return the last parts."""
        parts = self._parts([] if self._tools is None else self._tools.end())
        self.answer, self._reason = done.answer, "tool_calls" if self._calls else done.reason
        return [*parts, self._part({}, self._reason)]

    def whole(self) -> dict[str, Any]:
        """Return the answer as a whole."""
        message: dict[str, Any] = {"role": "assistant", "content": self._text, "refusal": None}
        if self._calls:
            message |= {"content": self._text or None, "tool_calls": self._calls}
        logprobs = None
        if self._logprobs is not None:
            logprobs = chat_logprobs(self._tokenizer, self._chances, self._logprobs)
        return {"index": self.index, "message": message, "logprobs": logprobs, "finish_reason": self._reason}

    def _parts(self, found: Sequence[str | FoundCall]) -> list[dict[str, Any]]:
        """Return parts that tell of text and calls."""
        parts = []
        for one in found:
            if isinstance(one, str):
                self._text += one
                parts.append(self._part({"content": one}))
            else:
                call = tool_call(one)
                parts.append(self._part({"tool_calls": [{"index": len(self._calls), **call}]}))
                self._calls.append(call)
        return parts

    def _part(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        """Return a part, with the log-probabilities that were not told yet."""
        logprobs = None
        if self._logprobs is not None and self._told < len(self._chances):
            logprobs = chat_logprobs(self._tokenizer, self._chances[self._told :], self._logprobs)
            self._told = len(self._chances)
        return {"index": self.index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}


class TextChoice(Choice):
    """An answer of a completion.

    Parameters
    ----------
    index : int
    tokenizer : PreTrainedTokenizerBase
    logprobs : int or None
    echoed : str
        What the text begins with.
    """

    def __init__(self, index: int, tokenizer: Any, logprobs: int | None, echoed: str) -> None:
        super().__init__(index)
        self._tokenizer, self._logprobs, self._echoed = tokenizer, logprobs, echoed
        self._text = echoed
        self._chances: list[TokenChances] = []

    def begin(self) -> list[dict[str, Any]]:
        """Return the part that echoes the prompt, if it is to be echoed."""
        return [self._part(self._echoed, [], None, 0)] if self._echoed else []

    def feed(self, text: str, chances: Sequence[TokenChances]) -> list[dict[str, Any]]:
        """Return the part that tells of more text."""
        start = len(self._text)
        self._text += text
        self._chances.extend(chances)
        return [self._part(text, chances, None, start)]

    def end(self, done: Done) -> list[dict[str, Any]]:
        """Return the last part."""
        self.answer, self._reason = done.answer, done.reason
        return [self._part("", [], done.reason, len(self._text))]

    def whole(self) -> dict[str, Any]:
        """Return the answer as a whole."""
        return self._part(self._text, self._chances, self._reason, len(self._echoed))

    def _part(self, text: str, chances: Sequence[TokenChances], reason: str | None, start: int) -> dict[str, Any]:
        """Return a part; `start` is where the tokens begin in the text."""
        logprobs = None
        if self._logprobs is not None and chances:
            logprobs = text_logprobs(self._tokenizer, chances, self._logprobs, start)
        return {"index": self.index, "text": text, "logprobs": logprobs, "finish_reason": reason}
