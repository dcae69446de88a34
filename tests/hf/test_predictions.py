from __future__ import annotations

from typing import Any

import pytest
import torch

from lookahead import Lookahead
from tests.models import prompt, tiny
from tests.vocabularies import vocabulary


@pytest.mark.parametrize(
    "prediction",
    [["one", "two"], torch.ones(2, 3, dtype=torch.int64), [[1, 2], [3]], {"type": "content"}, b"text", 5, "\ud800"],
    ids=["two texts", "two rows", "ragged", "of OpenAI's API", "bytes", "a number", "no character"],
)
def test_a_prediction_that_is_neither_text_nor_ids_is_refused_by_name(prediction: Any) -> None:
    said = "prediction of type .* cannot be read .*; allowed is a text, or the token ids of one sequence"
    ahead = Lookahead(vocabulary("byte_level"))
    with pytest.raises(ValueError, match=said):
        ahead.generate(tiny(), prompt(), max_new_tokens=3, prediction=prediction)
    with pytest.raises(ValueError, match=said):
        Lookahead(vocabulary("byte_level"), prediction=prediction)


def test_all_rows_draft_from_one_prediction_and_their_tokens_are_counted() -> None:
    model, ids = tiny(), prompt().repeat(3, 1)
    ids[1:, 5:9] = 7
    vanilla = model.generate(ids, max_new_tokens=30)
    ahead = Lookahead(cost="linear:0", recycling=False)
    expected = vanilla[0, ids.shape[1] :]
    assert torch.equal(ahead.generate(model, ids, max_new_tokens=30, prediction=expected), vanilla)
    stats = ahead.stats
    assert stats.accepted_prediction_tokens >= 20
    assert stats.accepted_prediction_tokens + stats.rejected_prediction_tokens == stats.drafted_by_source["prediction"]
    assert stats.token_sources.count("prediction") == stats.accepted_prediction_tokens
