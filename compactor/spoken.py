"""Which of the user's words stay as they were said, though no field of the summary asks for them.

What is no rule, grant, choice or request by its form may bind all the same: a name to remember, a wish in passing, an
answer in two messages. The user's own words are few beside all else, so in doubt they stay, verbatim, as what was said.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from compactor import words
from compactor.identifiers import exact
from compactor.ledger import Ledger, Said

PIECES = 6
"""A message of more pieces is mostly pasted: a review, a log, a file."""
STATEMENT, TOLD_MUCH = 16, 40
"""Letters from which on a remark is a statement, and one that tells much."""
MARK, LIMIT, MUCH = 1.0, 1.0, 0.5
"""What a name or number, a limit, and a statement that tells much add to the force of what was said."""


def force(text: str) -> float:
    """How likely what the user says is to be needed word for word later; 0 for a passing remark."""
    if words.length(text) < STATEMENT and not exact(text):
        return 0.0
    marks = MARK * bool(exact(text)) + LIMIT * words.has_limit(text)
    return 0.5 + marks + MUCH * (words.length(text) >= TOLD_MUCH)


def spoken(ledger: Ledger) -> Iterator[tuple[Said, ...]]:
    """What the user said, most force first: statements with the message that each goes on from, then requests."""
    before = begun(ledger)
    found = [said for said in _typed(ledger) if _states(said) and _is_said(said)]
    whole = [(*(_opening(said, before)), said) for said in found]
    parts = {id(one) for several in whole for one in several[:-1]}
    alone = [several for several in whole if id(several[-1]) not in parts]
    yield from sorted(alone, key=lambda several: -max(force(one.text) for one in several))
    yield from ((said,) for said in _requests(ledger))


def _opening(said: Said, before: Mapping[int, tuple[Said, ...]]) -> Iterator[Said]:
    return (one for one in (before.get(said.turn, ()) if said.first else ()) if one.kind != "request")


def _requests(ledger: Ledger) -> list[Said]:
    """What the user asked for at some length, or with a limit, a name or a number: done once, it may hold on."""
    found = [said for said in _typed(ledger) if said.kind == "request" and _is_said(said) and force(said.text) >= 1.0]
    found = [said for said in found if words.length(said.text) >= TOLD_MUCH]
    return sorted(found, key=lambda said: -force(said.text))


def _typed(ledger: Ledger) -> list[Said]:
    """What the user wrote, as far as one can tell, and not what they pasted."""
    pieces = Counter(said.ref for said in ledger.said)
    return [said for said in ledger.said if said.first or pieces[said.ref] <= PIECES]


def _states(said: Said) -> bool:
    """Whether some sentence of it is neither a request nor a question."""
    if said.kind not in ("request", "question"):
        return True
    rest = [s for s in words.sentences(said.text) if not (words.is_question(s) or words.is_request(s))]
    return len(rest) > 0 and force(" ".join(rest)) >= 1.0


def _is_said(said: Said) -> bool:
    return force(said.text) > 0 and bool(_PROSE.match(said.text)) and not words.is_pasted(said.text)


_PROSE = re.compile(r"(?=.*[^\W\d_]{2})(?!.*(?:[{}]|:=|==|\)\s*$))", re.DOTALL)
"""What the user says, as opposed to what they paste."""


def begun(ledger: Ledger) -> Mapping[int, tuple[Said, ...]]:
    """By turn: what the user said in the message before, where the agent hadn't answered it when they went on."""
    pairs = zip(ledger.turns, ledger.turns[1:], strict=False)
    return {turn.number: before.asked for before, turn in pairs if not before.answer and not before.proof}
