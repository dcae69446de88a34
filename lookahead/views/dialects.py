"""How families of models write a call of a tool."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIALECTS", "Dialect", "of_prompt"]


@dataclass(frozen=True)
class Dialect:
    """One way to write a call.

    Attributes
    ----------
    name : str
        Its name.
    opening : str
        What begins a call, mostly one token of its own; empty where the answer simply begins with the call.
    head : str
        What follows up to the first key; ``{name}`` stands for the tool's name.
    key : str
        What stands before a value that is a text; ``{key}`` stands for its name.
    joint : str
        What stands between such a value and the next key.
    tail : str
        What stands behind such a value where it is the last one.
    marks : tuple of str
        Each of them, in a prompt, says that the model writes so.
    """

    name: str
    opening: str
    head: str
    key: str
    joint: str
    tail: str
    marks: tuple[str, ...]

    def call(self, tool: str, given: dict[str, str], key: str) -> str:
        """Write a call with some arguments, up to where the value of one more begins."""
        said = "".join(self.key.replace("{key}", name) + value + self.joint for name, value in given.items())
        return self.opening + self.head.replace("{name}", tool) + said + self.key.replace("{key}", key)

    def next(self, key: str) -> str:
        """Write what stands between a value and that of the key."""
        return self.joint + self.key.replace("{key}", key)


_JSON = '"{key}": "'
HERMES = Dialect(
    name="hermes",
    opening="<tool_call>",
    head='\n{"name": "{name}", "arguments": {',
    key=_JSON,
    joint='", ',
    tail='"}}\n</tool_call>',
    marks=("<tool_call>",),
)
QWEN_CODER = Dialect(
    name="qwen coder",
    opening="<tool_call>",
    head="\n<function={name}>\n",
    key="<parameter={key}>\n",
    joint="\n</parameter>\n",
    tail="\n</parameter>\n</function>\n</tool_call>",
    marks=("<function=",),
)
LLAMA = Dialect(
    name="llama",
    opening="<|python_tag|>",
    head='{"name": "{name}", "parameters": {',
    key=_JSON,
    joint='", ',
    tail='"}}',
    marks=("<|python_tag|>", '"parameters": dictionary', "Environment: ipython"),
)
PYTHONIC = Dialect(
    name="pythonic",
    opening="[",
    head="{name}(",
    key='{key}="',
    joint='", ',
    tail='")]',
    marks=("[func_name1(", "[func1(", "pythonic"),
)
MISTRAL = Dialect(
    name="mistral",
    opening="[TOOL_CALLS]",
    head='[{"name": "{name}", "arguments": {',
    key=_JSON,
    joint='", ',
    tail='"}}]',
    marks=("[AVAILABLE_TOOLS]", "[TOOL_CALLS]"),
)
MISTRAL_NAMED = Dialect(
    name="mistral, named",
    opening="[TOOL_CALLS]",
    head="{name}[ARGS]{",
    key=_JSON,
    joint='", ',
    tail='"}',
    marks=("[ARGS]",),
)
ANTHROPIC = Dialect(
    name="anthropic",
    opening="<function_calls>",
    head='\n<invoke name="{name}">\n',
    key='<parameter name="{key}">',
    joint="</parameter>\n",
    tail="</parameter>\n</invoke>\n</function_calls>",
    marks=("<invoke name=", "<function_calls>"),
)
DIALECTS: tuple[Dialect, ...] = (HERMES, QWEN_CODER, LLAMA, PYTHONIC, MISTRAL, MISTRAL_NAMED, ANTHROPIC)


def of_prompt(text: str) -> list[Dialect]:
    """Return the dialects that a prompt shows or asks for; without any, the commonest."""
    return [dialect for dialect in DIALECTS if any(mark in text for mark in dialect.marks)] or [HERMES]
