"""Whether an item stands in what it cites."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from compactor import language
from compactor.evidence import normal
from compactor.identifiers import exact, stems
from compactor.snapshot import Fact
from compactor.transcript import Part
from compactor.verify.case import Case, refs_of
from compactor.verify.finding import Finding

NEAR, MOST_COMPARED = 0.75, 500
"""How like two identifiers are (of 1) when one may be a slip for the other, and among how many it is looked for."""
MOST_COPIED = 1_000
"""Characters that an item may repeat of what a tool printed."""


def refs_resolve(given: Case) -> Iterator[Finding]:
    """Every item cites something, and every ref leads to an entry, or was carried from a source that is away."""
    for name, item in given.snapshot.items():
        if not item.evidence:
            yield Finding(
                "evidence", "error", "cites nothing", "cite the entry it comes from, or drop it", name, item.id
            )
        for ref in dict.fromkeys((*refs_of(item), *item.change)):
            known = given.evidence.knows(ref)
            if known and not given.evidence.stands(ref):
                yield Finding(
                    "refs", "error", "nothing stands there", "cite an entry that exists", name, item.id, (ref,)
                )
            elif not known and item.id not in given.carried:
                yield Finding(
                    "refs", "error", "the source is unknown", "give the source, or drop it", name, item.id, (ref,)
                )


def identifiers_stand(given: Case) -> Iterator[Finding]:
    """Every identifier and number of an item stands, whole, in what it cites."""
    for name, item in given.active():
        if given.elsewhere(item):
            continue
        said = given.new_words(item)
        cited = given.evidence.text(refs_of(item))
        cut_off = {piece.split()[-1] for piece in said.split(" …")[:-1] if piece.split()}
        wanted = exact(said.replace("…", " "))
        missing = sorted(i for i in wanted if not (stands(i, cited, i in "\n".join(cut_off)) or joined(i, cited)))
        if missing and cited:
            message = f"{', '.join(_with_near(missing[:5], cited))} doesn't stand in what it cites"
            yield Finding(
                "identifiers", "error", message, "copy it from the entry, or drop it", name, item.id, item.evidence
            )


SUPPORTED = (
    "objective", "done_criteria", "decisions", "rejected", "facts", "completed", "in_progress", "open_loops",
)  # fmt: skip
"""Fields whose items say what the entries say; a quote is compared itself, a risk and a next step are conclusions."""
LEAST_WORDS, LEAST_SHARE = 4, 0.2
"""Of an item's telling words, where it has so many, this share stands in what it cites. Of 379 items
written by hand of real sessions none had less than 0.28; 29 % of items with another one's evidence have under 0.2."""
_OURS = re.compile(r"^(?:none, because|not stated|planned: |verify: |asked: )")


def evidence_supports(given: Case) -> Iterator[Finding]:
    """What an item cites speaks of what it says: an identifier or enough of its words stand there."""
    for name, item in given.active():
        if name not in SUPPORTED or item.basis == "inferred" or _OURS.match(item.text) or given.elsewhere(item):
            continue
        cited = given.evidence.text(refs_of(item))
        if item.text in cited or _speaks(item.text, cited) or not _comparable(item.text, cited):
            continue
        message = "what it cites doesn't speak of it"
        cure = "cite the entry it comes from, or drop it"
        yield Finding("support", "error", message, cure, name, item.id, item.evidence)


def _speaks(text: str, cited: str) -> bool:
    """Whether a text of more than a few words has an identifier or enough words in common with what it cites."""
    said, there = stems(text), cited.casefold()
    common = sum(stem in there for stem in said)
    if len(said) < LEAST_WORDS or common >= LEAST_SHARE * len(said):
        return True
    signs = language.of(text) in language.SCRIPTS
    return (signs and common > 0) or any(stands(name, cited) for name in exact(text))


def _comparable(text: str, cited: str) -> bool:
    """Whether two texts aren't in two languages, as far as can be told; no words are the same in two scripts."""
    one, other = language.of(text), language.of(cited)
    return bool(cited.strip()) and (one == other or (one not in language.SCRIPTS and not (one and other)))


_PATH = re.compile(r"[./~]|.*\.\w{1,5}$|\w+://")
_WORD = re.compile(r"[A-Za-z]?[a-z]{3,}")


def joined(name: str, cited: str) -> bool:
    """Whether what looks like one name only joins some that stand there: `WP14-WP20`, or words: `confirms/declines`."""
    slashed, dashed = name.split("/") if not _PATH.match(name) else [], name.split("-")
    return (len(slashed) > 1 and all(stands(piece, cited) or _is_word(piece, cited) for piece in slashed)) or (
        len(dashed) > 1 and all(stands(piece, cited) for piece in dashed)
    )


def _is_word(piece: str, cited: str) -> bool:
    """Whether a piece is a plain word that stands there in some form."""
    return _WORD.fullmatch(piece) is not None and all(stem in cited.casefold() for stem in stems(piece))


def _with_near(missing: Sequence[str], cited: str) -> Iterator[str]:
    """Each missing identifier, with what stands there and is almost the same."""
    there = sorted(exact(cited))[:MOST_COMPARED]
    for wanted in missing:
        near = get_close_matches(wanted, there, 1, NEAR) if len(wanted) >= 3 else []
        yield f"{wanted} ({near[0]} does)" if near else wanted


def stands(wanted: str, cited: str, cut_off: bool = False) -> bool:
    """Whether an identifier or number stands there whole and not as a piece of a longer one.

    The end may be missing where it was cut off; a number may have a unit right behind it, a time its date before it.
    """
    number = not any(character.isalpha() for character in wanted)
    at = cited.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        before, after = cited[max(at - 1, 0) : at], cited[end : end + 1]
        before = "" if number and _CLOCK.match(cited, max(at - 2, 0)) else before
        worded = bool(_PASCAL.fullmatch(wanted))
        before, after = (beside.replace("_", " ") if worded else beside for beside in (before, after))
        longer = _goes_on(before, wanted[0]) or (not cut_off and _goes_on(after, wanted[-1], unit=number))
        if not longer:
            return True
        at = cited.find(wanted, at + 1)
    return False


_CLOCK = re.compile(r"\dT\d\d:\d\d")
"""Where the time begins in a date and time (ISO 8601)."""


_PASCAL = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
"""A name of words run together: between underscores (`TestInstall_LocalDev`) it is what people call it."""


def _goes_on(beside: str, edge: str, unit: bool = False) -> bool:
    """Whether the character beside an identifier's edge belongs to it."""
    if not beside.isascii() or not (edge.isalnum() or edge == "_"):
        return False
    return beside.isdigit() or (not unit and (beside.isalpha() or beside == "_"))


def bases_are_true(given: Case) -> Iterator[Finding]:
    """A fact is stated or observed, and something it cites makes it so."""
    for name, item in given.active():
        if given.elsewhere(item):
            continue
        if isinstance(item, Fact) and item.basis not in ("stated", "observed"):
            yield Finding("basis", "error", f"a fact can't be {item.basis}", "make it a loop to verify", name, item.id)
        elif isinstance(item, Fact) and not any(_bears(part, item.basis) for part in given.cited(item)):
            message = f"nothing it cites makes it {item.basis}"
            yield Finding(
                "basis", "error", message, "cite a result or the user, or make it a loop", name, item.id, item.evidence
            )


def _bears(part: Part, basis: str) -> bool:
    if basis == "stated":
        return part.speaker in ("human", "system") or bool(part.said)
    return part.speaker in ("tool", "human", "system") or part.kind in ("call", "media")


def claims_are_true(given: Case) -> Iterator[Finding]:
    """What is said to be stated cites somebody who may state it."""
    for name, item in given.active():
        if item.basis != "stated" or isinstance(item, Fact) or given.elsewhere(item):
            continue
        parts = given.cited(item)
        if parts and not any(part.said or part.speaker in ("human", "system") or part.verdict for part in parts):
            message = "nobody who may state it does so there"
            yield Finding("claimed", "error", message, "say `reported`", name, item.id, item.evidence)


def outputs_are_not_copied(given: Case) -> Iterator[Finding]:
    """No item repeats a long run of what a tool printed: a summary would only move it."""
    for name, item in given.active():
        if len(item.text) <= MOST_COPIED or given.elsewhere(item):
            continue
        said = normal(item.text)
        if any(part.speaker == "tool" and said in normal(part.text) for part in given.cited(item)):
            message = f"copies {len(item.text):,} characters of output"
            yield Finding("copied", "error", message, "say what it shows in a sentence", name, item.id, item.evidence)
