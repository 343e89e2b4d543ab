"""Previous snapshot and update -> new snapshot, by code.

A fold never drops an item: it is carried, closed or superseded, the two last with evidence. What an update adds and the
snapshot already holds is joined with it. Folding the same update twice changes nothing the second time.
"""

import re
from collections.abc import Iterator, Sequence

from compactor.snapshot import FIELDS, TYPES, Artifact, Authority, Fact, Item, Snapshot, Update

SINGLE = ("objective", "next_action")
"""Fields with at most one active item: a new one supersedes the one before."""
EVIDENCE_KEPT = 3
"""Of the older evidence of a joined item so many of the oldest refs are kept; of the newer all its refs."""


def fold(previous: Snapshot | None, update: Update) -> Snapshot:
    """The new snapshot. Ids named by the update that don't exist are passed over; `verify` reports what is missing."""
    held = {name: list((previous or Snapshot()).of(name)) for name in FIELDS}
    added: dict[str, str] = {}
    for name in FIELDS:
        new = list(_fresh(getattr(update.add, name)))
        keys = [key(item) for item in held[name]] if new else []
        for position, item in enumerate(new):
            added[f"{name}[{position}]"] = _add(held[name], keys, name, item)
    for closing in update.close:
        _change(held, added.get(closing.id, closing.id), status="closed", change=closing.evidence)
    for superseding in update.supersede:
        old, by = (added.get(name, name) for name in (superseding.id, superseding.by))
        if by != old and _find(held, by):
            _change(held, old, status="superseded", by=by, change=superseding.evidence)
    return Snapshot.of_fields(held)


def _fresh(items: Sequence[Item]) -> Iterator[Item]:
    """What an update adds, active whatever it says of itself; what it says twice has the evidence of both."""
    refs: dict[str, list[str]] = {}
    for item in items:
        refs.setdefault(key(item), []).extend(item.evidence)
    for item in items:
        evidence = tuple(dict.fromkeys(refs[key(item)]))
        yield item.model_copy(update={"evidence": evidence, "status": "active", "by": "", "change": (), "shown": True})


def _add(items: list[Item], keys: list[str], name: str, item: Item) -> str:
    """Put an item among the others of its field, whose keys are given; the id it has from now on."""
    wanted = key(item)
    for position in [p for p, other in enumerate(keys) if other == wanted]:
        other = items[position]
        if other.status == "active":
            items[position] = join(other, item)
            return other.id
        if set(item.evidence) <= set(other.evidence):
            return other.id
    new = item.model_copy(update={"id": next_id(items, TYPES[name].letter)})
    if name in SINGLE:
        for position, other in enumerate(items):
            if other.status == "active":
                gone = {"status": "superseded", "by": new.id, "change": item.evidence}
                items[position] = other.model_copy(update=gone)
    items.append(new)
    keys.append(wanted)
    return new.id


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

    What the newer leaves open (a reason, a proof, an approval) stays as the older had it.
    """
    kept = {name: value for name, value in old if name not in Item.model_fields and value and not getattr(new, name)}
    return new.model_copy(update={**kept, "id": old.id, "evidence": merged(old.evidence, new.evidence)})


def merged(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Refs of both without doubles: the oldest of the old, all of the new."""
    return tuple(dict.fromkeys((*old[:EVIDENCE_KEPT], *new)))


def next_id(items: Sequence[Item], letter: str) -> str:
    numbers = (int(item.id[1:]) for item in items if item.id[1:].isdigit())
    return f"{letter}{max(numbers, default=0) + 1}"


def _find(held: dict[str, list[Item]], wanted: str) -> tuple[str, int] | None:
    return next(((n, p) for n, items in held.items() for p, i in enumerate(items) if wanted and i.id == wanted), None)


def _change(held: dict[str, list[Item]], wanted: str, **changes: object) -> None:
    """End an item, where it exists, is active, and there is evidence."""
    place = _find(held, wanted)
    if place and changes["change"]:
        name, position = place
        item = held[name][position]
        if item.status == "active":
            held[name][position] = item.model_copy(update=changes)
