"""What works on which architecture: every one that the installed transformers has, tiny, against its own `generate`.

python -m benchmarks.conformance                      # writes benchmarks/CONFORMANCE.md
python -m benchmarks.conformance --only llama mamba2  # shows these
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import os
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers

import lookahead
from benchmarks.architectures import VOCABULARY, architectures, tiny
from benchmarks.timing import machine
from lookahead.hf import names
from lookahead.hf.refusals import Unsupported

_NEW = 40
_FILE = Path(__file__).with_name("CONFORMANCE.md")
_CHECKS = ("greedy", "sampling", "batch", "static cache", "outputs", "second turn")
_LEGEND = """# What works on which architecture

Written by `python -m benchmarks.conformance` ({versions}): tiny models with random weights of every architecture of
this release that generates text and can be made small by its config, in float32 on the CPU, {new} tokens. The
prediction given to lookahead is the right answer with every ninth token changed, so that drafts are accepted, refused
and cut.

`=`: the same as `generate` without lookahead. `refused`: a ValueError before any work. `plain`: decoded without
drafts. `-`: `generate` itself cannot do it. Sampling is with a seed; a batch has three rows, greedy; outputs are
scores, logits, attentions, hidden states and the length of the cache; the second turn goes on with the cache of the
first. The last column is the number of tokens per forward in the greedy run.

{counts}

| architecture | class | drafts | {checks} | tokens per forward |
|---|---|---|{lines}---|
"""


class Row(NamedTuple):
    """What was found of one architecture."""

    kind: str
    name: str
    drafts: str
    found: dict[str, str]
    rate: float

    def __str__(self) -> str:
        """Return the row of the table."""
        cells = [self.kind, self.name, self.drafts, *(self.found[check] for check in _CHECKS), f"{self.rate:.1f}"]
        return f"| {' | '.join(cells)} |"


def prompts(rows: int = 1, seed: int = 0) -> torch.Tensor:
    """Return ids, int64 [rows, 30]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (rows, 10), generator=generator).repeat(1, 3)


class Check:
    """Runs a model with and without lookahead."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.stats = lookahead.Stats()

    def generate(self, ids: torch.Tensor, custom: Any, expected: list[int] | None, **settings: Any) -> Any:
        """Generate from a seed."""
        torch.manual_seed(3)
        given = {} if custom is None else {"custom_generate": custom, "prediction": expected}
        settings = {"max_new_tokens": _NEW, **settings}
        return self.model.generate(ids, attention_mask=torch.ones_like(ids), **given, **settings)

    def compare(self, call: Callable[[Any, list[int] | None], Any]) -> str:
        """Say how ``call(custom, prediction)`` with lookahead compares with the call without."""
        try:
            vanilla = call(None, None)
        except Exception:  # whatever it is: there is nothing to be equal to
            return "-"
        ids = vanilla if isinstance(vanilla, torch.Tensor) else vanilla[0]
        expected = ids[0, -_NEW:].clone()
        expected[7::9] = (expected[7::9] + 3) % VOCABULARY
        ahead = lookahead.Lookahead(cost="linear:0.001")
        try:
            ours = call(ahead, expected.tolist())
        except Unsupported:
            return "refused"
        except Exception as error:
            return f"ERROR {type(error).__name__}: {error}"[:80].replace("\n", " ").replace("|", "/")
        self.stats = ahead.stats
        if not same(vanilla, ours):
            return "DIFFERS"
        return "plain" if ahead.stats.note else "="

    def outputs(self, custom: Any, expected: list[int] | None) -> tuple[Any, ...]:
        """Return all that `generate` can return."""
        flags = ("scores", "logits", "attentions", "hidden_states")
        wanted = {f"output_{name}": True for name in flags}
        output = self.generate(prompts(), custom, expected, return_dict_in_generate=True, **wanted)
        known = ("scores", "logits", "attentions", "hidden_states", "decoder_attentions", "decoder_hidden_states")
        cache = output.get(names.cache_name())
        length = int(cache.get_seq_length()) if cache is not None and not all_linear(cache) else 0
        return (output.sequences, *(output.get(name) for name in (*known, "cross_attentions")), length)

    def second_turn(self, custom: Any, expected: list[int] | None) -> torch.Tensor:
        """Go on with the cache of a first turn."""
        if self.model.config.is_encoder_decoder:
            raise ValueError("there are no turns")
        first = self.generate(prompts(), custom, expected, return_dict_in_generate=True)
        cache = {names.cache_name(): first[names.cache_name()]}
        ids = torch.cat([first.sequences, prompts(seed=1)[:, :7]], dim=1)
        return self.generate(ids, custom, expected, **cache)


def all_linear(cache: Any) -> bool:
    """Tell whether no layer of a cache knows its length."""
    return all(getattr(names.decoder_cache(cache), "is_linear", [False]))


def same(one: Any, other: Any) -> bool:
    """Tell whether results are equal: ids exactly, other tensors up to rounding, in whatever they are nested."""
    if isinstance(one, torch.Tensor):
        if not isinstance(other, torch.Tensor) or one.shape != other.shape:
            return False
        return torch.equal(one, other) if one.dtype == torch.long else torch.allclose(one, other, rtol=1e-3, atol=1e-3)
    if isinstance(one, tuple | list):
        return isinstance(other, tuple | list) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def examine(kind: str) -> Row | str:
    """Make one architecture's tiny model and run all checks; says why, where none can be made."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    try:
        model = tiny(kind, architectures()[kind])
        model.generate(prompts(), attention_mask=torch.ones_like(prompts()), max_new_tokens=3)
    except Exception as error:  # a config that wants something else, a missing package
        return f"{kind}: {type(error).__name__}: {error}".split("\n")[0][:160]
    check = Check(model)
    found = {"greedy": check.compare(lambda custom, text: check.generate(prompts(), custom, text))}
    stats = check.stats
    sampling = {"do_sample": True, "temperature": 0.4}
    found["sampling"] = check.compare(lambda custom, text: check.generate(prompts(), custom, text, **sampling))
    found["batch"] = check.compare(lambda custom, text: check.generate(prompts(3), custom, text))
    found["outputs"] = check.compare(check.outputs)
    found["second turn"] = check.compare(check.second_turn)
    check.model = copy.deepcopy(model)
    static = {"cache_implementation": "static"}
    found["static cache"] = check.compare(lambda custom, text: check.generate(prompts(), custom, text, **static))
    return Row(kind, type(model).__name__, drafting(model, stats), found, stats.tokens_per_forward)


def drafting(model: Any, stats: lookahead.Stats) -> str:
    """Say how drafts are verified on a model."""
    from lookahead.hf.branching import takes_trees
    from lookahead.hf.cache import Rollback

    if stats.note:
        return "none"
    cache = transformers.DynamicCache(config=model.config.get_text_config(decoder=True))
    if Rollback.replays_on(cache):
        return "chains, replayed"
    decoder_only = not model.config.is_encoder_decoder
    return "trees" if decoder_only and takes_trees(model, cache) is not None else "chains"


def main() -> None:
    """Examine all or some architectures; of all, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="KIND", help="model types, as in a config.json")
    arguments = parser.parse_args()
    kinds = arguments.only or list(architectures())
    unknown = sorted(set(kinds) - set(architectures()))
    if unknown:
        parser.error(
            f"{', '.join(unknown)}: no model types of transformers {transformers.__version__} that generate text"
        )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with concurrent.futures.ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        rows = [shown(row) for row in pool.map(examine, kinds)]
    if not arguments.only:
        _FILE.write_text(page(rows), encoding="utf-8")
        print(f"written: {_FILE}")


def shown(row: Row | str) -> Row | str:
    """Print what was found and return it."""
    print(row, flush=True)
    return row


def page(rows: list[Row | str]) -> str:
    """Return the page of all results."""
    made = sorted((row for row in rows if isinstance(row, Row)), key=lambda row: row.kind)
    lines = []
    for check in _CHECKS:
        counts = Counter(row.found[check].split(":")[0] for row in made)
        lines.append(f"- {check}: " + ", ".join(f"{count} {what}" for what, count in counts.most_common()))
    ways = Counter(row.drafts for row in made)
    ways_of = ", ".join(f"{count} {way}" for way, count in ways.most_common())
    counts_of = f"{len(made)} architectures. Drafts: {ways_of}.\n\n" + "\n".join(lines)
    head = _LEGEND.format(
        versions=machine(), new=_NEW, counts=counts_of, checks=" | ".join(_CHECKS), lines="---|" * len(_CHECKS)
    )
    failed = [row for row in rows if isinstance(row, str)]
    missing = "\nNot examined, since no tiny model could be made of them:\n\n" + "".join(f"- {one}\n" for one in failed)
    return head + "".join(f"{row}\n" for row in made) + missing


if __name__ == "__main__":
    main()
