"""Whether what was permitted still is, after what the same speaker said later."""

import re
from collections.abc import Iterator

from compactor import words
from compactor.evidence import normal
from compactor.identifiers import stems
from compactor.snapshot import Authority
from compactor.verify.case import Case
from compactor.verify.finding import Finding

_CLAUSE = re.compile(r"[,;:.!?—。，；！？\n]+|\b(?:but|because|since|aber|weil|pero|porque)\b|但是?|因为")
FLUFF = stems(
    "take back permission allowed approval approved anymore longer more from then again after until never cannot don't"
    " without revoke revoked withdraw forget ignore please what said told about okay sorry wait stop that this may can"
    " darfst nicht mehr zurück nehme erlaubnis vergiss doch bitte nunca permiso retiro olvida puedes"
    " nach dort hier noch jetzt para aquí ahora"
    " eine deine meine seine kein auch wird werden sind oder wenn dann dass habe hast haben schon alle diese"
    " pero esta este todo cuando como porque desde hasta sobre tiene están"
)
"""Words that take something back, and say nothing of what."""

_SIGNS = "\u3040"
"""Where Chinese and Japanese signs begin: pairs of them overlap, and can't be told apart into words."""


def permissions_still_hold(given: Case) -> Iterator[Finding]:
    """A permission that its speaker took back later isn't active."""
    for name, item in given.active():
        if isinstance(item, Authority) and (ref := _taken_back(given, item)):
            yield Finding("revoked", "error", "was taken back", "close it with those words", name, item.id, (ref,))


def _taken_back(given: Case, item: Authority) -> str:
    """Where a permission was taken back; empty where it wasn't."""
    granted = stems(item.quote or item.text)
    for ref, said in given.evidence.said_after(item.evidence):
        for sentence in words.sentences(said):
            if _takes(sentence, granted):
                return ref
    return ""


def _takes(sentence: str, granted: set[str]) -> bool:
    """Whether a sentence denies or takes back what a permission says, and nothing else."""
    if words.is_question(sentence):
        return False
    for clause in _CLAUSE.split(sentence):
        if words.is_denial(clause) or words.is_revocation(clause):
            about = stems(clause) - FLUFF
            others = {stem for stem in about - granted if stem[0].isalpha() and stem[0] < _SIGNS}
            if about & granted and not others:
                return True
    return False


def limits_said_later(given: Case, item: Authority) -> Iterator[str]:
    """Limits that the speaker put on a permission's act in a later message, and that no rule or permission says."""
    acts = words.acts(item.quote or item.text)
    stands = (*given.rules, *(normal(f"{grant.quote} {grant.excludes}") for grant in given.snapshot.authority))
    for _, said in given.evidence.said_after(item.evidence):
        for sentence in words.sentences(said) if words.acts(said) & acts else ():
            limit = normal(sentence)
            ends = words.is_denial(sentence) or words.is_revocation(sentence)
            known = ends or words.is_pasted(sentence) or any(limit in text or text in limit for text in stands)
            if not known and words.acts(sentence) & acts and words.is_rule(sentence) and words.has_limit(sentence):
                yield sentence


def permissions_are_limited(given: Case) -> Iterator[Finding]:
    """The limits that were put on a permission later stand in it, or as rules."""
    for name, item in given.active():
        if isinstance(item, Authority):
            for limit in limits_said_later(given, item):
                message = f"leaves out the limit said later: {limit!r}"
                yield Finding("limits", "error", message, "put the limit into `excludes`", name, item.id, item.evidence)
