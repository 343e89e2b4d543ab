"""Whether a snapshot and an output keep their promises: one small function each.

A check looks at one promise and yields findings; `repair` mends what code can mend, always in the safe direction:
narrow, quote, demote to a `verify:` loop, restore, drop. Refs into sources that aren't at hand pass where the item was
carried from the previous snapshot, and are counted as carried.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from compactor import words
from compactor.evidence import Evidence, normal
from compactor.fold import next_id
from compactor.identifiers import exact, plain_words
from compactor.render import parse, render, shown
from compactor.snapshot import (
    FIELDS,
    Artifact,
    Authority,
    Completed,
    Constraint,
    Decision,
    Fact,
    InProgress,
    Item,
    NextAction,
    Objective,
    OpenLoop,
    Snapshot,
    is_verify,
)
from compactor.tools import action
from compactor.transcript import Part

CHECKED_FIELDS = ("text", "quote", "value", "path", "why", "scope", "excludes", "role", "holds_while")
"""Where an item may hold identifiers that must stand in what it cites."""


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
    """Ids of items that came unchanged from the previous snapshot."""

    def active(self) -> Iterator[tuple[str, Item]]:
        return ((name, item) for name, item in self.snapshot.items() if item.status == "active")

    def cited(self, item: Item) -> tuple[Part, ...]:
        return tuple(part for ref in refs_of(item) for part in self.evidence.parts(ref))

    def elsewhere(self, item: Item) -> bool:
        """Whether an item's evidence can't be looked at: carried, and its sources aren't all at hand."""
        return item.id in self.carried and not all(self.evidence.knows(ref) for ref in refs_of(item))


def refs_of(item: Item) -> tuple[str, ...]:
    """Every ref that bears an item: its evidence, its proof, the approver's words."""
    proof = (item.proof,) if isinstance(item, Completed) and item.proof else ()
    approval = (item.approved_by.ref,) if isinstance(item, Decision) and item.approved_by else ()
    return tuple(dict.fromkeys((*item.evidence, *proof, *approval)))


def case(snapshot: Snapshot, evidence: Evidence, previous: Snapshot | None = None) -> Case:
    """A case to check; what came from the previous snapshot with nothing but its `shown` mark changed is carried."""
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
        return bool(quote) and any(quote in normal(said) for said in given.evidence.said(item.evidence))
    parts = [part for ref in item.evidence for part in given.evidence.parts(ref)]
    if speaker == "system":
        return bool(quote) and any(part.speaker == "system" and quote in normal(part.text) for part in parts)
    if speaker == "summary" and isinstance(item, Constraint) and item.basis == "reported":
        wanted = normal(item.text.removesuffix(" …"))
        return any(part.speaker == "summary" and wanted in normal(part.text) for part in parts)
    return False


def identifiers_stand(given: Case) -> Iterator[Finding]:
    for name, item in given.active():
        if given.elsewhere(item):
            continue
        said = " ".join(str(getattr(item, key, "") or "") for key in CHECKED_FIELDS)
        cited = given.evidence.text(refs_of(item))
        missing = sorted(i for i in exact(said.replace("…", " ")) if i not in cited)
        if missing and cited:
            message = f"{', '.join(missing[:5])} doesn't stand in what it cites"
            yield Finding(
                "identifiers", "error", message, "copy it from the entry, or drop it", name, item.id, item.evidence
            )


def nothing_lost(given: Case) -> Iterator[Finding]:
    held = {item.id: item for _, item in given.snapshot.items()}
    for name, item in (given.previous or Snapshot()).items():
        now = held.get(item.id)
        if now is None:
            message = "stood in the previous snapshot and is gone"
            yield Finding("lost", "error", message, "carry it, close it or supersede it", name, item.id, item.evidence)
        elif now.status != item.status and not now.change:
            message = f"is {now.status} without evidence"
            yield Finding("lost", "error", message, "cite what ended it", name, item.id, item.evidence)


def loops_have_owners(given: Case) -> Iterator[Finding]:
    for name, item in given.active():
        if isinstance(item, OpenLoop | InProgress) and not (item.owner or item.next):
            yield Finding("loops", "error", "has neither owner nor next step", "say who does what next", name, item.id)


def decisions_are_borne(given: Case) -> Iterator[Finding]:
    for name, item in given.active():
        if not isinstance(item, Decision):
            continue
        if not item.scope:
            yield Finding("decisions", "error", "has no scope", "quote its scope, or say `not stated`", name, item.id)
        if item.approved_by and given.evidence.knows(item.approved_by.ref):
            parts = given.evidence.parts(item.approved_by.ref)
            if not any(part.said or part.verdict == "approved" for part in parts):
                message = "nobody approves anything there"
                refs = (item.approved_by.ref,)
                yield Finding("approval", "error", message, "cite the approver's words", name, item.id, refs)


def artifacts_were_touched(given: Case) -> Iterator[Finding]:
    for name, item in given.active():
        if not isinstance(item, Artifact) or given.elsewhere(item):
            continue
        parts = given.cited(item)
        if item.path and item.path not in given.evidence.text(refs_of(item)):
            yield Finding(
                "artifacts", "error", f"{item.path} isn't cited", "cite the call that touched it", name, item.id
            )
        elif item.state != "read" and not any(_changes(part) for part in parts):
            message = f"no cited call makes it {item.state}"
            yield Finding("artifacts", "error", message, "cite that call, or say `read`", name, item.id, item.evidence)


def _changes(part: Part) -> bool:
    return part.kind == "call" and action(part.name) in ("write", "edit", "run", "delegate", "other")


def steps_are_proven(given: Case) -> Iterator[Finding]:
    for name, item in given.active():
        if not isinstance(item, Completed) or given.elsewhere(item):
            continue
        results = [p for p in given.evidence.parts(item.proof) if p.kind == "result"] if item.proof else []
        if not results:
            yield Finding(
                "proof", "error", "no result proves it", "cite one that succeeded, or make it a loop", name, item.id
            )
        elif any(part.failed or part.exit_code not in (None, 0) for part in results):
            message = "the result it cites failed"
            yield Finding("proof", "error", message, "make it a loop", name, item.id, (item.proof,))


def permissions_are_narrow(given: Case) -> Iterator[Finding]:
    for name, item in given.active():
        if not isinstance(item, Authority) or given.elsewhere(item):
            continue
        told = given.evidence.text(item.evidence)
        wide = sorted(plain_words(item.text) - plain_words(item.quote)) if item.text != item.quote else []
        if wide:
            message = f"says more than its quote: {', '.join(wide[:5])}"
            yield Finding("authority", "error", message, "use the words of the quote", name, item.id, item.evidence)
        strange = sorted(plain_words(item.scope) - plain_words(told) - {"answering", "quoted", "once", "stated"})
        if strange:
            message = f"its scope isn't what was said: {', '.join(strange[:5])}"
            yield Finding(
                "authority", "error", message, "quote the scope, or say `not stated`", name, item.id, item.evidence
            )
        for limit in _unsaid_limits(given, item):
            message = f"leaves out the limit said with it: {limit!r}"
            yield Finding("authority", "error", message, "put the limit into `excludes`", name, item.id, item.evidence)


def _unsaid_limits(given: Case, item: Authority) -> Iterator[str]:
    """Limiting sentences of the same message that neither the item nor a constraint has."""
    stands = normal(" ".join((item.text, item.quote, item.excludes)))
    rules = [normal(c.quote or c.text) for c in given.snapshot.constraints]
    quote = normal(item.quote)
    for ref in item.evidence:
        spoken = [said for part in given.evidence.whole_message(ref) for said in part.said]
        if not any(quote in normal(said) for said in spoken):
            continue
        for said in spoken:
            for sentence in words.sentences(said):
                limit = normal(sentence)
                limits = words.is_rule(sentence) and words.has_limit(sentence)
                if limits and limit not in stands and not any(limit in rule or rule in limit for rule in rules):
                    yield sentence


def bases_are_true(given: Case) -> Iterator[Finding]:
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


def questions_are_answered(given: Case) -> Iterator[Finding]:
    active = {name for name, _ in given.active()}
    if not active:
        yield Finding("empty", "error", "the snapshot is empty", "nothing was found to summarise")
        return
    for name in ("objective", "next_action"):
        if name not in active:
            yield Finding("questions", "error", f"{name} is missing", "state it, or say `none, because ...`", name)


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    refs_resolve, quotes_stand, identifiers_stand, nothing_lost, loops_have_owners, decisions_are_borne,
    artifacts_were_touched, steps_are_proven, permissions_are_narrow, bases_are_true, questions_are_answered,
)  # fmt: skip


def block_stands(snapshot: Snapshot, block: str, newest: str, short: bool) -> Iterator[Finding]:
    """The block, read again, says what it shows of the snapshot."""
    parsed = parse(block)
    if parsed.snapshot != shown(snapshot, short) or parsed.unread:
        yield Finding("block", "error", "it doesn't read back as the snapshot", "report this as a bug")


def within_budget(tokens: int, limit: int, only_binding: bool) -> Iterator[Finding]:
    if tokens <= limit:
        return
    if only_binding:
        message = f"the block takes {tokens} tokens of {limit}: what binds doesn't fit"
        yield Finding("budget", "warning", message, f"give --max-summary {tokens} or more")
    else:
        yield Finding("budget", "error", f"the block takes {tokens} tokens of {limit}", "report this as a bug")


# -- repair


def repair(given: Case, findings: Iterable[Finding], last: str) -> Snapshot:
    """The snapshot with what code can mend mended; `last` is the ref of the last entry summarised."""
    by_item: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_item.setdefault((finding.field, finding.item), []).append(finding)
    demoted: list[Item] = []

    def mend(name: str, item: Item) -> Item | None:
        mended: Item | None = item
        for finding in by_item.get((name, item.id), ()):
            if mended is not None:
                mended = _mend(given, mended, finding, demoted)
        return mended

    snapshot = given.snapshot.map(mend)
    snapshot = _restored(snapshot, given.previous)
    loops = list(snapshot.open_loops)
    for item in demoted:
        new = OpenLoop(text=f"verify: {item.text.removeprefix('verify: ')}", evidence=item.evidence, owner="agent",
                       next="check it before relying on it", basis="reported")  # fmt: skip
        loops.append(new.model_copy(update={"id": next_id(loops, OpenLoop.letter)}))
    return _answered(snapshot.replace(open_loops=loops), last)


def _mend(given: Case, item: Item, finding: Finding, demoted: list[Item]) -> Item | None:
    if finding.check == "refs":
        return _without(item, set(finding.refs))
    if finding.check in ("quotes", "proof", "basis"):
        if item.id not in given.carried:
            demoted.append(item)
        return None if item.id not in given.carried else _closed(item)
    if finding.check == "loops":
        return item.model_copy(update={"owner": "agent"})
    if finding.check == "decisions":
        return item.model_copy(update={"scope": "not stated"})
    if finding.check == "approval":
        return item.model_copy(update={"approved_by": None, "state": "proposed"})
    if finding.check == "artifacts" and isinstance(item, Artifact):
        return item.model_copy(update={"state": "read"}) if "isn't cited" not in finding.message else None
    if finding.check == "authority" and isinstance(item, Authority):
        limits = [*([item.excludes] if item.excludes else []), *_unsaid_limits(given, item)]
        scope = item.scope if "scope" not in finding.message else "not stated"
        return item.model_copy(update={"text": item.quote, "scope": scope, "excludes": " ".join(limits)})
    if finding.check == "lost":
        return item
    return None if item.id not in given.carried else _closed(item)


def _closed(item: Item) -> Item:
    return item.model_copy(update={"status": "closed", "change": item.evidence})


def _without(item: Item, gone: set[str]) -> Item | None:
    evidence = tuple(ref for ref in item.evidence if ref not in gone)
    if not evidence:
        return None
    changes: dict[str, Any] = {"evidence": evidence, "change": tuple(ref for ref in item.change if ref not in gone)}
    if isinstance(item, Completed) and item.proof in gone:
        changes["proof"] = ""
    if isinstance(item, Decision) and item.approved_by and item.approved_by.ref in gone:
        changes |= {"approved_by": None, "state": "proposed"}
    return item.model_copy(update=changes)


def _restored(snapshot: Snapshot, previous: Snapshot | None) -> Snapshot:
    held = {item.id: item for _, item in snapshot.items()}
    fields: dict[str, list[Item]] = {name: list(snapshot.of(name)) for name in FIELDS}
    for name, item in (previous or Snapshot()).items():
        now = held.get(item.id)
        if now is None:
            fields[name].append(item)
        elif now.status != item.status and not now.change:
            fields[name] = [item if other.id == item.id else other for other in fields[name]]
    return Snapshot.of_fields(fields)


def _answered(snapshot: Snapshot, last: str) -> Snapshot:
    """With an explicit "none, because" where objective or next action is missing."""
    missing: Mapping[str, Item] = {
        "objective": Objective(id="O0", text="none, because no request was found", evidence=(last,), basis="inferred"),
        "next_action": NextAction(id="N0", text="none, because nothing is asked", evidence=(last,), basis="inferred"),
    }
    for name, item in missing.items():
        if not any(other.status == "active" for other in snapshot.of(name)):
            fresh = item.model_copy(update={"id": next_id(snapshot.of(name), item.letter)})
            snapshot = snapshot.replace(**{name: (*snapshot.of(name), fresh)})
    return snapshot


def settle(given: Case, last: str, rounds: int = 3) -> tuple[Snapshot, Verdict]:
    """Verify and repair until nothing is left to mend; what remains is in the verdict."""
    first = verdict = verify(given)
    for _ in range(rounds):
        if not verdict.findings:
            break
        snapshot = repair(given, verdict.findings, last)
        given = Case(snapshot, given.evidence, given.previous, given.carried)
        verdict = verify(given)
    mended = tuple(finding for finding in first.findings if finding not in verdict.findings)
    return given.snapshot, Verdict(verdict.findings, mended, verdict.carried, verdict.items)


def binding_block(snapshot: Snapshot, newest: str, record: str, recall: str) -> str:
    """A block of the never-hidden items alone."""
    binding = snapshot.map(
        lambda name, item: (
            item if name not in ("rejected", "completed", "artifacts", "facts") and not is_verify(item) else None
        )
    )
    return render(binding, newest, record=record, recall=recall)


def words_of(findings: Sequence[Finding]) -> str:
    return re.sub(r"\s+", " ", "; ".join(str(finding) for finding in findings))
