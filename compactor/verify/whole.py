"""Whether the snapshot is whole: nothing of the one before it lost, the three questions answered."""

from collections.abc import Iterator

from compactor.snapshot import Snapshot
from compactor.verify.case import Case
from compactor.verify.finding import Finding


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
