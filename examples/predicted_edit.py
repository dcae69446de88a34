"""A changed file from a server that is told what it resembles: python -m examples.predicted_edit URL FILE "CHANGE".

Start a server before: lookahead serve --model smollm2. Its URL is http://127.0.0.1:8000/v1. The answer is printed as it
comes; how much of the prediction came true goes to the standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import openai


def main(url: str, path: str, change: str) -> str:
    """Print the changed file as the server writes it, and return it."""
    text = Path(path).read_text(encoding="utf-8")
    with openai.OpenAI(base_url=url, api_key="none") as client:  # the server's key, where it has one
        stream = client.chat.completions.create(
            model=client.models.list().data[0].id,
            messages=[{"role": "user", "content": f"Copy this text. {change}\n\n{text}"}],
            prediction={"type": "content", "content": text},
            temperature=0,
            max_completion_tokens=256,
            stream=True,
            stream_options={"include_usage": True},
        )
        return shown(stream)


def shown(stream: Iterable[Any]) -> str:
    """Print an answer as it comes, and return it."""
    answer = ""
    for chunk in stream:
        if chunk.choices:
            part = chunk.choices[0].delta.content or ""
            print(part, end="", flush=True)
            answer += part
        else:
            used = chunk.usage.completion_tokens_details
            right, wrong = used.accepted_prediction_tokens, used.rejected_prediction_tokens
            told = f"{chunk.usage.completion_tokens} tokens; of the prediction {right} accepted, {wrong} not"
            print(f"\n{told}", file=sys.stderr)
    return answer


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
