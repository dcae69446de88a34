"""From messages to a prompt: the model's chat template, and what of OpenAI's forms it wants otherwise."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Sequence
from typing import Any

from .errors import bad_request
from .schema import ChatRequest, Message, Part, Tool
from .tool_calls import Form, form_of

__all__ = ["Prompts", "joined"]


class Prompts:
    """Makes prompts; may be called from several threads.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizerBase
        One that nobody else uses.
    size : int
        Tokens that the model knows.
    longest : int or None
        Most tokens of a prompt.
    """

    def __init__(self, tokenizer: Any, size: int, longest: int | None) -> None:
        self.tokenizer, self._size, self._longest = tokenizer, size, longest
        self._lock = threading.Lock()
        template = getattr(tokenizer, "chat_template", None)
        self._templates = "\n".join(template.values()) if isinstance(template, dict) else template or ""
        self.form: Form | None = form_of(self._templates)
        self._arguments = frozenset(inspect.signature(tokenizer.apply_chat_template).parameters)

    def of_chat(self, request: ChatRequest, opening: str = "") -> list[int]:
        """Return the prompt of a chat; `opening` is how the answer begins.

        Raises
        ------
        ApiError
            Where the messages cannot be written by the template, or are too long.
        """
        if not self._templates:
            raise bad_request("the model has no chat template; use /v1/completions", "messages")
        tools = [_tool(one) for one in request.tools or []] if request.tool_choice != "none" else []
        if tools and self.form is None:
            raise bad_request("the model's chat template knows no tools; leave them out", "tools")
        extra = self._variables(request)
        messages = [_message(one) for one in request.messages]
        with self._lock:
            try:
                text = self.tokenizer.apply_chat_template(
                    messages,
                    tools=tools or None,
                    add_generation_prompt=True,
                    tokenize=False,
                    **extra,
                )
            except Exception as error:  # a template may raise anything, and says so for messages that it cannot write
                message = f"the model's chat template cannot write the messages: {error}; change them"
                raise bad_request(message, "messages") from error
            return self._encoded(text + opening, "messages", special=False)

    def _variables(self, request: ChatRequest) -> dict[str, Any]:
        """Return what the request gives the template; a template of its own, say, could run for ever."""
        given = request.chat_template_kwargs or {}
        wrong = sorted(self._arguments.intersection(given))
        if wrong:
            message = f"chat_template_kwargs holds {wrong[0]}; allowed are variables of the model's own template"
            raise bad_request(message, "chat_template_kwargs")
        return given

    def of_text(self, prompt: str | Sequence[int]) -> list[int]:
        """Return the prompt of a completion: a text, or token ids."""
        if isinstance(prompt, str):
            with self._lock:
                return self._encoded(prompt, "prompt", special=True)
        wrong = [token for token in prompt if not 0 <= token < self._size]
        if wrong:
            raise bad_request(f"prompt holds {wrong[0]}; a token is a number from 0 to {self._size - 1}", "prompt")
        return self._checked(list(prompt), "prompt")

    def of_prediction(self, content: str | Sequence[Part], most: int | None) -> list[int]:
        """Return the tokens of what an answer is expected to resemble; more than `most` are refused.

        They are made here and not beside the model, where everybody would wait for a long one.
        """
        text = joined(content, "prediction")
        with self._lock:
            ids = self._ids(text, "prediction", special=False)
        if most is not None and len(ids) > most:
            message = f"the prediction has {len(ids)} tokens, and {most} are allowed, the model's context; shorten it"
            raise bad_request(message, "prediction", "context_length_exceeded")
        return ids

    def _encoded(self, text: str, param: str, special: bool) -> list[int]:
        """Return the tokens of a text of which there are neither none nor too many."""
        return self._checked(self._ids(text, param, special), param)

    def _ids(self, text: str, param: str, special: bool) -> list[int]:
        """Return the tokens of a text."""
        try:
            ids: list[int] = self.tokenizer(text, add_special_tokens=special)["input_ids"]
        except (UnicodeEncodeError, TypeError) as error:
            raise bad_request(f"{param} is no text that can be written in UTF-8; repair it", param) from error
        return ids

    def _checked(self, ids: list[int], param: str) -> list[int]:
        """Return tokens of which there are neither none nor too many."""
        if not ids:
            raise bad_request(f"{param} is empty; give it some text", param)
        if self._longest is not None and len(ids) > self._longest:
            message = f"the prompt has {len(ids)} tokens, and {self._longest} are allowed; shorten it"
            raise bad_request(message, param, "context_length_exceeded")
        return ids


def joined(content: str | Sequence[Part] | None, param: str) -> str:
    """Return the text of a content; parts stand on lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    other = [part.type for part in content if part.text is None]
    if other:
        raise bad_request(f"{param} holds a part of type {other[0]!r}; the model reads text only", param)
    return "\n".join(part.text or "" for part in content)


def _message(message: Message) -> dict[str, Any]:
    """Return a message as templates want it: text, `system` for `developer`, arguments as an object."""
    role = "system" if message.role == "developer" else message.role
    plain: dict[str, Any] = {"role": role, "content": joined(message.content, "messages")}
    if message.name is not None:
        plain["name"] = message.name
    if message.tool_call_id is not None:
        plain["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        plain["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": _arguments(call.function.arguments)},
            }
            for call in message.tool_calls
        ]
    return plain


def _arguments(text: str) -> Any:
    """Return the arguments of a call as an object, as they are where they are none."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as templates want it."""
    function = tool.function
    described = {"name": function.name, "description": function.description or ""}
    return {"type": "function", "function": {**described, "parameters": function.parameters or {"type": "object"}}}
