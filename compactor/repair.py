"""What the checks found, mended by code.

Always in the safe direction: narrow, quote, demote to a `verify:` loop, restore, drop.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from compactor import words
from compactor.evidence import normal
from compactor.fold import next_id
from compactor.ledger import SHOWN_DOCUMENT
from compactor.render import shown_text
from compactor.snapshot import (
    FIELDS,
    Artifact,
    Authority,
    Completed,
    Constraint,
    Decision,
    Fact,
    Item,
    NextAction,
    Objective,
    OpenLoop,
    Snapshot,
)
from compactor.verify import (
    ASKS_FIRST,
    MARKED,
    MOST_COPIED,
    Case,
    Finding,
    Verdict,
    limits_said_later,
    says_no,
    unmarked,
    unsaid_limits,
    verify,
    whole_sentence,
)


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

    snapshot = _reopened(_restored(given.snapshot.map(mend), given.previous), given.snapshot)
    loops, rules, facts = list(snapshot.open_loops), list(snapshot.constraints), list(snapshot.facts)
    for item in demoted:
        if isinstance(item, Authority) and says_no(item.quote):
            rule = Constraint(text=item.quote, quote=item.quote, said_by=item.granted_by, evidence=item.evidence,
                              basis=item.basis, id=next_id(rules, Constraint.letter))  # fmt: skip
            rules.append(rule)
            continue
        if isinstance(item, Constraint) and _is_shown(given, item):
            text = shown_text(SHOWN_DOCUMENT, item.quote)
            facts.append(Fact(text=text, value=item.quote, evidence=item.evidence, basis="observed",
                              id=next_id(facts, Fact.letter)))  # fmt: skip
            continue
        new = OpenLoop(text=f"verify: {item.text.removeprefix('verify: ')}", evidence=item.evidence, owner="agent",
                       next="check it before relying on it", basis="reported")  # fmt: skip
        loops.append(new.model_copy(update={"id": next_id(loops, OpenLoop.letter)}))
    return _answered(snapshot.replace(open_loops=loops, constraints=rules, facts=facts), last)


def _is_shown(given: Case, rule: Constraint) -> bool:
    """Whether a rule stands word for word in a document that the user showed: no rule of theirs, but what it says."""
    quote = normal(rule.quote)
    shown = [part for part in given.cited(rule) if part.speaker == "human" and quote in normal(part.text)]
    return bool(quote and shown) and not any(quote in normal(said) for part in shown for said in part.said)


def _mend(given: Case, item: Item, finding: Finding, demoted: list[Item]) -> Item | None:
    if finding.check == "refs":
        return _without(item, set(finding.refs))
    if finding.check == "revoked":
        return item.model_copy(update={"status": "closed", "change": finding.refs})
    if finding.check == "limits" and isinstance(item, Authority):
        limits = [*([item.excludes] if item.excludes else []), *limits_said_later(given, item)]
        return item.model_copy(update={"excludes": " ".join(dict.fromkeys(limits))})
    if finding.check in ("quotes", "proof", "basis", "support"):
        if item.id not in given.carried:
            demoted.append(item)
        return None if item.id not in given.carried else _closed(item)
    if finding.check == "wording" and isinstance(item, Constraint):
        return item.model_copy(update={"text": item.quote})
    if finding.check == "cut" and isinstance(item, Constraint | Authority):
        whole = whole_sentence(given, item)
        return item.model_copy(update={"quote": whole, "text": whole})
    if finding.check == "claimed":
        return item.model_copy(update={"basis": "reported"})
    if finding.check == "copied":
        return item.model_copy(update={"text": words.clip(item.text, MOST_COPIED // 4)})
    if finding.check == "loops":
        return item.model_copy(update={"owner": "agent"})
    if finding.check == "decisions":
        return item.model_copy(update={"scope": "not stated"})
    if finding.check == "proposal":
        return item.model_copy(update={"state": "proposed"})
    if finding.check == "state":
        state = "deleted" if isinstance(item, Artifact) and item.state != "deleted" else "modified"
        return item.model_copy(
            update={"state": state, "evidence": tuple(dict.fromkeys((*item.evidence, *finding.refs)))}
        )
    if finding.check == "approval":
        return item.model_copy(update={"approved_by": None, "state": "proposed"})
    if finding.check == "artifacts" and isinstance(item, Artifact):
        return item.model_copy(update={"state": "read"}) if "isn't cited" not in finding.message else None
    if finding.check == "authority" and isinstance(item, Authority):
        limits = [*([item.excludes] if item.excludes else []), *unsaid_limits(given, item)]
        scope = item.scope if "scope" not in finding.message else "not stated"
        return item.model_copy(update={"text": item.quote, "scope": scope, "excludes": " ".join(limits)})
    if finding.check == "denied":
        demoted.append(item)
        return None if item.id not in given.carried else _closed(item)
    if finding.check == "steers" and finding.message == MARKED:
        return item.model_copy(update={k: unmarked(v) for k, v in item if isinstance(v, str) and k != "path"})
    if finding.check == "next":
        return item.model_copy(update={"text": f"{ASKS_FIRST}{item.text}"})
    if finding.check == "agree":
        return item.model_copy(update={"status": "closed", "by": ""}) if finding.severity == "error" else item
    if finding.check == "ended":
        return item.model_copy(update={"status": "active", "by": "", "change": ()})
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


def _reopened(snapshot: Snapshot, before: Snapshot) -> Snapshot:
    """What an item superseded that is now dropped stands again; a permission doesn't."""
    gone = {item.id for _, item in before.items()} - {item.id for _, item in snapshot.items()}

    def stand(_: str, item: Item) -> Item:
        if item.status != "superseded" or item.by not in gone or isinstance(item, Authority):
            return item
        return item.model_copy(update={"status": "active", "by": "", "change": ()})

    return snapshot.map(stand) if gone else snapshot


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
        given = replace(given, snapshot=snapshot)
        verdict = verify(given)
    mended = tuple(finding for finding in first.findings if finding not in verdict.findings)
    return given.snapshot, replace(verdict, repaired=mended)
