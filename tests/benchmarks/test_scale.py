"""The scan that stands for vLLM's keeps its rule."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale import Scan
from lookahead.bench.ngrams import Ngrams
from lookahead.tree import Accepted


@given(text=st.lists(st.integers(0, 3), min_size=2, max_size=60), budget=st.integers(1, 8))
def test_the_scan_drafts_by_the_rule(text: list[int], budget: int) -> None:
    compiled, written = Scan(), Ngrams(1, 5)
    for drafter in (compiled, written):
        drafter.begin(text[:1])
        drafter.accept(Accepted(text[1:]))
    assert compiled.propose(budget).tokens.tolist() == written.propose(budget).tokens.tolist()
