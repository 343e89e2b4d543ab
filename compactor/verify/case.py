"""What the checks look at."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from compactor.evidence import Evidence, normal
from compactor.ledger import File, Ledger
from compactor.snapshot import Completed, Decision, Item, Snapshot
from compactor.transcript import Part

CHECKED_FIELDS = ("text", "quote", "value", "path", "why", "scope", "excludes", "role", "holds_while", "next")
"""Where an item may hold identifiers that must stand in what it cites."""


@dataclass(frozen=True)
class Case:
    """What the checks look at."""

    snapshot: Snapshot
    evidence: Evidence
    previous: Snapshot | None = None
    carried: frozenset[str] = field(default_factory=frozenset)
    """Ids of items that came from the previous snapshot: their evidence may lie in sources that aren't at hand."""
    ledger: Ledger | None = None
    """What code knows of the conversation, where that has been read."""

    def active(self) -> Iterator[tuple[str, Item]]:
        return ((name, item) for name, item in self.snapshot.items() if item.status == "active")

    def cited(self, item: Item) -> tuple[Part, ...]:
        return tuple(part for ref in refs_of(item) for part in self.evidence.parts(ref))

    @cached_property
    def files(self) -> Mapping[str, Sequence[File]]:
        """The files that the conversation touched, by their names without folders."""
        found: dict[str, list[File]] = {}
        for file in self.ledger.files if self.ledger else ():
            found.setdefault(file.path.rpartition("/")[2], []).append(file)
        return found

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


def case(
    snapshot: Snapshot, evidence: Evidence, previous: Snapshot | None = None, ledger: Ledger | None = None
) -> Case:
    """A case to check; what came from the previous snapshot, with its first evidence, is carried."""
    old = {item.id: item for _, item in (previous or Snapshot()).items()}
    carried = frozenset(
        item.id for _, item in snapshot.items() if item.id in old and old[item.id].evidence[:1] == item.evidence[:1]
    )
    return Case(snapshot, evidence, previous, carried, ledger)
