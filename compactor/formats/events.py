"""Agents that keep a session as a log of events, one JSON object a line, and append a mark where they compact.

What such a log has in common is here; what its events mean is a `Log` in a file of its own: `copilot`, `kimi`,
`openhands_sdk`. The model is sent what follows the last mark, and what stands in it.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from compactor.errors import InputError
from compactor.formats import lines, pairs
from compactor.formats.base import Embedded
from compactor.formats.blocks import string
from compactor.transcript import Entry, Note, Part, Source, Transcript, is_block

Value = Mapping[str, Any]


class Log(Protocol):
    """What the events of one agent's log mean."""

    name: str
    title: str
    link: str
    """The field by which an event names the one before it; empty where there is none."""
    unverified: str
    """What of the client's way to resume isn't known; empty where it is."""

    def is_ours(self, record: Any) -> bool:
        """Whether a record is of such a log."""

    def is_header(self, value: Value) -> bool:
        """Whether an event stands before the conversation and stays there."""

    def read(self, value: Value, calls: pairs.Calls) -> tuple[str, tuple[Part, ...]]:
        """The role in which the model is sent an event, empty where it isn't, and what it reads."""

    def summary(self, value: Value) -> str | None:
        """The summary in an event that is a compaction; None where it is none."""

    def forgotten(self, value: Value) -> frozenset[str] | None:
        """The ids of the events that a compaction takes out; None where it is all before it."""

    def marker(self, block: str, name: str, after: Value, fixed: int) -> dict[str, Any]:
        """A compaction whose summary is the block; `name` is an id for it, `after` the last event that is gone."""


class EventLog:
    """A format of events."""

    block_role = "user"

    def __init__(self, log: Log) -> None:
        self.log, self.name, self.title = log, log.name, log.title

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return 2 * sum(map(self.log.is_ours, records)) > len(records)

    def read(self, raw: bytes, name: str) -> Source:
        reading = _Reading(self.log)
        for record in lines.records(raw):
            reading.take(record, raw)
        if not reading.ours:
            message = f"{name}: holds no events of {self.title}; leave --format out, or say another"
            raise InputError(message)
        return Source(name, raw, self.name, (reading.transcript(lines.begin(raw)),))

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        """Header, the compaction, and the tail linked to it."""
        entries = transcript.entries
        end = b"\r\n" if entries and entries[0].raw.endswith(b"\r\n") else b"\n"
        fixed = [entries[index] for index in transcript.live[: transcript.fixed]]
        head = [entries[index] for index in transcript.live[transcript.fixed : cut]]
        kept = transcript.live[cut:]
        side = [index for index in transcript.side if kept and index > kept[0]]
        tail = [entries[index] for index in sorted((*kept, *side))]
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{source.sha256}:{cut}"))
        marker = self.log.marker(block, name, _value(head[-1]) if head else {}, len(fixed))
        last, edits = fixed[-1].id if fixed else "", dict[str, int]()
        if self.log.link:
            marker[self.log.link] = last or None
        chunks = [entry.raw if entry.raw.endswith(b"\n") else entry.raw + end for entry in fixed]
        chunks.append(lines.dump(marker) + end)
        known = {name}
        for entry in tail:
            chunks.append(self._linked(entry, name, known, edits) + (b"" if entry.raw.endswith(b"\n") else end))
            known.add(entry.id)
        return Embedded(b"".join(chunks), tuple(Note(line, what) for what, line in edits.items()))

    def _linked(self, entry: Entry, marker: str, known: set[str], edits: dict[str, int]) -> bytes:
        """A kept event, hung from the compaction where the event that it names is gone."""
        if not self.log.link or not entry.id or entry.parent in known or not entry.parent:
            return entry.raw
        edits.setdefault(f"{self.log.link}: relinked to what is kept", entry.line)
        return lines.dump({**_value(entry), self.log.link: marker}) + lines.ending(entry.raw)

    def same(self, before: Entry, after: Entry) -> bool:
        if before.raw.rstrip(b"\r\n") == after.raw.rstrip(b"\r\n"):
            return True
        one, other = ({**_value(entry), self.log.link: ""} for entry in (before, after))
        return bool(self.log.link) and not before.damage and one == other


def _value(entry: Entry) -> dict[str, Any]:
    return (lines.editable(entry.raw) or {}) if not entry.damage else {}


@dataclass
class _Reading:
    log: Log
    entries: list[Entry] = field(default_factory=list)
    headers: list[int] = field(default_factory=list)
    live: dict[int, None] = field(default_factory=dict)
    by_id: dict[str, list[int]] = field(default_factory=dict)
    """The live events, and those that were, by their ids."""
    past: list[int] = field(default_factory=list)
    mark: int = -1
    calls: pairs.Calls = field(default_factory=pairs.Calls)
    ours: bool = False
    end: int = 0

    def take(self, record: lines.Record, raw: bytes) -> None:
        lead = raw[self.end or lines.begin(raw) : record.start]
        self.end = record.end
        value, index = record.value, len(self.entries)
        self.ours = self.ours or self.log.is_ours(value)
        told = self.log.summary(value) if value else None
        role, parts = self.log.read(value, self.calls) if told is None and value else ("", ())
        if told is not None:
            role, parts = "user", (Part("text", "summary", told),)
        time = value.get("timestamp", value.get("time"))
        self.entries.append(Entry(
            index, record.line, record.nth, record.raw, lead, role, parts, "", string(value.get("id")),
            string(value.get(self.log.link)) if self.log.link else "", time if isinstance(time, str) else "",
            _model(value), damage=record.damage,
        ))  # fmt: skip
        if told is not None:
            self._mark(index, self.log.forgotten(value))
        elif value and self.log.is_header(value) and not self.live and self.mark < 0:
            self.headers.append(index)
        elif role:
            self.live[index] = None
            self.by_id.setdefault(self.entries[index].id, []).append(index)

    def _mark(self, index: int, forgotten: frozenset[str] | None) -> None:
        named = self.live if forgotten is None else (i for name in forgotten for i in self.by_id.pop(name, ()))
        gone = [i for i in named if i in self.live]
        self.past += ([self.mark] if self.mark >= 0 else []) + gone
        for i in gone:
            del self.live[i]
        self.mark = index

    def transcript(self, start: int) -> Transcript:
        mark = [self.mark] if self.mark >= 0 else []
        live = (*self.headers, *mark, *self.live)
        known = {*live, *self.past}
        entries = tuple(self.entries)
        ours = bool(mark) and is_block(entries[self.mark].text)
        notes = [Note(entry.line, f"damaged: {entry.damage}") for entry in entries if entry.damage]
        notes += [Note(1, self.log.unverified)] if self.log.unverified else []
        return Transcript(
            entries, live, len(self.headers), len(mark), ours=ours, past=tuple(sorted(self.past)),
            side=frozenset(e.index for e in entries if e.index not in known and not e.role),
            start=start, end=self.end or start,
            notes=tuple(sorted((*notes, *pairs.notes(entries[i] for i in live)), key=lambda note: note.line)),
        )  # fmt: skip


def _model(value: Value) -> str:
    data = value.get("data")
    return string(data.get("model")) if isinstance(data, dict) else string(value.get("model"))


def texts(content: Any) -> Iterator[str]:
    """The texts in a message's content, whatever its shape."""
    for block in content if isinstance(content, Sequence) and not isinstance(content, str) else [content]:
        text = block.get("text") if isinstance(block, dict) else block
        if isinstance(text, str) and text:
            yield text
