"""What a transcript format must offer."""

from dataclasses import dataclass
from typing import Any, Protocol

from compactor.transcript import Entry, Note, Source, Transcript


@dataclass(frozen=True)
class Embedded:
    """The new bytes of one conversation, and what was changed in entries that were kept."""

    data: bytes
    edits: tuple[Note, ...] = ()
    """Each kind of field changed in kept entries, named once, with the first line it concerns (law 2)."""
    repaired: frozenset[int] = frozenset()
    """Indexes of kept entries that lost an orphan result."""
    gone: frozenset[int] = frozenset()
    """Those of them that held nothing else, and aren't written."""
    acknowledged: bool = False
    """Whether an acknowledgement follows the block."""


class Format(Protocol):
    """One way to store conversations."""

    name: str
    """What `--format` takes."""
    title: str
    """One line for people."""
    block_role: str
    """The role a block has by default: `system` or `user`."""

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        """Whether the bytes are of this format; `records` holds the first JSON values in them (at most 50)."""

    def read(self, raw: bytes, name: str) -> Source:
        """Read the bytes; raises InputError where nothing can be made of them. Damage is kept and noted."""

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        """The conversation anew: fixed part, block, and the tail `live[cut:]` with its bookkeeping.

        `role` overrides the block's role; `session` gives the result a session id of its own.
        """

    def same(self, before: Entry, after: Entry) -> bool:
        """Whether a kept entry is what it was, but for the fields that this format must change."""
