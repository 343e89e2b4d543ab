"""What a summary in prose, somebody else's, says that its transcript doesn't, and what it leaves out.

Prose cites nothing, so each of its sentences is held to the whole conversation that it stands for. What a typed summary
promises can't be asked of it: its words may be its own. Findings name the line of the prose.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from compactor import words
from compactor.evidence import Evidence, normal
from compactor.identifiers import identifiers, stems
from compactor.ledger import Ledger, Said
from compactor.transcript import Entry, Ref
from compactor.verify.finding import Finding, Severity
from compactor.verify.sources import NEAR, joined, stands
from compactor.verify.steering import hijack

TOLD = 0.6
"""The share of a rule's telling words that two neighbouring lines of a summary must have to tell it."""
SHOWN = 80
LEAST_STRANGE, STRANGE = 8, 0.15
"""So many identifiers, and this share, that stand nowhere are no inventions: another conversation is told of."""
LEAST_LONG = 4
"""Characters of an identifier that somebody may have invented; shorter ones are mostly known to everybody."""
MOST_LONGER = 3
"""Characters that a slip adds or leaves out at most."""


@dataclass(frozen=True)
class Prose:
    """A summary in prose, and the conversation that it stands for."""

    text: str
    head: Sequence[Entry]
    ledger: Ledger

    @cached_property
    def told(self) -> str:
        """All that the conversation says."""
        evidence = Evidence(())
        return "\n".join(piece for entry in self.head for part in entry.parts for piece in evidence.pieces(part))

    @cached_property
    def lines(self) -> Sequence[tuple[int, str]]:
        """The lines that say something, each with its number, from 1."""
        return [(n, line) for n, line in enumerate(self.text.split("\n"), 1) if line.strip()]

    @cached_property
    def sentences(self) -> Sequence[tuple[int, str]]:
        return [(n, sentence) for n, line in self.lines for sentence in words.sentences(line)]

    @cached_property
    def _pairs(self) -> Sequence[set[str]]:
        """The stems of each line and the next."""
        said = [stems(line) for _, line in self.lines]
        return [one | other for one, other in zip(said, [*said[1:], set[str]()], strict=True)]

    def tells(self, sentence: str) -> bool:
        """Whether two neighbouring lines have enough of a sentence's telling words, or the sentence itself."""
        wanted = stems(sentence)
        if normal(sentence) in normal(self.text):
            return True
        return not wanted or any(len(wanted & pair) >= TOLD * len(wanted) for pair in self._pairs)

    @cached_property
    def spoken(self) -> str:
        return normal(" ".join(said.text for said in self.ledger.said))


def prose_findings(given: Prose) -> Iterator[Finding]:
    """What can be said against a summary in prose."""
    for check in (_invented, _lost_rules, _granted_by_nobody, _lost_limits, _untrue_claims, _steers):
        yield from check(given)


def _invented(given: Prose) -> Iterator[Finding]:
    """Identifiers that stand nowhere in the conversation; where a good part doesn't, it can't be the whole of it."""
    places: dict[str, int] = {}
    for number, line in given.lines:
        for name in identifiers(line):
            if len(name) >= LEAST_LONG:
                places.setdefault(name, number)
    gone = {name: number for name, number in places.items() if not _stands(given, name)}
    if len(gone) >= LEAST_STRANGE and len(gone) > STRANGE * len(places):
        message = f"{len(gone)} of its {len(places)} identifiers stand nowhere: the transcript isn't all that it is of"
        yield Finding("identifiers", "warning", message, "give the transcript that it stands for, from the beginning")
        return
    for name, number in gone.items():
        near = _near(name, given.ledger.weight)
        message = f"{name} stands nowhere in the conversation" + (f" ({near} does)" if near else "")
        yield Finding("identifiers", "error", message, "copy it from the conversation", "line", str(number))


def _stands(given: Prose, name: str) -> bool:
    """Whether the conversation has a name, or one that is shortened, or that only joins what it has."""
    known = name in given.ledger.weight or "..." in name
    return known or stands(name, given.told) or joined(name, given.told)


def _near(name: str, known: Iterable[str]) -> str:
    """A known identifier of which this may be a slip; empty where none is."""
    alike = sorted(k for k in known if k[:2] == name[:2] and abs(len(k) - len(name)) <= MOST_LONGER)
    return next(iter(get_close_matches(name, alike, 1, NEAR)), "")


def _lost_rules(given: Prose) -> Iterator[Finding]:
    """Rules of the user that no two neighbouring lines tell; those in plain words of must and never are errors."""
    for said in given.ledger.said:
        for rule in words.sentences(said.text) if said.kind == "rule" else ():
            if words.is_rule(rule) and not given.tells(rule):
                severity: Severity = "error" if words.is_strict(rule) else "warning"
                message = f"leaves out what the user said: {words.clip(rule, SHOWN)!r}"
                yield Finding("constraints", severity, message, "say it in the user's words", refs=(said.ref,))


def _granted_by_nobody(given: Prose) -> Iterator[Finding]:
    """Permissions that it tells and the user never gave, or expressly denied."""
    grants = [said for said in given.ledger.said if _grants(said)]
    denials = [s for s in given.ledger.said if s.kind == "rule" and words.refuses(s.text)]
    for number, sentence in given.sentences:
        if not words.tells_of_permission(sentence) or normal(sentence) in given.spoken:
            continue
        acts = words.acts(sentence)
        if acts and not any(acts <= words.acts(_in_words(grant)) for grant in grants):
            against = next((d for d in denials if acts & words.acts(d.text)), None)
            message = f"tells of a permission that the user {'denied' if against else 'never gave'}"
            refs = (against.ref,) if against else ()
            cure = "quote who permitted it, or leave it out"
            yield Finding("authority", "error", f"{message}: {words.clip(sentence, SHOWN)!r}", cure, "line",
                          str(number), refs)  # fmt: skip


def _grants(said: Said) -> bool:
    return said.kind in ("permission", "approval", "choice") or (said.outward and said.kind in ("request", "rule"))


def _in_words(grant: Said) -> str:
    """A grant with what it answers: a yes says nothing by itself."""
    return f"{grant.text} {grant.answering.text if grant.answering else ''}"


def _lost_limits(given: Prose) -> Iterator[Finding]:
    """Limits said with a permission that the summary tells without them."""
    telling = {act for _, s in given.sentences if words.tells_of_permission(s) for act in words.acts(s)}
    for grant in given.ledger.said:
        if not _grants(grant) or not words.acts(_in_words(grant)) & telling:
            continue
        for limit in words.sentences(" ".join(_beside(given, grant))):
            if words.is_rule(limit) and words.has_limit(limit) and not given.tells(limit):
                message = f"tells a permission without its limit: {words.clip(limit, SHOWN)!r}"
                yield Finding("authority", "error", message, "say the limit with it", refs=(grant.ref,))


def _beside(given: Prose, grant: Said) -> Iterator[str]:
    """What the user said in the same message as a grant, rules apart: those are looked for themselves."""
    here = Ref.parse(grant.ref).entry
    return (said.text for said in given.ledger.said if Ref.parse(said.ref).entry == here and said.kind != "rule")


_GREEN = re.compile(
    r"\b(?:tests?|checks?|build|ci)\b[^.;\n]{0,40}\b(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b"
    r"(?=\W*$|[.,;)]| (?:now|and)\b)"
    r"|\bTests? (?:laufen|sind) (?:durch|grün)|测试.{0,6}通过", re.IGNORECASE
)  # fmt: skip


_NOT_YET = re.compile(
    r"\b(?:not|no|until|once|when|if|make|should|must|ensure|verify|fail\w*|before|will|to pass)\b|n't", re.IGNORECASE
)


def _untrue_claims(given: Prose) -> Iterator[Finding]:
    """That tests pass, where the last run of any failed."""
    runs = [command for command in given.ledger.commands if command.is_test]
    if not runs or runs[-1].ok:
        return
    for number, sentence in given.sentences:
        if _GREEN.search(sentence) and not _NOT_YET.search(sentence):
            message = f"says that tests pass, and the last run failed: {words.clip(sentence, SHOWN)!r}"
            yield Finding("proof", "warning", message, "say what failed", "line", str(number), (runs[-1].result,))


def _steers(given: Prose) -> Iterator[Finding]:
    for number, line in given.lines:
        if what := hijack(line, given.spoken):
            cure = "say in a plain sentence what it is about, or drop it"
            yield Finding("steers", "error", f"{what}: {words.clip(line.strip(), SHOWN)!r}", cure, "line", str(number))
