"""What is sent: the objects of OpenAI's API."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from .tool_calls import FoundCall

if TYPE_CHECKING:
    from ..hf.answering import Answer
    from ..hf.listening import TokenChances

__all__ = ["ErrorReply", "Reply", "chat_logprobs", "text_logprobs", "tool_call", "usage"]


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorReply(BaseModel):
    """The body of an error."""

    error: ErrorDetail


@dataclass(frozen=True)
class Reply:
    """What all objects of one reply have in common.

    Attributes
    ----------
    kind : str
        ``"chat.completion"`` or ``"text_completion"``.
    model : str
        The name of the model.
    """

    kind: str
    model: str
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, choices: Sequence[dict[str, Any]], used: dict[str, Any]) -> dict[str, Any]:
        """Return the reply as one object."""
        return {**self._head(self.kind), "choices": list(choices), "usage": used}

    def chunk(self, choices: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Return a part of the reply."""
        kind = "chat.completion.chunk" if self.kind == "chat.completion" else self.kind
        return {**self._head(kind), "choices": list(choices), **more}

    def _head(self, kind: str) -> dict[str, Any]:
        """Return what every object begins with."""
        prefix = "chatcmpl" if self.kind == "chat.completion" else "cmpl"
        return {"id": f"{prefix}-{self.id}", "object": kind, "created": self.created, "model": self.model}


def usage(prompts: Iterable[int], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of a reply; a prompt that several answers share counts once."""
    read, written = sum(prompts), sum(len(one.tokens) for one in answers)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": min((one.cached_tokens for one in answers), default=0)},
        "completion_tokens_details": {
            "accepted_prediction_tokens": sum(one.accepted_prediction_tokens for one in answers),
            "rejected_prediction_tokens": sum(one.rejected_prediction_tokens for one in answers),
        },
    }


def tool_call(call: FoundCall) -> dict[str, Any]:
    """Return a call."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}


def chat_logprobs(tokenizer: Any, chances: Sequence[TokenChances], count: int) -> dict[str, Any]:
    """Return the log-probabilities of tokens as chats have them, with the `count` likeliest of each place."""
    content = [
        {
            **_token(tokenizer, one.token, one.logprob),
            "top_logprobs": [_token(tokenizer, token, logprob) for token, logprob in one.likeliest[:count]],
        }
        for one in chances
    ]
    return {"content": content, "refusal": None}


def text_logprobs(tokenizer: Any, chances: Sequence[TokenChances], count: int, start: int) -> dict[str, Any]:
    """Return the log-probabilities of tokens as completions have them; the text begins at `start`."""
    tokens, offsets = [tokenizer.decode([one.token]) for one in chances], []
    for token in tokens:
        offsets.append(start)
        start += len(token)
    tops = [{tokenizer.decode([token]): value for token, value in one.likeliest[:count]} for one in chances]
    return {
        "tokens": tokens,
        "token_logprobs": [one.logprob for one in chances],
        "top_logprobs": tops if count else None,
        "text_offset": offsets,
    }


def _token(tokenizer: Any, token: int, logprob: float) -> dict[str, Any]:
    """Return a token; its bytes are left out where it is a part of a character."""
    text = tokenizer.decode([token])
    whole = None if "\ufffd" in text else list(text.encode("utf-8", "replace"))
    return {"token": text, "logprob": max(logprob, -9999.0), "bytes": whole}
