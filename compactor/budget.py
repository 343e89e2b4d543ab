"""How much of a snapshot the block shows.

The budget decides only that, never what the snapshot holds. It is applied once, at the end of a compaction.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from compactor.render import line_of, render, shown
from compactor.snapshot import Artifact, Completed, Item, Rejection, Snapshot, is_verify

Size = Callable[[str], int]
Worth = Callable[[Item], float]


@dataclass(frozen=True)
class Fitted:
    """A snapshot with its `shown` marks set, and the size of its block."""

    snapshot: Snapshot
    short: bool
    """Whether rejections are shown without their reason."""
    tokens: int
    over: bool
    """Whether the never-hidden items alone exceed the budget."""


def hideable(name: str, item: Item) -> bool:
    """Whether the budget may keep an item out of the block."""
    return name in ("rejected", "completed", "artifacts", "facts") or is_verify(item)


def fit(snapshot: Snapshot, limit: int, size: Size, worth: Worth, newest: str, record: str, recall: str) -> Fitted:
    """Hide what a block of at most `limit` tokens has no room for, in the order that the design lays down.

    First rejections lose their reasons; then are hidden: rejections, completed steps (oldest first, the last one
    stays), files only read, other files, facts least likely to be used again, `verify:` loops.
    """
    snapshot = snapshot.map(lambda name, item: item.model_copy(update={"shown": True}))

    def measure(candidate: Snapshot, short: bool) -> int:
        return size(render(candidate, newest, record=record, recall=recall, short=short))

    if (tokens := measure(snapshot, False)) <= limit:
        return Fitted(snapshot, False, tokens, False)
    short = any(isinstance(item, Rejection) and item.why for _, item in shown(snapshot).items())
    tokens, queue = measure(snapshot, short), _hiding_order(snapshot, worth)
    gone: set[tuple[str, str]] = set()
    while tokens > limit and (victim := next(queue, None)):
        over = tokens - limit
        while victim:
            gone.add((victim[0], victim[1].id))
            over -= size(line_of(*victim)) + 1
            victim = next(queue, None) if over > 0 else None
        snapshot = snapshot.map(
            lambda name, item: item.model_copy(update={"shown": (name, item.id) not in gone}),
        )
        tokens = measure(snapshot, short)
    return Fitted(snapshot, short, tokens, tokens > limit)


def _hiding_order(snapshot: Snapshot, worth: Worth) -> Iterator[tuple[str, Item]]:
    def active(name: str) -> list[Item]:
        return [item for item in snapshot.of(name) if item.status == "active"]

    files = active("artifacts")
    read = [item for item in files if isinstance(item, Artifact) and item.state == "read"]
    steps = [item for item in active("completed") if isinstance(item, Completed)]
    proofs = [item for item in steps if item.proof][-1:]
    yield from (("rejected", item) for item in active("rejected"))
    yield from (("completed", item) for item in steps if item not in proofs)
    yield from (("artifacts", item) for item in sorted(read, key=worth))
    yield from (("artifacts", item) for item in sorted((f for f in files if f not in read), key=worth))
    yield from (("facts", item) for item in sorted(active("facts"), key=worth))
    yield from (("open_loops", item) for item in sorted(filter(is_verify, active("open_loops")), key=worth))
