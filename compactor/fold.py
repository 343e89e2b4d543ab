"""Previous snapshot and update -> new snapshot, by code.

A fold never drops an item: it is carried, closed or superseded, the two last with evidence. What an update adds and the
snapshot already holds is joined with it. Folding the same update twice changes nothing the second time.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from compactor.snapshot import FIELDS, TYPES, Artifact, Authority, Fact, Item, Snapshot, Update

SINGLE = ("objective", "next_action")
"""Fields with at most one active item: a new one supersedes the one before."""
REPEATED = 20
"""Of what one update says over and over, so many of the first and of the last refs are kept."""
EVIDENCE_KEPT = 3
"""Of the older evidence of a joined item so many of the oldest refs are kept; of the newer all its refs."""


def fold(previous: Snapshot | None, update: Update) -> Snapshot:
    """The new snapshot. Ids named by the update that don't exist are passed over; `verify` reports what is missing."""
    state = _State(previous or Snapshot())
    restated = {superseding.by: superseding.id for superseding in update.supersede}
    added = {
        f"{name}[{position}]": state.add(name, item, restated.get(f"{name}[{position}]", ""))
        for name in FIELDS
        for position, item in enumerate(_fresh(getattr(update.add, name)))
    }
    for closing in update.close:
        state.end(added.get(closing.id, closing.id), status="closed", change=closing.evidence)
    for superseding in update.supersede:
        old, by = (added.get(name, name) for name in (superseding.id, superseding.by))
        if by != old and by in state.places:
            state.end(old, status="superseded", by=by, change=superseding.evidence)
    return Snapshot.of_fields(state.held)


def _fresh(items: Sequence[Item]) -> Iterator[Item]:
    """What an update adds, active whatever it says of itself; what it says twice has the evidence of both."""
    refs: dict[str, tuple[str, ...]] = {}
    for item in items:
        both = tuple(dict.fromkeys((*refs.get(key(item), ()), *item.evidence)))
        refs[key(item)] = both if len(both) <= 2 * REPEATED else (*both[:REPEATED], *both[-REPEATED:])
    for item in items:
        evidence = refs[key(item)]
        yield item.model_copy(update={"evidence": evidence, "status": "active", "by": "", "change": (), "shown": True})


class _State:
    """The items held while a fold goes on, found by id and by key."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.held = {name: list(snapshot.of(name)) for name in FIELDS}
        self.places = {item.id: (name, at) for name, items in self.held.items() for at, item in enumerate(items)}
        self.numbers = {name: _last_number(items) for name, items in self.held.items()}
        self.keys: dict[tuple[str, str], list[int]] = defaultdict(list)
        for name, items in self.held.items():
            for at, item in enumerate(items):
                self.keys[name, key(item)].append(at)

    def add(self, name: str, item: Item, restates: str = "") -> str:
        """Put an item among the others of its field, or join it with its like; the id it has from now on.

        Where its like is the item that it restates, all that it says is taken, and not only what is new.
        """
        items, places = self.held[name], self.keys[name, key(item)]
        for at in places:
            other = items[at]
            if other.status == "active":
                items[at] = joined_whole(other, item) if other.id == restates else join(other, item)
                return other.id
            if set(item.evidence) <= set(other.evidence):
                return other.id
        self.numbers[name] += 1
        new = item.model_copy(update={"id": f"{TYPES[name].letter}{self.numbers[name]}"})
        if name in SINGLE:
            for other in tuple(items):
                self.end(other.id, status="superseded", by=new.id, change=item.evidence)
        self.places[new.id] = (name, len(items))
        places.append(len(items))
        items.append(new)
        return new.id

    def end(self, wanted: str, **changes: object) -> None:
        """End an item, where it exists, is active, and there is evidence."""
        if wanted not in self.places or not changes["change"]:
            return
        name, at = self.places[wanted]
        item = self.held[name][at]
        if item.status == "active":
            self.held[name][at] = item.model_copy(update=changes)


def key(item: Item) -> str:
    """What makes two items of one field the same: an artifact's path, a quote, else the text (a fact's to the sign)."""
    if isinstance(item, Artifact) and item.path:
        return item.path
    if isinstance(item, Fact):
        return " ".join(item.text.split())
    words = f"{getattr(item, 'quote', '') or item.text} {item.scope if isinstance(item, Authority) else ''}"
    return re.sub(r"\W+", " ", words).strip().casefold()


def join(old: Item, new: Item) -> Item:
    """One item out of two with the same key: the newer words, the older id, evidence of both.

    What the newer leaves open (a reason, a proof, an approval) stays as the older had it; to look at a file again
    changes nothing about it.
    """
    if isinstance(old, Artifact) and isinstance(new, Artifact) and new.state == "read" and old.state != "deleted":
        return old.model_copy(update={"evidence": merged(old.evidence, new.evidence), "shown": True})
    kept = {name: value for name, value in old if name not in Item.model_fields and value and not getattr(new, name)}
    return new.model_copy(update={**kept, "id": old.id, "evidence": merged(old.evidence, new.evidence)})


def joined_whole(old: Item, new: Item) -> Item:
    """One item out of two where the newer restates the older: the newer words and state, the older id."""
    return new.model_copy(update={"id": old.id, "evidence": merged(old.evidence, new.evidence)})


def merged(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Refs of both without doubles: the oldest of the old, all of the new."""
    return tuple(dict.fromkeys((*old[:EVIDENCE_KEPT], *new)))


def next_id(items: Sequence[Item], letter: str) -> str:
    """An id that none of a field's items has."""
    return f"{letter}{_last_number(items) + 1}"


def _last_number(items: Sequence[Item]) -> int:
    return max((int(item.id[1:]) for item in items if item.id[1:].isdigit()), default=0)
