"""Whether a snapshot and an output keep their promises: one small function each.

A check looks at one promise and yields findings. Refs into sources that aren't at hand pass where the item was carried
from the previous snapshot, and are counted as carried.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from compactor import words
from compactor.evidence import Evidence, normal
from compactor.identifiers import exact, plain_words
from compactor.ledger import FAILS
from compactor.render import parse, shown
from compactor.snapshot import (
    Artifact,
    Authority,
    Completed,
    Constraint,
    Decision,
    Fact,
    InProgress,
    Item,
    OpenLoop,
    Snapshot,
)
from compactor.tools import action
from compactor.transcript import Part

CHECKED_FIELDS = ("text", "quote", "value", "path", "why", "scope", "excludes", "role", "holds_while", "next")
"""Where an item may hold identifiers that must stand in what it cites."""


MOST_COPIED = 1_000
"""Characters that an item may repeat of what a tool printed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and the cure."""

    check: str
    severity: Literal["error", "warning"]
    message: str
    cure: str
    field: str = ""
    item: str = ""
    refs: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.field} {self.item}".strip()
        cited = f" ({', '.join(self.refs)})" if self.refs else ""
        return f"{self.check}: {place + ': ' if place else ''}{self.message}{cited}; {self.cure}"


@dataclass(frozen=True)
class Verdict:
    """All the findings on a snapshot and its output."""

    findings: tuple[Finding, ...] = ()
    repaired: tuple[Finding, ...] = ()
    """What was found first and mended by code."""
    carried: int = 0
    """Items whose evidence lies in sources that weren't at hand."""
    items: int = 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def ok(self) -> bool:
        return not self.errors

    def as_dict(self) -> dict[str, Any]:
        def plain(finding: Finding) -> dict[str, Any]:
            return {name: getattr(finding, name) for name in Finding.__dataclass_fields__}

        return {
            "ok": self.ok,
            "items": self.items,
            "carried": self.carried,
            "findings": [plain(f) for f in self.findings],
            "repaired": [plain(f) for f in self.repaired],
        }


@dataclass(frozen=True)
class Case:
    """What the checks look at."""

    snapshot: Snapshot
    evidence: Evidence
    previous: Snapshot | None = None
    carried: frozenset[str] = field(default_factory=frozenset)
    """Ids of items that came from the previous snapshot: their evidence may lie in sources that aren't at hand."""

    def active(self) -> Iterator[tuple[str, Item]]:
        return ((name, item) for name, item in self.snapshot.items() if item.status == "active")

    def cited(self, item: Item) -> tuple[Part, ...]:
        return tuple(part for ref in refs_of(item) for part in self.evidence.parts(ref))

    @cached_property
    def _before(self) -> Mapping[str, Item]:
        return {item.id: item for _, item in (self.previous or Snapshot()).items()}

    @cached_property
    def rules(self) -> Sequence[str]:
        return tuple(normal(rule.quote or rule.text) for rule in self.snapshot.constraints)

    def away(self, item: Item) -> bool:
        """Whether some of a carried item's evidence can't be looked at."""
        return item.id in self.carried and not all(self.evidence.knows(ref) for ref in refs_of(item))

    def elsewhere(self, item: Item) -> bool:
        """Whether what an item says can't be checked: it says what it said before, and that evidence is away."""
        old = self._before.get(item.id)
        return self.away(item) and (old is None or _content(old) == _content(item))

    def new_words(self, item: Item) -> str:
        """What an item says, and didn't say before where the evidence for that is away."""
        old = self._before.get(item.id) if self.away(item) else None
        values = ((key, str(getattr(item, key, "") or "")) for key in CHECKED_FIELDS)
        return " ".join(value for key, value in values if old is None or value != getattr(old, key, ""))


def _content(item: Item) -> dict[str, Any]:
    """What an item says: all of it but its evidence and what became of it."""
    return {k: v for k, v in item if k not in ("evidence", "status", "by", "change", "shown")}


def refs_of(item: Item) -> tuple[str, ...]:
    """Every ref that bears an item: its evidence, its proof, the approver's words."""
    proof = (item.proof,) if isinstance(item, Completed) and item.proof else ()
    approval = (item.approved_by.ref,) if isinstance(item, Decision) and item.approved_by else ()
    return tuple(dict.fromkeys((*item.evidence, *proof, *approval)))


def case(snapshot: Snapshot, evidence: Evidence, previous: Snapshot | None = None) -> Case:
    """A case to check; what came from the previous snapshot, with its first evidence, is carried."""
    old = {item.id: item for _, item in (previous or Snapshot()).items()}
    carried = frozenset(
        item.id for _, item in snapshot.items() if item.id in old and old[item.id].evidence[:1] == item.evidence[:1]
    )
    return Case(snapshot, evidence, previous, carried)


def verify(given: Case) -> Verdict:
    """Run every check on a snapshot."""
    findings = tuple(finding for check in CHECKS for finding in check(given))
    everything = list(given.snapshot.items())
    carried = sum(given.elsewhere(item) for _, item in everything)
    return Verdict(findings, carried=carried, items=len(everything))


# -- the promises


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


def quotes_stand(given: Case) -> Iterator[Finding]:
    """A rule or permission quotes the cited entry, and the one named said it there."""
    for name, item in given.active():
        if not isinstance(item, Constraint | Authority) or given.elsewhere(item):
            continue
        speaker = item.said_by if isinstance(item, Constraint) else item.granted_by
        if not _spoken(given, item, speaker):
            message = f"{speaker or 'nobody named'} didn't say this there"
            cure = "quote the user or the system word for word, or make it a loop"
            yield Finding("quotes", "error", message, cure, name, item.id, item.evidence)


def _spoken(given: Case, item: Constraint | Authority, speaker: str) -> bool:
    quote = normal(item.quote)
    if speaker == "user":
        return bool(quote) and any(_whole(quote, normal(said)) for said in given.evidence.said(item.evidence))
    parts = [part for ref in item.evidence for part in given.evidence.parts(ref)]
    if speaker == "system":
        return bool(quote) and any(part.speaker == "system" and quote in normal(part.text) for part in parts)
    if speaker == "summary" and isinstance(item, Constraint) and item.basis == "reported":
        wanted = normal(item.text.removesuffix(" …"))
        return any(part.speaker == "summary" and wanted in normal(part.text) for part in parts)
    return False


def _whole(quote: str, said: str) -> bool:
    """Whether a quote stands there and is cut at neither end inside a word."""
    return re.search(rf"(?<!\w){re.escape(quote)}(?!\w)" if quote[0].isalnum() and quote[-1].isalnum()
                     else re.escape(quote), said) is not None  # fmt: skip


_TURNS = re.compile(
    r"\b(?:never|not|no|don'?t|can'?t|won'?t|mustn'?t|without|unless|except|before|until|if)\b|n['’]t\b", re.I
)
"""Words that turn what stands beside them into something else."""


def quotes_are_whole(given: Case) -> Iterator[Finding]:
    """What is said of a quote is the quote; and it isn't cut out of a sentence that means something else."""
    for name, item in given.active():
        if not isinstance(item, Constraint | Authority) or not item.quote or given.elsewhere(item):
            continue
        if isinstance(item, Constraint) and normal(item.text) != normal(item.quote):
            message = "says something else than its quote"
            yield Finding("wording", "error", message, "use the words of the quote", name, item.id, item.evidence)
        if whole_sentence(given, item) != item.quote:
            message = "its quote is cut out of a sentence that says otherwise"
            yield Finding("cut", "error", message, "quote the whole sentence", name, item.id, item.evidence)


def whole_sentence(given: Case, item: Constraint | Authority) -> str:
    """The sentence that a quote is cut out of, where the rest of it turns its sense; else the quote."""
    quote = normal(item.quote)
    for said in given.evidence.said(item.evidence):
        for sentence in words.sentences(said):
            rest = normal(sentence).replace(quote, " ", 1)
            turned = bool(_TURNS.search(rest)) or (isinstance(item, Authority) and words.is_question(sentence))
            if quote in normal(sentence) and len(rest.split()) > 0 and rest.strip(" .,;:!?") and turned:
                return sentence
    return item.quote


def identifiers_stand(given: Case) -> Iterator[Finding]:
    """Every identifier and number of an item stands, whole, in what it cites."""
    for name, item in given.active():
        if given.elsewhere(item):
            continue
        said = given.new_words(item)
        cited = given.evidence.text(refs_of(item))
        cut_off = {piece.split()[-1] for piece in said.split(" …")[:-1] if piece.split()}
        missing = sorted(i for i in exact(said.replace("…", " ")) if not stands(i, cited, i in "\n".join(cut_off)))
        if missing and cited:
            message = f"{', '.join(missing[:5])} doesn't stand in what it cites"
            yield Finding(
                "identifiers", "error", message, "copy it from the entry, or drop it", name, item.id, item.evidence
            )


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
        longer = _goes_on(before, wanted[0]) or (not cut_off and _goes_on(after, wanted[-1], unit=number))
        if not longer:
            return True
        at = cited.find(wanted, at + 1)
    return False


_CLOCK = re.compile(r"\dT\d\d:\d\d")
"""Where the time begins in a date and time (ISO 8601)."""


def _goes_on(beside: str, edge: str, unit: bool = False) -> bool:
    """Whether the character beside an identifier's edge belongs to it."""
    if not beside.isascii() or not (edge.isalnum() or edge == "_"):
        return False
    return beside.isdigit() or (not unit and (beside.isalpha() or beside == "_"))


def nothing_lost(given: Case) -> Iterator[Finding]:
    """Every item of the previous snapshot is carried, or ended with evidence."""
    held = {item.id: item for _, item in given.snapshot.items()}
    for name, item in (given.previous or Snapshot()).items():
        now = held.get(item.id)
        if now is None:
            message = "stood in the previous snapshot and is gone"
            yield Finding("lost", "error", message, "carry it, close it or supersede it", name, item.id, item.evidence)
        elif now.status != item.status and not now.change:
            message = f"is {now.status} without evidence"
            yield Finding("lost", "error", message, "cite what ended it", name, item.id, item.evidence)


def rules_end_by_word(given: Case) -> Iterator[Finding]:
    """What the user or the system laid down ends only by their own words: else a tool's output could lift it."""
    for name, item in given.snapshot.items():
        if not isinstance(item, Constraint) or item.status == "active":
            continue
        parts = [part for ref in item.change for part in given.evidence.parts(ref)]
        at_hand = all(given.evidence.knows(ref) for ref in item.change)
        if at_hand and not any(part.speaker == "system" or _lifts(given, part, item) for part in parts):
            message = f"is {item.status}, and nobody who may says so there"
            yield Finding(
                "ended", "error", message, "cite the words that end it, or carry it", name, item.id, item.change
            )


def _lifts(given: Case, part: Part, rule: Constraint) -> bool:
    """Whether the user speaks there of the rule: in words that both have, or in one that takes its place."""
    replaced = any(other.id == rule.by for other in (*given.snapshot.constraints, *given.snapshot.authority))
    words_of_rule = plain_words(rule.quote or rule.text)
    return any(replaced or plain_words(said) & words_of_rule for said in part.said)


def loops_have_owners(given: Case) -> Iterator[Finding]:
    """An open loop and a step in progress say who does it or what comes next."""
    for name, item in given.active():
        if isinstance(item, OpenLoop | InProgress) and not (item.owner or item.next):
            yield Finding("loops", "error", "has neither owner nor next step", "say who does what next", name, item.id)


def decisions_are_borne(given: Case) -> Iterator[Finding]:
    """A decision has a scope, and its approver really spoke where it says."""
    for name, item in given.active():
        if not isinstance(item, Decision):
            continue
        if not item.scope:
            yield Finding("decisions", "error", "has no scope", "quote its scope, or say `not stated`", name, item.id)
        if item.approved_by and given.evidence.knows(item.approved_by.ref):
            parts = given.evidence.parts(item.approved_by.ref)
            if not any(_approves(part) or _is_retold(part, item) for part in parts):
                message = "nobody approves anything there"
                refs = (item.approved_by.ref,)
                yield Finding("approval", "error", message, "cite the approver's words", name, item.id, refs)


_NO = re.compile(r"\W*(?:no|nope|don'?t|never|stop|nein|non|não)\b", re.IGNORECASE)


def _approves(part: Part) -> bool:
    """Whether the user speaks there and doesn't only say no."""
    return part.verdict == "approved" or (
        part.verdict != "refused" and any(not (words.is_denial(said) or _NO.match(said)) for said in part.said)
    )


def artifacts_were_touched(given: Case) -> Iterator[Finding]:
    """A file is named where it is cited, and a cited call made it what it is."""
    for name, item in given.active():
        if not isinstance(item, Artifact) or given.elsewhere(item):
            continue
        parts = given.cited(item)
        if item.path and item.path not in given.evidence.text(refs_of(item)):
            yield Finding(
                "artifacts", "error", f"{item.path} isn't cited", "cite the call that touched it", name, item.id
            )
        elif item.state != "read" and not any(_changes(part) or _is_retold(part, item) for part in parts):
            message = f"no cited call makes it {item.state}"
            yield Finding("artifacts", "error", message, "cite that call, or say `read`", name, item.id, item.evidence)


def _is_retold(part: Part, item: Item) -> bool:
    """Whether an earlier summary tells it, and the item says that it is only reported."""
    return part.speaker == "summary" and item.basis == "reported"


def _changes(part: Part) -> bool:
    return part.kind == "call" and action(part.name) in ("write", "edit", "run", "delegate", "other")


def steps_are_proven(given: Case) -> Iterator[Finding]:
    """A completed step cites a result, and the result succeeded."""
    for name, item in given.active():
        if not isinstance(item, Completed) or given.elsewhere(item):
            continue
        if item.proof and given.away(item) and not given.evidence.knows(item.proof):
            continue
        results = [p for p in given.evidence.parts(item.proof) if p.kind == "result"] if item.proof else []
        if not results:
            yield Finding(
                "proof", "error", "no result proves it", "cite one that succeeded, or make it a loop", name, item.id
            )
        elif any(map(failed, results)):
            message = "the result it cites failed"
            yield Finding("proof", "error", message, "make it a loop", name, item.id, (item.proof,))


def failed(result: Part) -> bool:
    """Whether a result failed, by its record or by what a test run or a shell says in it."""
    marked = result.failed or result.exit_code not in (None, 0)
    return marked or (action(result.name) == "run" and bool(FAILS.search(result.text)))


def permissions_are_narrow(given: Case) -> Iterator[Finding]:
    """A permission says no more than its quote, which permits; its scope and limits were said."""
    for name, item in given.active():
        if not isinstance(item, Authority) or given.elsewhere(item):
            continue
        if says_no(item.quote):
            yield Finding("denied", "error", "its quote says no", "it is a constraint", name, item.id, item.evidence)
            continue
        wide = sorted(plain_words(item.text) - plain_words(item.quote)) if item.text != item.quote else []
        if wide:
            message = f"says more than its quote: {', '.join(wide[:5])}"
            yield Finding("authority", "error", message, "use the words of the quote", name, item.id, item.evidence)
        if not _is_said(given, item):
            message = f"its scope isn't what was said: {item.scope!r}"
            cure = "quote the scope, or say `not stated`"
            yield Finding("authority", "error", message, cure, name, item.id, item.evidence)
        for limit in unsaid_limits(given, item):
            message = f"leaves out the limit said with it: {limit!r}"
            yield Finding("authority", "error", message, "put the limit into `excludes`", name, item.id, item.evidence)


def says_no(quote: str) -> bool:
    """Whether a quote denies or takes back what it would have to permit."""
    return words.is_denial(quote) or words.is_revocation(quote)


_NO_SCOPE = ("", "as quoted", "not stated", "once")


def _is_said(given: Case, item: Authority) -> bool:
    """Whether a permission's scope stands in its quote, or in what it answers."""
    scope = _unmarked(item.scope.removeprefix("answering ").strip('"').removesuffix(" …"))
    parts = (part for ref in item.evidence for part in given.evidence.parts(ref))
    asked = (part.text for part in parts if part.speaker == "assistant" or (part.kind == "result" and part.said))
    return item.scope in _NO_SCOPE or any(scope in _unmarked(text) for text in (item.quote, *asked))


def _unmarked(text: str) -> str:
    """A text to compare, without emphasis: the ledger's sentences have none."""
    return normal(text.replace("**", ""))


def unsaid_limits(given: Case, item: Authority) -> Iterator[str]:
    """Limiting sentences of the same message that neither the item nor a constraint has."""
    stands = normal(" ".join((item.text, item.quote, item.excludes)))
    quote = normal(item.quote)
    for ref in item.evidence:
        spoken = [said for part in given.evidence.whole_message(ref) for said in part.said]
        if not any(quote in normal(said) for said in spoken):
            continue
        for said in spoken:
            for sentence in words.sentences(said):
                limit = normal(sentence)
                limits = words.is_rule(sentence) and words.has_limit(sentence)
                if limits and limit not in stands and not any(limit in rule or rule in limit for rule in given.rules):
                    yield sentence


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


def claims_are_true(given: Case) -> Iterator[Finding]:
    """What is said to be stated cites somebody who may state it."""
    for name, item in given.active():
        if item.basis != "stated" or isinstance(item, Fact) or given.elsewhere(item):
            continue
        parts = given.cited(item)
        if parts and not any(part.said or part.speaker in ("human", "system") or part.verdict for part in parts):
            message = "nobody who may state it does so there"
            yield Finding("claimed", "error", message, "say `reported`", name, item.id, item.evidence)


def _bears(part: Part, basis: str) -> bool:
    if basis == "stated":
        return part.speaker in ("human", "system") or bool(part.said)
    return part.speaker in ("tool", "human", "system") or part.kind in ("call", "media")


def outputs_are_not_copied(given: Case) -> Iterator[Finding]:
    """No item repeats a long run of what a tool printed: a summary would only move it."""
    for name, item in given.active():
        if len(item.text) <= MOST_COPIED or given.elsewhere(item):
            continue
        said = normal(item.text)
        if any(part.speaker == "tool" and said in normal(part.text) for part in given.cited(item)):
            message = f"copies {len(item.text):,} characters of output"
            yield Finding("copied", "error", message, "say what it shows in a sentence", name, item.id, item.evidence)


def questions_are_answered(given: Case) -> Iterator[Finding]:
    """The snapshot holds something, an objective and a next action among it."""
    active = {name for name, _ in given.active()}
    if not active:
        yield Finding("empty", "error", "the snapshot is empty", "nothing was found to summarise")
        return
    for name in ("objective", "next_action"):
        if name not in active:
            yield Finding("questions", "error", f"{name} is missing", "state it, or say `none, because ...`", name)


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    refs_resolve, quotes_stand, quotes_are_whole, identifiers_stand, nothing_lost, rules_end_by_word, loops_have_owners,
    decisions_are_borne, artifacts_were_touched, steps_are_proven, permissions_are_narrow, bases_are_true,
    claims_are_true, outputs_are_not_copied, questions_are_answered,
)  # fmt: skip


def block_stands(snapshot: Snapshot, block: str, short: bool) -> Iterator[Finding]:
    """The block, read again, says what it shows of the snapshot."""
    parsed = parse(block)
    if parsed.snapshot != shown(snapshot, short) or parsed.unread:
        yield Finding("block", "error", "it doesn't read back as the snapshot", "report this as a bug")


def within_budget(tokens: int, limit: int, only_binding: bool) -> Iterator[Finding]:
    """The block fits its budget; over it through what binds alone is a warning."""
    if tokens <= limit:
        return
    if only_binding:
        message = f"the block takes {tokens} tokens of {limit}: what binds doesn't fit"
        yield Finding("budget", "warning", message, f"give --max-summary {tokens} or more")
    else:
        yield Finding("budget", "error", f"the block takes {tokens} tokens of {limit}", "report this as a bug")


def words_of(findings: Sequence[Finding]) -> str:
    """Findings as one line."""
    return re.sub(r"\s+", " ", "; ".join(str(finding) for finding in findings))
