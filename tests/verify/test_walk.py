from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Accepted, Draft
from lookahead.verify.sequence import Sequence
from lookahead.verify.walk import Record, Verifier
from tests.trees import drafts, tree

VOCABULARY = 61
KNOWN = [3, 4]
DRAFT = tree({5: {6: {7: {}}, 8: {9: {}}}, 10: {5: {}}})
NODE = {name: node for node, name in enumerate(["5", "56", "567", "58", "589", "10", "10 5"])}


class Bench:
    """A verifier and everything that it tells."""

    def __init__(self, **changes: Any) -> None:
        self.heard: list[tuple[int, str | None]] = []
        self.sequence = Sequence(torch.tensor([KNOWN]))
        given = {
            "processors": None,
            "criteria": None,
            "do_sample": False,
            "end_tokens": frozenset(),
            "max_length": 1000,
            "on_token": lambda token, source: self.heard.append((token, source)),
        }
        self.verifier = Verifier(self.sequence, **{**given, **changes})

    def walk(self, says: dict[str, int], draft: Draft = DRAFT) -> Accepted:
        return self.verifier.walk(draft, logits(says, draft))

    @property
    def emitted(self) -> list[int]:
        tokens: list[int] = self.sequence.ids[0, len(KNOWN) :].tolist()
        return tokens


def logits(says: dict[str, int], draft: Draft = DRAFT) -> torch.Tensor:
    """Give logits whose maxima are: says["root"] behind the last known token, says["58"] behind that node, ..."""
    rows = torch.zeros(len(draft) + 1, VOCABULARY)
    rows[:, 60] = 1.0  # where nothing is said
    for name, token in says.items():
        rows[0 if name == "root" else NODE[name] + 1, token] = 9.0
    return rows


@pytest.fixture(params=["fast", "step by step"])
def bench(request: pytest.FixtureRequest) -> Callable[..., Bench]:
    """Make benches on the way for plain greedy decoding, and on the way that all others go."""
    slow = {"record": Record(scores=())}
    return lambda **changes: Bench(**(changes if request.param == "fast" else {**slow, **changes}))


def test_without_a_draft_the_target_emits_one_token(bench: Callable[..., Bench]) -> None:
    here = bench()
    accepted = here.verifier.walk(Draft.empty(), logits({"root": 7}, Draft.empty()))
    assert (accepted.tokens, accepted.path, accepted.finished) == ([7], [], False)
    assert here.heard == [(7, None)]


def test_a_whole_branch_is_accepted_and_a_bonus_token_ends_it(bench: Callable[..., Bench]) -> None:
    here = bench()
    accepted = here.walk({"root": 5, "5": 6, "56": 7, "567": 20})
    assert (accepted.tokens, accepted.path, accepted.finished) == ([5, 6, 7, 20], [0, 1, 2], False)
    assert accepted.cached == [0, 1, 2]
    assert here.emitted == [5, 6, 7, 20]
    assert here.heard == [(5, "place 0"), (6, "place 1"), (7, "place 2"), (20, None)]


def test_a_rejected_node_takes_its_descendants_with_it(bench: Callable[..., Bench]) -> None:
    accepted = bench().walk({"root": 5, "5": 30, "56": 7, "567": 8})
    assert (accepted.tokens, accepted.path) == ([5, 30], [0])


def test_a_rejected_root_child_emits_the_targets_own_token(bench: Callable[..., Bench]) -> None:
    here = bench()
    accepted = here.walk({"root": 30, "5": 6})
    assert (accepted.tokens, accepted.path, accepted.cached) == ([30], [], [])
    assert here.heard == [(30, None)]


def test_the_sibling_of_an_accepted_token_is_not_walked(bench: Callable[..., Bench]) -> None:
    accepted = bench().walk({"root": 5, "5": 8, "58": 9, "589": 21, "56": 7, "10": 5})
    assert (accepted.tokens, accepted.path) == ([5, 8, 9, 21], [NODE["5"], NODE["58"], NODE["589"]])


def test_the_second_child_of_the_root_is_walked_where_the_first_is_refused(bench: Callable[..., Bench]) -> None:
    accepted = bench().walk({"root": 10, "10": 5, "10 5": 6, "5": 6})
    assert (accepted.tokens, accepted.path) == ([10, 5, 6], [NODE["10"], NODE["10 5"]])


def test_a_token_that_stands_elsewhere_in_the_tree_is_no_child(bench: Callable[..., Bench]) -> None:
    accepted = bench().walk({"root": 6, "56": 7})
    assert (accepted.tokens, accepted.path) == ([6], [])


def test_nothing_is_emitted_behind_a_terminated_node(bench: Callable[..., Bench]) -> None:
    here = bench(end_tokens=frozenset([6]))
    accepted = here.walk({"root": 5, "5": 6, "56": 7, "567": 8})
    assert (accepted.tokens, accepted.path, accepted.finished) == ([5, 6], [0, 1], True)
    assert accepted.cached == [0]
    assert here.emitted == [5, 6]
    assert here.heard == [(5, "place 0"), (6, "place 1")]


def test_an_end_token_that_was_not_drafted_ends_it_too(bench: Callable[..., Bench]) -> None:
    accepted = bench(end_tokens=frozenset([30, 31])).walk({"root": 5, "5": 31})
    assert (accepted.tokens, accepted.path, accepted.finished) == ([5, 31], [0], True)


def test_the_length_limit_inside_the_draft_ends_it(bench: Callable[..., Bench]) -> None:
    for room, tokens in ((1, [5]), (2, [5, 6]), (3, [5, 6, 7]), (4, [5, 6, 7, 20])):
        here = bench(max_length=len(KNOWN) + room)
        accepted = here.walk({"root": 5, "5": 6, "56": 7, "567": 20})
        assert (accepted.tokens, accepted.finished) == (tokens, True)
        assert accepted.path == [0, 1, 2][:room]
        assert here.emitted == tokens


def test_criteria_replace_end_tokens_and_length() -> None:
    seen: list[tuple[list[int], Any]] = []

    def criteria(ids: torch.Tensor, scores: Any) -> torch.Tensor:
        seen.append((ids[0].tolist(), scores))
        return torch.tensor([len(seen) == 2])

    here = Bench(criteria=criteria, end_tokens=frozenset([5]), max_length=1)
    accepted = here.walk({"root": 5, "5": 6, "56": 7})
    assert (accepted.tokens, accepted.path, accepted.finished) == ([5, 6], [0, 1], True)
    assert seen == [([*KNOWN, 5], None), ([*KNOWN, 5, 6], None)]


def test_processors_see_accepted_prefixes_only_and_each_once() -> None:
    seen: list[list[int]] = []

    def processors(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        seen.append(ids[0].tolist())
        return scores

    here = Bench(processors=processors)
    here.walk({"root": 5, "5": 8, "58": 40, "56": 7})
    assert seen == [KNOWN, [*KNOWN, 5], [*KNOWN, 5, 8]]
    here.verifier.walk(Draft.empty(), logits({"root": 7}, Draft.empty()))
    assert seen[3:] == [[*KNOWN, 5, 8, 40]]


def test_what_a_processor_forbids_is_rejected_and_its_choice_goes_on_down_the_tree() -> None:
    def no_six(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        scores[:, 6] = float("-inf")
        scores[:, 8] += 5
        return scores

    accepted = Bench(processors=no_six).walk({"root": 5, "5": 6, "58": 9, "589": 22})
    assert (accepted.tokens, accepted.path) == ([5, 8, 9, 22], [NODE["5"], NODE["58"], NODE["589"]])


def test_a_processor_that_works_in_place_does_not_change_the_models_logits() -> None:
    def spoil(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return scores.fill_(0)

    given = logits({"root": 5})
    before = given.clone()
    Bench(processors=spoil).verifier.walk(DRAFT, given)
    assert torch.equal(given, before)


def test_the_order_is_processors_then_criteria_then_listeners() -> None:
    order: list[str] = []
    here = Bench(
        processors=lambda ids, scores: order.append("process") or scores,
        criteria=lambda ids, scores: order.append("stop?") or torch.tensor([False]),
        on_token=lambda token, source: order.append(f"emit {token}"),
    )
    here.walk({"root": 5, "5": 20})
    assert order == ["process", "stop?", "emit 5", "process", "stop?", "emit 20"]


def test_records_hold_one_row_for_every_emitted_token_and_no_other() -> None:
    record = Record(scores=(), logits=())
    here = Bench(record=record, processors=lambda ids, scores: scores * 2)
    given = logits({"root": 5, "5": 6, "56": 40})
    here.verifier.walk(DRAFT, given)
    assert record.scores is not None and record.logits is not None
    assert torch.equal(torch.cat(record.logits), given[[0, NODE["5"] + 1, NODE["56"] + 1]])
    assert torch.equal(torch.cat(record.scores), 2 * torch.cat(record.logits))


def test_criteria_see_the_scores_recorded_so_far() -> None:
    counts: list[int] = []
    record = Record(scores=())

    def criteria(ids: torch.Tensor, scores: Any) -> torch.Tensor:
        counts.append(len(scores))
        return torch.tensor([False])

    Bench(record=record, criteria=criteria).walk({"root": 5, "5": 6, "56": 40})
    assert counts == [1, 2, 3]


def test_equal_logits_go_to_the_lower_id(bench: Callable[..., Bench]) -> None:
    rows = torch.zeros(len(DRAFT) + 1, VOCABULARY)
    rows[0, [5, 10]] = 1.0
    assert bench().verifier.walk(DRAFT, rows).tokens == [5, 0]


def test_differences_below_float32_count_as_ties_as_they_do_in_generate(bench: Callable[..., Bench]) -> None:
    rows = torch.zeros(1, VOCABULARY, dtype=torch.float64)
    rows[0, 7], rows[0, 9] = 1.0, 1.0 + 1e-12
    assert bench().verifier.walk(Draft.empty(), rows).tokens == [7]


@given(drafts(vocabulary=4), st.integers(0, 2**16), st.booleans(), st.sets(st.integers(0, 3), max_size=1))
def test_a_walk_goes_where_plain_decoding_goes(draft: Draft, seed: int, do_sample: bool, ends: set[int]) -> None:
    rows = torch.randn(len(draft) + 1, 4, generator=torch.Generator().manual_seed(seed))
    torch.manual_seed(seed)
    row, tokens, path = 0, list[int](), list[int]()
    while True:  # one token at a time, from the logits of the row that it has come to
        probs = torch.softmax(rows[row : row + 1], dim=-1)
        token = int(torch.multinomial(probs, 1)) if do_sample else int(rows[row].argmax())
        tokens.append(token)
        below = [n for n in range(len(draft)) if draft.parents[n] == row - 1 and draft.tokens[n] == token]
        path += below
        if token in ends or not below:
            break
        row = below[0] + 1
    torch.manual_seed(seed)
    here = Bench(do_sample=do_sample, end_tokens=frozenset(ends))
    accepted = here.verifier.walk(draft, rows)
    assert (accepted.tokens, accepted.path, accepted.finished) == (tokens, path, tokens[-1] in ends)
    assert here.emitted == tokens


def test_the_successors_of_all_nodes_are_told_those_of_the_walk_last(bench: Callable[..., Bench]) -> None:
    says = {"root": 5, "5": 8, "58": 30, "567": 7}
    accepted = bench().walk(says)
    assert accepted.successors is not None
    nodes, successors, shares = accepted.successors(3)
    assert nodes[-3:] == [-1, NODE["5"], NODE["58"]] and sorted(nodes) == [*range(-1, len(DRAFT))]
    expected = logits(says).softmax(-1).topk(3)
    assert (successors[:, 0] == expected.indices[[node + 1 for node in nodes], 0].numpy()).all()
    assert torch.allclose(torch.from_numpy(shares), expected.values[[node + 1 for node in nodes]])


def test_behind_the_end_nothing_is_told(bench: Callable[..., Bench]) -> None:
    accepted = bench(end_tokens=frozenset([8])).walk({"root": 5, "5": 8})
    assert accepted.finished and accepted.successors is not None
    assert accepted.successors(1)[0][-2:] == [-1, NODE["5"]]


def test_a_large_draft_tells_of_some_and_a_small_vocabulary_has_no_more_than_all(bench: Callable[..., Bench]) -> None:
    draft = Draft.chain([60] * 200)
    accepted = bench().walk({}, draft)
    assert accepted.successors is not None
    nodes, successors, shares = accepted.successors(1000)
    assert nodes == [*range(136, 200)] and successors.shape == shares.shape == (64, VOCABULARY)
