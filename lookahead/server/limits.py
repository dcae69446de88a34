"""What a server takes on, each figure checked once."""

from __future__ import annotations

from dataclasses import dataclass, fields

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes
    ----------
    body_bytes : int
        Longest body of a request (413).
    body_seconds : float
        Longest time in which a body may arrive (408).
    prompt_tokens : int or None
        Longest prompt (400); None leaves it to the model's context.
    answer_tokens : int
        Most tokens of an answer that names no number itself.
    choices : int
        Most answers that one request may ask for (400).
    waiting : int
        Most answers that wait for their turn (503).
    waiting_per_user : int
        Most of them of one user (429).
    seconds : float
        Longest time from a request to its whole answer, waiting included (504).
    requests : int
        Most requests at work at the same time, whatever they wait for (503).
    batch : int
        Most answers decoded together, where that pays; 1 decodes one at a time.
    users : int
        Users whose memory is kept, the least recently served given up first.
    memory_bytes : int
        Most bytes of the texts remembered of all users, to draft from.
    cache_bytes : int
        Most bytes of key-value caches kept for next turns; 0 keeps none.

    Raises
    ------
    ValueError
        Where a figure is below 1, `cache_bytes` below 0.
    """

    body_bytes: int = 8_000_000
    body_seconds: float = 30.0
    prompt_tokens: int | None = None
    answer_tokens: int = 4096
    choices: int = 16
    waiting: int = 256
    waiting_per_user: int = 64
    seconds: float = 600.0
    requests: int = 1024
    batch: int = 8
    users: int = 64
    memory_bytes: int = 512_000_000
    cache_bytes: int = 2_000_000_000

    def __post_init__(self) -> None:
        """Check every figure."""
        for field in fields(self):
            value, least = getattr(self, field.name), 0 if field.name == "cache_bytes" else 1
            if field.name.endswith("seconds"):
                if not value > 0:
                    raise ValueError(f"{field.name}={value} is out of range; allowed is a number above 0")
            elif value is not None and value < least:
                raise ValueError(f"{field.name}={value} is out of range; allowed is a number of {least} and above")
