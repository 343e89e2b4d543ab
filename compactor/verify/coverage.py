"""What a snapshot misses of what the ledger knows, so that omissions can be seen.

Its findings are notes: each is something that a reader may want to know of, and none makes a summary wrong.
"""

from collections.abc import Iterator

from compactor.evidence import normal
from compactor.ledger import Ledger
from compactor.snapshot import Snapshot
from compactor.verify.case import refs_of
from compactor.verify.finding import Finding
from compactor.words import clip

EXPECTED = 20
"""How many of the identifiers most likely to be used again are looked for."""
SHOWN = 5


def coverage(snapshot: Snapshot, ledger: Ledger) -> Iterator[Finding]:
    """What of the ledger no item tells or cites: the user's rules, changed files, failures, requests, jobs, names."""
    held = _Held(snapshot)
    yield from _missed("rules", "leaves out rules of the user", [
        (said.text, said.ref) for said in ledger.said
        if said.kind in ("rule", "permission") and not held.binds(said.text)
    ])  # fmt: skip
    yield from _missed("files", "leaves out changed files", [
        (file.path, file.refs[-1]) for file in ledger.files if file.state != "read" and not held.tells(file.path)
    ])  # fmt: skip
    failed = [(c.text, c.result) for c in ledger.commands if not c.ok and not c.fixed_by]
    refused = [(refusal.text, refusal.ref) for refusal in ledger.refusals]
    yield from _missed("failures", "leaves out failed or refused attempts", [
        (text, ref) for text, ref in (*failed, *refused) if not held.cites(ref)
    ])  # fmt: skip
    last = ledger.turns[-1] if ledger.turns else None
    asked = [turn for turn in ledger.turns if turn.interrupted or (turn is last and (ledger.ahead or not turn.answer))]
    yield from _missed("requests", "leaves out requests still open", [
        (said.text, said.ref) for turn in asked for said in turn.asked
        if said.kind in ("request", "question") and not held.cites(said.ref)
    ])  # fmt: skip
    yield from _missed("jobs", "leaves out running jobs", [
        (job.text, job.ref) for job in ledger.jobs if not held.cites(job.ref) and not held.cites(job.about_ref)
    ])  # fmt: skip
    likely = sorted(ledger.weight, key=lambda name: (-ledger.weight[name], name))[:EXPECTED]
    yield from _missed("names", f"leaves out some of the {EXPECTED} names most likely to be used again", [
        (name, (ledger.seen.get(name) or ("",))[-1]) for name in likely if not held.tells(name)
    ])  # fmt: skip


class _Held:
    """What a snapshot says and cites."""

    def __init__(self, snapshot: Snapshot) -> None:
        items = [item for _, item in snapshot.items()]
        self.text = normal(" ".join(value for item in items for _, value in item if isinstance(value, str)))
        binding = (*snapshot.constraints, *snapshot.authority, *snapshot.decisions, *snapshot.done_criteria)
        self.bound = normal(" ".join(value for item in binding for _, value in item if isinstance(value, str)))
        self.refs = {ref.partition("/")[0] for item in items for ref in (*refs_of(item), *item.change)}

    def tells(self, text: str) -> bool:
        return normal(text) in self.text

    def binds(self, text: str) -> bool:
        """Whether a rule or permission, be it ended, says it, or a decision does."""
        return normal(text) in self.bound

    def cites(self, ref: str) -> bool:
        return ref.partition("/")[0] in self.refs


def _missed(what: str, message: str, found: list[tuple[str, str]]) -> Iterator[Finding]:
    """One finding of a kind, that names the first few."""
    if found:
        names = "; ".join(clip(" ".join(text.split()), 80) for text, _ in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        refs = tuple(dict.fromkeys(ref for _, ref in found[:SHOWN] if ref))
        yield Finding("coverage", "note", f"{message}: {names}{more}", "see there", what, "", refs)
