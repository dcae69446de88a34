"""What the page of results is made of: each section is the JSON file of one command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import batches, costs, generate, gpu, plots, replay, scale, scaled, turns
from benchmarks.reports import Report

__all__ = ["SECTIONS", "Section"]


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    name : str
        Names the file and, on the command line, the section.
    title, words : str
        What stands above the tables.
    module : str
        The benchmark that is run.
    arguments, quick : str
        What it is given, and what for a quick look.
    markdown : callable
        Makes the tables of a report.
    draw : tuple of callable
        Each makes a plot of a report.
    """

    name: str
    title: str
    words: str
    module: str
    arguments: str
    quick: str
    markdown: Callable[[Report], str]
    draw: tuple[plots.Draw, ...] = ()

    def command(self, is_quick: bool) -> list[str]:
        """Return the arguments of Python that run the benchmark."""
        return ["-m", f"benchmarks.{self.module}", *shlex.split(self.quick if is_quick else self.arguments)]


SECTIONS = {
    section.name: section
    for section in (
        Section(
            "replay",
            "Replay: tokens per forward, without a model",
            "Recorded answers, drafted by everyone in the same run. Each peer stands there with its documented "
            "defaults and with the best of its settings for each cost, found by search; lookahead has no settings. "
            "The copy limit knows the answer and always copies the longest piece; only what is no copy can pass it. A "
            "forward-time is the time of a forward without a draft, where k draft tokens cost 1 + slope k of them: "
            "0.002 is about a GPU, 0.03 about two CPU cores.",
            "replay",
            "--budgets 8 16 32 64 128 --count 2 --fast-lookup",
            "--budgets 16 32 --count 1 --formats json diff --fast-lookup",
            replay.markdown,
            (plots.replay_by_budget, plots.replay_by_format),
        ),
        Section(
            "turns",
            "Turns: conversations about one file",
            "Only the first prompt shows the file: what later turns copy must have been kept by a memory, or there is "
            "next to nothing to copy. (With `--chat` the prompt holds the conversation, and so the copies.)",
            "turns",
            "",
            "--count 2",
            turns.markdown,
        ),
        *(
            Section(
                f"generate-{kind}-{way}",
                f"End to end: text that {what}, {way}",
                "SmolLM2-135M writes by itself, in turns with stock prompt lookup at its defaults and at the best of "
                f"its settings, found by the clock task by task. {also}",
                "generate",
                f"--tasks {tasks} --temperatures {temperature} --tokens {tokens} --rounds {rounds} --lookups 10 20 40",
                f"--tasks {tasks} --temperatures {temperature} --tokens 32 --rounds 1 --lookups 10",
                generate.markdown,
                (plots.generated,),
            )
            for way, temperature, rounds, also in (
                ("greedy", 0, 3, "All outputs are equal."),
                (
                    "sampled",
                    0.7,
                    2,
                    "With a seed lookahead says what generate says; prompt lookup draws in another order.",
                ),
            )
            for kind, what, tasks, tokens in (
                ("copying", "copies", "'file rewrite' 'JSON tool call' diff", 192),
                ("new", "is new, where little is gained or some is lost", "chat summarise 'novel prose'", 96),
            )
        ),
        *(
            Section(
                f"scaled-{size}",
                f"Forced answer, {size}",
                f"FORCED ANSWER: the texts are recorded, the times are measured. {what} How a stronger model of this "
                "size would behave, one that writes this answer; reading the prompt is not timed.",
                "scaled",
                f"--sizes {size} {arguments}",
                f"--sizes {size} --contexts 1000 --tokens 32 --rounds 1 --dtypes bfloat16 --formats json",
                scaled.markdown,
                (plots.forced,),
            )
            for size, what, arguments in (
                ("135M", "SmolLM2's weights.", "--contexts 1000 8000 --tokens 48 --rounds 1 --formats json"),
                ("0.5B", "Random weights.", "--contexts 1000 8000 --tokens 32 --rounds 1 --formats json"),
                ("1B", "Random weights.", "--contexts 1000 8000 --tokens 24 --rounds 1 --formats json"),
            )
        ),
        Section(
            "scaled-long",
            "Forced answer, 135M behind a long prompt",
            "FORCED ANSWER, as above. Here a forward's time is that of copying its cache, which grows by being copied.",
            "scaled",
            "--sizes 135M --contexts 32000 --tokens 24 --rounds 1 --formats json --dtypes float32 --lookups 10",
            "--sizes 135M --contexts 2000 --tokens 24 --rounds 1 --formats json --dtypes float32 --lookups 10",
            scaled.markdown,
        ),
        Section(
            "scale",
            "Scale: time to draft and memory",
            "Every drafter over the same tokens of the standard library's sources, and one passage of them once more, "
            "with every twentieth token another. Microseconds as Python sees them.",
            "scale",
            "",
            "--contexts 1000 10000 --steps 50",
            scale.markdown,
            (plots.drafting, plots.memory),
        ),
        Section(
            "batches",
            "Gain against batch size",
            "Edits, and novel text as what is lost.",
            "batches",
            "--tokens 48 --sizes 1 4 8 16 --rounds 2",
            "--tokens 24 --sizes 1 2 --rounds 1",
            batches.markdown,
            (plots.batched,),
        ),
        Section(
            "costs",
            "What a forward with a draft costs",
            "SmolLM2-135M in float32, by the context's length; in forwards without a draft.",
            "costs",
            "--rounds 5",
            "--rounds 1 --contexts 256",
            costs.markdown,
            (plots.costs,),
        ),
        Section(
            "gpu",
            "On a GPU",
            "FORCED ANSWER, as above, with a larger model of random weights, by CUDA events: the ordinary cache, and a "
            "static one with a compiled model.",
            "gpu",
            "",
            "--size 0.5B --tokens 32 --rounds 1",
            gpu.markdown,
        ),
    )
}
