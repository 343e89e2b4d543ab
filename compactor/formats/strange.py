"""Kinds of records that a reader doesn't know: they pass as bookkeeping, and are counted, lest they vanish unseen."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from compactor.transcript import Note

SHOWN, LENGTH = 8, 40


@dataclass
class Strange:
    """The unknown kinds in a file."""

    known: frozenset[str]
    counts: Counter[str] = field(default_factory=Counter)
    line: int = 0
    """Where the first of them stands."""

    def take(self, line: int, kind: str) -> None:
        if kind and kind not in self.known:
            self.counts[kind] += 1
            self.line = self.line or line

    def notes(self) -> Iterator[Note]:
        if not self.counts:
            return
        told = ", ".join(f"{kind[:LENGTH]} {count}" for kind, count in self.counts.most_common(SHOWN))
        more = ", ..." if len(self.counts) > SHOWN else ""
        yield Note(self.line, f"records of unknown kinds, kept where they stand in the tail: {told}{more}")
