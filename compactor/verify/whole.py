"""Whether the snapshot is whole: nothing of the one before it lost, no two items at odds, the questions answered."""

from collections.abc import Iterator

from compactor.identifiers import exact, plain_words
from compactor.snapshot import Fact, Item, Snapshot
from compactor.verify.case import Case
from compactor.verify.finding import Finding

MOST_ALIKE = 2
"""Telling words that two facts have in common when they say the same of two values."""


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


def questions_are_answered(given: Case) -> Iterator[Finding]:
    """The snapshot holds something, an objective and a next action among it."""
    active = {name for name, _ in given.active()}
    if not active:
        yield Finding("empty", "error", "the snapshot is empty", "nothing was found to summarise")
        return
    for name in ("objective", "next_action"):
        if name not in active:
            yield Finding("questions", "error", f"{name} is missing", "state it, or say `none, because ...`", name)


def items_agree(given: Case) -> Iterator[Finding]:
    """No two items contradict each other: an option is rejected or decided, a value has been superseded or holds."""
    yield from _decided_and_rejected(given)
    yield from _done_and_not_done(given)
    yield from _two_values(given)
    yield from _two_states(given)
    known = {item.id for _, item in given.snapshot.items()}
    for name, item in given.snapshot.items():
        if item.status == "superseded" and item.by and item.by not in known:
            message = f"is superseded by {item.by}, which isn't there"
            yield Finding("agree", "error", message, "name what took its place", name, item.id, item.change)


def _decided_and_rejected(given: Case) -> Iterator[Finding]:
    decided = {_same(item.text): item for item in given.snapshot.decisions if item.status == "active"}
    for item in given.snapshot.rejected:
        if item.status == "active" and (other := decided.get(_same(item.text))):
            message = f"is rejected here and decided in {other.id}"
            yield Finding("agree", "warning", message, "close the one that no longer holds", "rejected", item.id,
                          (*item.evidence, *other.evidence))  # fmt: skip


def _done_and_not_done(given: Case) -> Iterator[Finding]:
    done = {_same(item.text): item for item in given.snapshot.completed if item.status == "active"}
    for item in given.snapshot.in_progress:
        if item.status == "active" and (other := done.get(_same(item.text))):
            message = f"is in progress here and completed in {other.id}"
            yield Finding("agree", "warning", message, "close the one that no longer holds", "in_progress", item.id,
                          (*item.evidence, *other.evidence))  # fmt: skip


def _two_values(given: Case) -> Iterator[Finding]:
    """Two active facts that say the same of two names or numbers."""
    first: dict[str, Fact] = {}
    for item in given.snapshot.facts:
        if item.status != "active" or exact(item.value) != {item.value} or item.value not in item.text:
            continue
        said = _same(item.text.replace(item.value, " ", 1))
        other = first.setdefault(said, item)
        if len(plain_words(said)) >= MOST_ALIKE and other.value != item.value:
            message = f"says {item.value!r} where {other.id} says {other.value!r}"
            yield Finding("agree", "warning", message, "supersede the older value", "facts", item.id,
                          (*other.evidence, *item.evidence))  # fmt: skip


def _two_states(given: Case) -> Iterator[Finding]:
    first: dict[str, Item] = {}
    for item in given.snapshot.artifacts:
        if item.status != "active" or not item.path:
            continue
        other = first.setdefault(item.path, item)
        if other is not item and getattr(other, "state", "") != item.state:
            message = f"{item.path} is {item.state} here and {getattr(other, 'state', '')} in {other.id}"
            yield Finding("agree", "warning", message, "close the older one", "artifacts", item.id,
                          (*other.evidence, *item.evidence))  # fmt: skip


def _same(text: str) -> str:
    """A text by which two that say the same are found."""
    return " ".join(text.casefold().strip(" .!;:").split())
