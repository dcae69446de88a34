"""What became of guesses is taken over from another as it is, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lookahead.draft.calibration import Calibration


def learnt(value: float = 1.0) -> Any:
    evidence = Calibration().evidence.reshape(-1).copy()
    evidence["hits"] = value
    return evidence


def test_what_another_has_learnt_is_taken_over() -> None:
    one = Calibration()
    one.restore({"prompt": 2}, learnt())
    assert (one.kind("prompt"), one.kinds) == (2, {"prompt": 2})
    assert np.all(one.evidence["hits"] == 1.0)


@pytest.mark.parametrize(
    ("kinds", "evidence", "says"),
    [
        (None, learnt(), "are no numbers of sources"),
        ([1], learnt(), "are no numbers of sources"),
        ({"prompt": "2"}, learnt(), "are no numbers of sources"),
        ({"prompt": True}, learnt(), "are no numbers of sources"),
        ({"prompt": 10**9}, learnt(), "allowed are 1 to 63"),  # kernels would look far behind the table
        ({"prompt": -1}, learnt(), "allowed are 1 to 63"),
        ({"prompt": 2}, learnt()[:5], "the evidence has 5 rows; allowed are"),
        ({"prompt": 2}, learnt(np.nan), "no finite numbers"),
        ({"prompt": 2}, learnt(np.inf), "no finite numbers"),
        ({"prompt": 2}, learnt(-1.0), "no finite numbers, 0 and above"),
    ],
)
def test_what_nobody_can_have_learnt_is_refused(kinds: Any, evidence: Any, says: str) -> None:
    one = Calibration()
    with pytest.raises(ValueError, match=says):
        one.restore(kinds, evidence)
    assert one.kinds == Calibration().kinds
    assert not one.evidence["hits"].any()
