"""What a request may hold, as OpenAI's API defines it; a field that OpenAI does not know is refused, as there."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ChatRequest", "CompletionRequest", "Message", "Part", "Tool"]

Text = Annotated[str, Field(min_length=1)]
Stop = str | Annotated[list[str], Field(max_length=16)] | None
Bias = dict[Annotated[str, Field(pattern=r"^\d{1,9}$")], Annotated[float, Field(ge=-100, le=100)]] | None
Penalty = Annotated[float, Field(ge=-2, le=2)] | None
Count = Annotated[int, Field(ge=1, le=2**31 - 1)] | None


class _Strict(BaseModel):
    """A part whose fields are all known."""

    model_config = ConfigDict(strict=True, extra="forbid")


class _Open(BaseModel):
    """A part that may hold more, which is left alone: clients send back what other servers gave them."""

    model_config = ConfigDict(strict=True, extra="ignore")


class Part(_Open):
    """A part of a message's content."""

    type: str
    text: str | None = None


class Function(_Open):
    """What a tool is called and takes."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(_Open):
    """A function that the model may call."""

    type: Literal["function"]
    function: Function


class Call(_Open):
    """The name and the arguments, a JSON text, of a call."""

    name: str
    arguments: str = "{}"


class ToolCall(_Open):
    """A call that the assistant made in a turn before."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: Call


class Message(_Open):
    """A message of a chat."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class Prediction(_Strict):
    """What the answer is expected to resemble."""

    type: Literal["content"]
    content: str | list[Part]


class Named(_Open):
    """The name of a function."""

    name: str


class ToolChoice(_Open):
    """The function that has to be called."""

    type: Literal["function"]
    function: Named


class JsonSchema(_Open):
    """A JSON schema with a name."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    json_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(_Strict):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(_Open):
    """What a stream tells beside the text."""

    include_usage: bool | None = None


class Sampled(_Strict):
    """What both kinds of requests say about how tokens are chosen."""

    model: Text
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    stop: Stop = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    max_tokens: Count = None
    presence_penalty: Penalty = None
    frequency_penalty: Penalty = None
    logit_bias: Bias = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Annotated[str, Field(max_length=256)] | None = None
    # known to other servers of open models, too
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None


class ChatRequest(Sampled):
    """The body of ``POST /v1/chat/completions``."""

    messages: Annotated[list[Message], Field(min_length=1)]
    max_completion_tokens: Count = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    prediction: Prediction | None = None
    response_format: ResponseFormat | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    # taken and left alone: they change nothing here
    reasoning_effort: str | None = None
    verbosity: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    modalities: list[Literal["text"]] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None


class CompletionRequest(Sampled):
    """The body of ``POST /v1/completions``."""

    prompt: str | list[str] | list[int] | list[list[int]]
    echo: bool | None = None
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    best_of: Annotated[int, Field(ge=1)] | None = None
    suffix: str | None = None
    prediction: Prediction | None = None
