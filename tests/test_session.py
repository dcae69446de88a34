"""A session's requests draft from each other, output what `generate` outputs, and see nothing of another session."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookahead import Drafter, Lookahead, Session
from lookahead.draft.growth_kernels import EVIDENCE
from lookahead.index.corpus import Corpus
from lookahead.index.static_corpus import Document, StaticCorpus, build
from lookahead.index.storage import SESSION, read, write
from lookahead.views.tokens import Tokens
from tests.models import VOCABULARY, prompt, tiny
from tests.vocabularies import SAMPLE, letters, vocabulary

FIXED = {"cost": "linear:0", "recycling": False}
GREEDY = {"max_new_tokens": 24, "do_sample": False}


def generated(ids: torch.Tensor, ahead: Any = None, **settings: Any) -> torch.Tensor:
    custom = {} if ahead is None else {"custom_generate": ahead}
    torch.manual_seed(0)
    out: torch.Tensor = tiny().generate(ids, attention_mask=torch.ones_like(ids), **{**GREEDY, **settings}, **custom)
    return out


def replayed(drafter: Drafter, said: list[int], answer: list[int]) -> int:
    """Count the forwards of an answer."""
    drafter.begin(said)
    forwards, left = 0, answer
    while left:
        draft = drafter.propose(16)
        path = draft.follow(left)
        forwards += 1
        tokens, left = left[: len(path) + 1], left[len(path) + 1 :]
        drafter.accept(tokens)
    drafter.end()
    return forwards


def text(seed: int, size: int) -> list[int]:
    found: list[int] = np.random.default_rng(seed).integers(0, 50_000, size).tolist()
    return found


# ---- The same output ----


@pytest.mark.parametrize(("rows", "samples"), [(1, False), (1, True), (3, False)])
def test_every_turn_outputs_what_generate_outputs(rows: int, samples: bool) -> None:
    session, ids = Session(**FIXED), torch.cat([prompt(seed=row) for row in range(rows)])
    for turn in range(4):
        expected = generated(ids, do_sample=samples)
        assert torch.equal(generated(ids, session.lookahead(), do_sample=samples), expected)
        ids = torch.cat((expected, prompt(12, seed=turn).repeat(rows, 1)), 1)


@given(st.lists(st.lists(st.integers(3, VOCABULARY - 1), min_size=1, max_size=30), min_size=1, max_size=4))
def test_whatever_a_session_has_heard_outputs_are_equal(parts: list[list[int]]) -> None:
    session = Session(letters(), **FIXED)
    for part in parts:
        ids = torch.tensor([parts[0] + part])
        assert torch.equal(generated(ids, session.lookahead()), generated(ids))


def test_threads_share_a_session() -> None:
    session, wrong = Session(max_bytes=2**20, **FIXED), list[int]()
    expected = {seed: generated(prompt(seed=seed)) for seed in range(4)}

    def ask(seed: int) -> None:
        for turn in range(6):
            one = (seed + turn) % 4
            if not torch.equal(generated(prompt(seed=one), session.lookahead()), expected[one]):
                wrong.append(one)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- What is shared ----


def test_an_answer_that_was_given_before_is_drafted_from_the_session() -> None:
    session, ids = Session(**FIXED), prompt()
    generated(ids, session.lookahead())
    alone, again = Lookahead(**FIXED), session.lookahead()
    generated(ids, alone)
    generated(ids, again)
    assert again.stats.forwards < alone.stats.forwards
    assert again.stats.accepted_by_source["session"] > 0


def test_a_text_added_is_drafted_from() -> None:
    session, answer = Session(**FIXED), text(1, 100)
    assert replayed(session.drafter(), text(2, 50), answer) == 100
    session.clear()
    session.add(answer)
    assert replayed(session.drafter(), text(2, 50), answer) < 12
    with pytest.raises(ValueError, match="tokenizer"):
        session.add("words")


def test_nothing_is_drafted_from_another_session() -> None:
    one, other = Session(**FIXED), Session(**FIXED)
    answer = text(1, 100)
    replayed(one.drafter(), text(2, 50), answer)
    assert replayed(one.drafter(), text(3, 50), answer) < 15
    assert replayed(other.drafter(), text(3, 50), answer) == 100


def test_a_session_goes_on_after_a_call_that_failed() -> None:
    session, ids = Session(**FIXED), prompt()

    def fail(*_: Any) -> torch.Tensor:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        generated(ids, session.lookahead(), stopping_criteria=[fail])
    assert torch.equal(generated(ids, session.lookahead()), generated(ids))


# ---- Conversations ----


def test_a_turn_costs_what_is_new_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, real = list[int](), Corpus.extend

    def extend(self: Corpus, tokens: Any) -> None:
        taken.append(len(tokens))
        real(self, tokens)

    monkeypatch.setattr(Corpus, "extend", extend)
    session, said = Session(**FIXED), text(1, 5000)
    for turn in range(4):
        taken.clear()
        session.drafter().begin(said)
        assert sum(taken) == (5000 if turn == 0 else 300)
        said = said + text(turn + 2, 300)
    taken.clear()
    session.drafter().begin(said[:4000] + text(9, 100))  # a branch
    assert sum(taken) == 100 + 64
    taken.clear()
    session.drafter().begin(said)  # and back to the first one
    assert sum(taken) == 300


@pytest.mark.parametrize("kind", [None, "byte_level"])
@given(data=st.data())
def test_a_turn_finds_what_its_prompt_holds(kind: str | None, data: st.DataObject) -> None:
    tokenizer = None if kind is None else vocabulary(kind)
    session, said = Session(tokenizer, **FIXED), list[int]()
    pieces = [Drafter(vocabulary("byte_level")).ids(part) for part in SAMPLE.split("\n\n")]
    for _ in range(data.draw(st.integers(1, 4))):
        kept = data.draw(st.sampled_from([1.0, 1.0, 0.8, 0.5]))
        more = data.draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=4))
        said = said[: int(len(said) * kept)] + [one for piece in more for one in piece]
        resumed, fresh = session.drafter(), Drafter(**FIXED)
        resumed.begin(said)
        fresh.begin(said)
        assert resumed.context == fresh.context
        known, found = resumed.candidates().places, fresh.candidates().places
        longest = [int(max(rows["match_length"], default=0)) for rows in (known, found)]
        assert longest[0] >= min(longest[1], 24)  # where a text ends, no suffix between 24 and the longest is looked at


@pytest.mark.parametrize("kind", ["byte_level", "sentence_piece"])
def test_the_views_of_every_turn_are_drafted_from(kind: str) -> None:
    """A file in the second turn's prompt, written as a JSON string in its answer; the prompt's beginning is known."""
    tokenizer = vocabulary(kind)
    encode = Drafter(tokenizer).ids
    first = encode("Please look at files.\n" * 8)
    second = first + encode(f"\nHere is a.py:\n```python\n{SAMPLE}```\nWrite it with the tool.\n")
    escaped = SAMPLE.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    answer = encode('{"name": "write_file", "arguments": {"path": "a.py", "content": "' + escaped + '"}}')
    session = Session(tokenizer, **FIXED)
    session.drafter().begin(first)
    resumed = replayed(session.drafter(), second, answer)
    assert resumed <= 1.1 * replayed(Drafter(tokenizer, **FIXED), second, answer) < len(answer) / 4


def test_a_prediction_is_of_its_own_call_alone() -> None:
    session, answer, said = Session(**FIXED), text(1, 60), text(2, 100)
    drafter = session.drafter()
    drafter.begin(said, prediction=answer)
    assert drafter.propose(8).tokens.tolist() == answer[:8]
    again = session.drafter()
    again.begin(said)
    assert not len(again.propose(8))
    replayed(again, said, answer)  # now the session knows it, too
    drafter.begin(said, prediction=answer)
    assert set(drafter.propose(8).sources) == {"prediction"}


# ---- Bytes ----


def test_bytes_stay_within_the_cap() -> None:
    session = Session(max_bytes=2**20, **FIXED)
    for turn in range(40):
        replayed(session.drafter(), text(turn, 1000 + 100 * turn), text(100 + turn, 50))
        assert session.nbytes <= 2**20
    assert replayed(session.drafter(), text(7, 50), text(139, 50)) < 10  # the latest is remembered


@pytest.mark.parametrize("size", [0, 1000, 2**20 - 1, True, 1.5, "9"])
def test_a_cap_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(ValueError, match="allowed is an int of 1048576 and above"):
        Session(max_bytes=size)


# ---- Corpora ----


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    tokens = Tokens.of(vocabulary("byte_level"))
    build([Document("a.py", tokens.encode(SAMPLE))], tmp_path / "known.lkh", tokens.fingerprint)
    return tmp_path / "known.lkh"


def test_a_corpus_is_drafted_from(corpus: Path) -> None:
    tokenizer = vocabulary("byte_level")
    said, answer = Drafter(tokenizer).ids("Write a.py\n"), Drafter(tokenizer).ids(SAMPLE)
    session = Session(tokenizer, corpora=[corpus], **FIXED)
    alone = replayed(Session(tokenizer, **FIXED).drafter(), said, answer)
    assert replayed(session.drafter(), said, answer) < alone / 2
    opened = StaticCorpus.open(corpus)
    drafter = Session(tokenizer, corpora=[opened], **FIXED).drafter()
    drafter.begin(said + answer[:40])
    assert set(drafter.propose(8).sources) == {"corpus:known"}


def test_a_corpus_that_cannot_be_used_is_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the corpus known was made with another tokenizer"):
        Session(vocabulary("word_piece"), corpora=[corpus])
    with pytest.raises(ValueError, match="is one corpus; allowed is a list of them"):
        Session(corpora=str(corpus))
    with pytest.raises(ValueError, match="cannot be read"):
        Session(corpora=[tmp_path / "none.lkh"])
    for wrong in (None, [5], [corpus, None]):
        with pytest.raises(TypeError, match="is no list of corpora; allowed are paths and StaticCorpus objects"):
            Session(corpora=wrong)  # type: ignore[arg-type]


def test_a_session_is_no_lookahead_and_no_tokenizer() -> None:
    with pytest.raises(TypeError, match=r"custom_generate=session\.lookahead\(\)"):
        generated(prompt(), Session())
    for wrong in (Lookahead, Drafter):
        with pytest.raises(TypeError, match="Session is no tokenizer"):
            wrong(Session(vocabulary("byte_level")))


def test_options_are_checked_at_once() -> None:
    with pytest.raises(TypeError, match="unknown option color"):
        Session(color=1)
    with pytest.raises(ValueError, match="budget"):
        Session(budget=-1)
    assert Session(budget=3).lookahead(exact=True, tree=False).options.budget == 3


# ---- Files ----


def test_a_session_that_was_saved_goes_on_in_another(tmp_path: Path) -> None:
    session, answer = Session(**FIXED), text(1, 100)
    replayed(session.drafter(), text(2, 50), answer)
    session.save(tmp_path / "a.session")
    other = Session(**FIXED)
    other.add(text(5, 100))
    other.load(tmp_path / "a.session")
    for known in (answer, text(5, 100)):
        assert replayed(other.drafter(), text(3, 50), known) < 15
    Session().save(tmp_path / "empty.session")
    other.load(tmp_path / "empty.session")
    assert replayed(other.drafter(), text(4, 50), answer) < 15


def test_a_file_that_is_no_session_is_refused_and_nothing_is_lost(tmp_path: Path, corpus: Path) -> None:
    tokenizer = vocabulary("byte_level")
    session, path = Session(tokenizer, **FIXED), tmp_path / "a.session"
    session.add(SAMPLE)
    session.save(path)
    whole = path.read_bytes()
    with pytest.raises(ValueError, match="another tokenizer"):
        Session(vocabulary("word_piece")).load(path)
    with pytest.raises(ValueError, match=r"is a corpus, no session; give a file that Session\.save has written"):
        session.load(corpus)
    with pytest.raises(ValueError, match="is a session, no corpus"):
        Session(corpora=[path])
    for damaged in (whole[:-1], whole[:40], b"", whole[:-9] + b"x" + whole[-8:], b"no" + whole):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="start with a new Session|give a file that"):
            session.load(path)
    said, answer = Drafter(tokenizer).ids("Write a.py\n"), Drafter(tokenizer).ids(SAMPLE)
    assert replayed(session.drafter(), said, answer) < len(answer) / 4


def test_what_is_loaded_comes_beneath_what_is_known_and_conversations_go_on(tmp_path: Path) -> None:
    session, said = Session(**FIXED), text(1, 2000)
    session.drafter().begin(said)
    before = session.nbytes
    Session(**FIXED).save(tmp_path / "empty.session")
    session.load(tmp_path / "empty.session")
    assert session.nbytes == before


def test_a_file_whose_evidence_is_of_another_kind_takes_nothing(tmp_path: Path) -> None:
    session, answer = Session(**FIXED), text(1, 100)
    session.add(answer)
    sections = {"tokens": np.array([1, 2, -1], np.int32), "evidence": np.zeros(3)}
    write(tmp_path / "a.session", {"fingerprint": "", "kinds": {}}, sections, SESSION)
    with pytest.raises(ValueError, match="has no section evidence"):
        session.load(tmp_path / "a.session")
    assert replayed(session.drafter(), text(2, 50), answer) < 12


def test_what_is_learnt_while_a_session_is_saved_does_not_damage_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(**FIXED)
    replayed(session.drafter(), text(1, 50), text(2, 50))

    def meanwhile(_: int) -> str:  # the checksums are known, and nothing is written yet
        replayed(session.drafter(), text(3, 50), text(2, 50))
        return "name"

    monkeypatch.setattr("secrets.token_hex", meanwhile)
    session.save(tmp_path / "a.session")
    Session(**FIXED).load(tmp_path / "a.session")


@pytest.mark.parametrize("kinds", [{"session": 10**9}, None])
def test_a_file_that_is_forged_is_refused_and_takes_nothing(tmp_path: Path, kinds: Any) -> None:
    session, path = Session(**FIXED), tmp_path / "a.session"
    session.save(path)
    evidence = read(path, SESSION).array("evidence", EVIDENCE).copy()
    write(path, {"kinds": kinds}, {"tokens": np.array([1, 2, -1], np.int32), "evidence": evidence}, SESSION)
    before = session.nbytes
    with pytest.raises(ValueError, match="is damaged: the kinds .* start with a new Session"):
        session.load(path)
    assert session.nbytes == before
    with pytest.raises(ValueError, match="another tokenizer"):
        Session(vocabulary("byte_level")).load(path)


def test_saving_that_fails_leaves_the_last_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, path = Session(**FIXED), tmp_path / "a.session"
    session.add(text(1, 100))
    session.save(path)
    before, replace = path.read_bytes(), os.replace

    def fail(source: Any, target: Any) -> None:
        if Path(target).name == path.name:
            raise OSError(28, "No space left on device")
        replace(source, target)  # compiled kernels are kept so, too

    with pytest.raises(FileNotFoundError, match="there is no such folder; make it first"):
        session.save(tmp_path / "none" / "a.session")
    with pytest.raises(IsADirectoryError, match="this is a folder; name a file in it"):
        session.save(tmp_path)
    monkeypatch.setattr("os.replace", fail)
    session.add(text(2, 100))
    with pytest.raises(OSError, match="No space"):
        session.save(path)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [before]


def test_phrases_need_a_tokenizer_from_the_first_on() -> None:
    with pytest.raises(ValueError, match="got 1 phrases but no tokenizer"):
        Session(phrases=["# Licensed"])
