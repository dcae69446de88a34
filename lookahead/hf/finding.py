"""What a check finds: where two outputs part, what the forwards say there, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["BUG", "EQUAL", "NEAR_TIE", "Finding", "Reading", "Token", "judge"]

EQUAL, NEAR_TIE, BUG = "equal", "near-tie", "bug"
_CLEARLY = 3.0  # the noise is the greatest of a few measured differences; in bfloat16 another came to 1.3 times that


@dataclass(frozen=True)
class Token:
    """A token as it stands in an output."""

    id: int
    text: str


@dataclass(frozen=True)
class Reading:
    """What one forward says of the position where two outputs part.

    Attributes
    ----------
    forward : str
        What was fed, and how.
    vanilla, lookahead : float
        The logits of generate's token and of lookahead's.
    chosen : Token
        The token that these logits choose.
    margin : float
        How far the chosen token is ahead of the second one. With sampling each token counts with what the draw adds to
        it, so this is how far the draw lies from the border; in units of logits too.
    """

    forward: str
    vanilla: float
    lookahead: float
    chosen: Token
    margin: float


@dataclass(frozen=True)
class Finding:
    """What came of one prompt.

    Attributes
    ----------
    prompt : int
        Number of the prompt, from 0.
    verdict : str
        ``"equal"``, ``"near-tie"`` or ``"bug"``.
    reason : str
        The verdict in a sentence.
    tokens, forwards, accepted : int
        Lookahead's: tokens of its output, forwards, and draft tokens accepted.
    position : int or None
        Number of the first token that differs, from 0; this and the rest only where one does.
    context : str
        The end of the text before it.
    vanilla, lookahead : Token or None
        The token of each; None where an output has ended.
    readings : tuple of Reading
        generate's forward over one token, lookahead's over several, then clean ones, that never rolled anything back.
    margin : float or None
        How far the two tokens lie apart, by generate's forward or by lookahead's, whichever says less. None where a
        filter takes one of the two away.
    noise : float or None
        Greatest difference of the position's logits between generate's forward and clean ones.
    deviation : float or None
        Difference of lookahead's logits from the nearest of these.
    """

    prompt: int
    verdict: str
    reason: str
    tokens: int
    forwards: int
    accepted: int
    position: int | None = None
    context: str = ""
    vanilla: Token | None = None
    lookahead: Token | None = None
    readings: tuple[Reading, ...] = ()
    margin: float | None = None
    noise: float | None = None
    deviation: float | None = None


def judge(found: Finding, chosen: int, is_own_text: bool, draws_agree: bool) -> Finding:
    """Return a finding with its verdict: a near-tie if nothing in lookahead can explain the difference.

    Parameters
    ----------
    found : Finding
        All but the verdict.
    chosen : int
        The token that the logits of lookahead's own forward choose.
    is_own_text : bool
        Whether that forward was over the tokens that lookahead emitted.
    draws_agree : bool
        Whether the random generator stood where generate's stood.
    """
    assert found.lookahead and found.noise is not None and found.deviation is not None
    allowed = _CLEARLY * found.noise
    if not is_own_text:
        bug = "Lookahead's forward was not over the tokens that it emitted."
    elif not draws_agree:
        bug = "Lookahead drew more or fewer random numbers than generate before this token."
    elif chosen != found.lookahead.id:
        bug = "Lookahead's token is not the one that the logits of its own forward choose."
    elif found.deviation > allowed:
        bug = "The logits of lookahead's forward lie clearly further from clean ones than these from each other."
    else:
        return replace(found, verdict=NEAR_TIE, reason=_explanation(found, allowed))
    return replace(found, verdict=BUG, reason=bug)


def _explanation(found: Finding, allowed: float) -> str:
    """Return why a near-tie is one."""
    if found.vanilla and found.readings[0].chosen != found.vanilla:
        return "generate itself does not repeat its token here; lookahead's follows from logits within the noise."
    if found.margin is None:
        return "A filter (top_k, top_p ...) takes one of the two tokens in or not, by logits within the noise."
    if found.margin > allowed:
        return "The logits agree within the noise, and processors widen it."
    return "The two tokens lie closer together than the noise can tell."
