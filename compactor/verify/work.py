"""Whether what is told of the work was done, decided and left open."""

import re
from collections.abc import Iterator, Sequence

from compactor import words
from compactor.identifiers import stems
from compactor.ledger import FAILS, File
from compactor.snapshot import Artifact, Completed, Decision, InProgress, Item, OpenLoop
from compactor.tools import action
from compactor.transcript import Part, Ref
from compactor.verify.case import Case, refs_of
from compactor.verify.finding import Finding


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


def proposals_are_not_decisions(given: Case) -> Iterator[Finding]:
    """What the agent only proposed isn't decided: somebody approved it, or the agent chose, or went on to do it."""
    for name, item in given.active():
        if (
            isinstance(item, Decision)
            and item.state == "accepted"
            and not item.approved_by
            and not given.elsewhere(item)
        ):
            parts = given.cited(item)
            if (
                parts
                and all(p.kind == "text" and p.speaker == "assistant" for p in parts)
                and _only_proposed(item, parts)
            ):
                message = "the agent only proposes it there"
                cure = "cite the words that accept it, or say `proposed`"
                yield Finding("proposal", "error", message, cure, name, item.id, item.evidence)


def _only_proposed(item: Decision, parts: Sequence[Part]) -> bool:
    """Whether the sentences that come nearest to a decision's words all propose."""
    wanted = stems(item.text)
    told = [(len(stems(s) & wanted), s) for part in parts for s in words.sentences(part.text)]
    most = max((common for common, _ in told), default=0)
    return most > 0 and all(words.proposes(sentence) for common, sentence in told if common == most)


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


def artifacts_are_as_left(given: Case) -> Iterator[Finding]:
    """A file that a command removed or renamed later is deleted, and one that was made again isn't."""
    for name, item in given.active():
        if not isinstance(item, Artifact) or not item.path or not (left := _left(given, item)):
            continue
        if (left.state == "deleted") != (item.state == "deleted"):
            message, refs = f"{item.path} is {left.state}", (left.refs[-1],)
            yield Finding("state", "error", message, f"say `{left.state}`, citing that", name, item.id, refs)


def _left(given: Case, item: Artifact) -> File | None:
    """What the conversation left of an item's file, where its last change isn't older than what the item cites."""
    found = given.files.get(item.path.removeprefix("./").rpartition("/")[2], ())
    same = [f for f in found if _same_file(f.path, item.path)]
    if len(same) != 1:
        return None
    last, cited = Ref.parse(same[0].refs[-1]), [Ref.parse(ref) for ref in item.evidence]
    newer = all(last.source != ref.source or last.line >= ref.line for ref in cited)
    return same[0] if newer else None


def _same_file(one: str, other: str) -> bool:
    one, other = one.removeprefix("./"), other.removeprefix("./")
    return one == other or one.endswith(f"/{other}") or other.endswith(f"/{one}")


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
