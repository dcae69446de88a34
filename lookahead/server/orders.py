"""From a request to the answers that are to be given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..hf.answering import Settings, is_sampled, vocabulary_size
from ..hf.grammars import Grammars
from ..hf.loading import context_length
from .chat import Prompts
from .choices import ChatChoice, Choice, TextChoice
from .errors import bad_request
from .job import Job, Outbox
from .limits import Limits
from .schema import ChatRequest, CompletionRequest, Prediction, Sampled, ToolChoice
from .tool_calls import ToolStream, forced, marks

__all__ = ["Order", "Orders"]

_GREEDY = 1e-5  # a temperature below which sampling is a search for the maximum


@dataclass(frozen=True)
class Order:
    """The answers of one request, and how each of them is told."""

    jobs: list[Job]
    choices: list[Choice]
    prompts: list[int]


class Orders:
    """Makes orders for one model; may be called from several threads.

    Parameters
    ----------
    model : PreTrainedModel
    tokenizer : PreTrainedTokenizerBase
        One that nobody else uses.
    limits : Limits
    """

    def __init__(self, model: Any, tokenizer: Any, limits: Limits) -> None:
        self._size, self._context = vocabulary_size(model), context_length(model)
        self._is_sampled, self._limits, self._tokenizer = is_sampled(model), limits, tokenizer
        self._prompts = Prompts(tokenizer, self._size, limits.prompt_tokens)
        self._grammars = Grammars(model, tokenizer)

    def of_chat(self, request: ChatRequest, user: str, outbox: Outbox) -> Order:
        """Return the order of a chat, whose answers `user` waits for.

        Raises
        ------
        ApiError
            For what cannot be served as it is.
        """
        opening, grammar = self._constraint(request)
        prompt = self._prompts.of_chat(request, opening)
        count, wanted = self._count(request), request.max_completion_tokens or request.max_tokens
        top = (request.top_logprobs or 0) if request.logprobs else None
        if request.top_logprobs is not None and not request.logprobs:
            raise bad_request("top_logprobs is given without logprobs; set logprobs to true, too", "top_logprobs")
        form = self._prompts.form if request.tools and request.tool_choice != "none" else None
        is_single, stops = request.parallel_tool_calls is False, _stops(request)
        if form is not None and is_single and form.closing:
            stops.append(form.closing)
        make = partial(Job, user=user, prompt=prompt, outbox=outbox, stops=stops)
        expected = self._predicted(request.prediction)
        jobs = [
            make(
                index=index,
                settings=self._settings(request, len(prompt), wanted, index, top, grammar),
                shown=frozenset() if form is None else marks(form, self._tokenizer),
                prediction=expected,
            )
            for index in range(count)
        ]
        choices: list[Choice] = []
        for index in range(count):
            tools = None if form is None else ToolStream(form, opening, _tools(request), is_single)
            choices.append(ChatChoice(index, self._tokenizer, top, tools))
        return Order(jobs, choices, [len(prompt)])

    def of_text(self, request: CompletionRequest, user: str, outbox: Outbox) -> Order:
        """Return the order of a completion, which may have several prompts."""
        if request.suffix:
            raise bad_request("suffix is not supported; leave it out", "suffix")
        count = self._count(request)
        if request.best_of not in (None, count):
            raise bad_request(
                f"best_of={request.best_of} is not supported; allowed is the number n, {count}", "best_of"
            )
        given = _several(request.prompt)
        if not 1 <= count * len(given) <= self._limits.choices:
            message = f"{len(given)} prompts with n={count}; allowed are 1 to {self._limits.choices} answers in all"
            raise bad_request(message, "prompt")
        prompts = [self._prompts.of_text(one) for one in given]
        order, expected = Order([], [], [len(one) for one in prompts]), self._predicted(request.prediction)
        make = partial(Job, user=user, outbox=outbox, stops=_stops(request))
        for number, prompt in enumerate(prompts):
            for index in range(count):
                place = number * count + index
                settings = self._settings(request, len(prompt), request.max_tokens or 16, index, request.logprobs)
                order.jobs.append(make(index=place, prompt=prompt, settings=settings, prediction=expected))
                echoed = self._echoed(given[number]) if request.echo else ""
                order.choices.append(TextChoice(place, self._tokenizer, request.logprobs, echoed))
        return order

    def _count(self, request: Sampled) -> int:
        """Return how many answers a request wants to each prompt."""
        count = request.n or 1
        if count > self._limits.choices:
            raise bad_request(f"n={count} is out of range; allowed is 1 to {self._limits.choices}", "n")
        return count

    def _predicted(self, prediction: Prediction | None) -> list[int] | None:
        """Return the tokens that an answer is expected to resemble."""
        return None if prediction is None else self._prompts.of_prediction(prediction.content, self._context) or None

    def _echoed(self, prompt: str | Sequence[int]) -> str:
        """Return a prompt as text."""
        return prompt if isinstance(prompt, str) else str(self._tokenizer.decode(list(prompt)))

    def _constraint(self, request: ChatRequest) -> tuple[str, Callable[[], Any] | None]:
        """Return how the answer begins, and what makes the processor that keeps it to a form."""
        wanted, choice = request.response_format, request.tool_choice
        if choice == "required" or isinstance(choice, ToolChoice):
            return self._forced_call(request)
        if wanted is None or wanted.type == "text":
            return "", None
        schema = None
        if wanted.type == "json_schema":
            if wanted.json_schema is None:
                raise bad_request("response_format holds no json_schema; add one", "response_format")
            schema = wanted.json_schema.json_schema or {"type": "object"}
        return "", self._compiled(schema, "response_format")

    def _forced_call(self, request: ChatRequest) -> tuple[str, Callable[[], Any]]:
        """Return how an answer begins that has to call a tool, and what keeps it to the tool's arguments."""
        choice, form = request.tool_choice, self._prompts.form
        tools = _tools(request)
        if isinstance(choice, ToolChoice):
            tools = [one for one in tools if one[0] == choice.function.name]
        if not tools or form is None:
            raise bad_request("tool_choice asks for a tool that is not among tools; add it, or say auto", "tool_choice")
        opening, wanted = forced(form, tools)
        return opening, self._compiled(wanted, "tool_choice", form.has_tags)

    def _compiled(self, wanted: Any, param: str, is_tag: bool = False) -> Callable[[], Any]:
        """Return what makes the processor that keeps answers to a JSON schema, or to a structural tag."""
        try:
            return self._grammars.of_tag(wanted) if is_tag else self._grammars.of_json(wanted)
        except ValueError as error:
            raise bad_request(str(error), param) from error

    def _settings(
        self,
        request: Sampled,
        prompt: int,
        wanted: int | None,
        index: int,
        logprobs: int | None,
        grammar: Callable[[], Any] | None = None,
    ) -> Settings:
        """Return how an answer is chosen; the second and later ones of a seed have seeds of their own."""
        return Settings(
            max_new_tokens=self._room(request, prompt, wanted),
            sampling=self._sampling(request),
            seed=None if request.seed is None else (request.seed + index + 2**63) % 2**64 - 2**63,
            presence=request.presence_penalty or 0.0,
            frequency=request.frequency_penalty or 0.0,
            bias=self._bias(request),
            logprobs=logprobs,
            grammar=grammar,
        )

    def _room(self, request: Sampled, prompt: int, wanted: int | None) -> int:
        """Return how many tokens an answer may have."""
        if self._context is None:
            return wanted or self._limits.answer_tokens
        room = self._context - prompt
        if room < max(1, wanted or 1):
            message = (
                f"the prompt has {prompt} tokens and {wanted or 1} more may follow, but the model's context has "
                f"{self._context}; shorten the prompt, or allow fewer"
            )
            param = "messages" if isinstance(request, ChatRequest) else "prompt"
            raise bad_request(message, param, "context_length_exceeded")
        return wanted or min(room, self._limits.answer_tokens)

    def _sampling(self, request: Sampled) -> dict[str, Any]:
        """Return arguments of `generate`; what is not given follows the model's own defaults."""
        chosen: dict[str, Any] = {}
        if request.repetition_penalty is not None:
            chosen["repetition_penalty"] = request.repetition_penalty
        if request.temperature is not None:
            chosen["do_sample"] = request.temperature >= _GREEDY
        if not chosen.get("do_sample", self._is_sampled):
            return chosen
        filters = {"temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
        filters["min_p"] = request.min_p or None
        return {**chosen, **{name: value for name, value in filters.items() if value is not None}}

    def _bias(self, request: Sampled) -> dict[int, float]:
        """Return what is added to which tokens' scores."""
        bias = {int(token): value for token, value in (request.logit_bias or {}).items()}
        unknown = [token for token in bias if token >= self._size]
        if unknown:
            message = f"logit_bias names token {unknown[0]}; the model has {self._size} tokens"
            raise bad_request(message, "logit_bias")
        return bias


def _stops(request: Sampled) -> list[str]:
    """Return the stop sequences."""
    stop = request.stop
    return [] if stop is None else [stop] if isinstance(stop, str) else [*stop]


def _tools(request: ChatRequest) -> list[tuple[str, dict[str, Any] | None]]:
    """Return the names of the tools, and the JSON schemas of their arguments."""
    return [(one.function.name, one.function.parameters) for one in request.tools or []]


def _several(prompt: Any) -> list[Any]:
    """Return the prompts of a completion."""
    if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
        return [prompt]
    return list(prompt)
