"""Sessions of the pi coding agent, and of OpenClaw, which keeps the same.

One JSONL file, a header and entries that form a tree (version 3) or a line (version 1); see
`packages/coding-agent/docs/session.md` and `docs/compaction.md` of badlogic/pi-mono. The model is sent the path from
the root to the last entry; of that a `compaction` entry replaces all before its first kept entry.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compactor.errors import InputError
from compactor.formats import blocks, lines, pairs, signed
from compactor.formats.base import Embedded
from compactor.formats.blocks import string
from compactor.formats.voice import prompt
from compactor.transcript import Entry, Note, Part, Source, Transcript, is_block

Value = Mapping[str, Any]
SETTINGS = ("model_change", "thinking_level_change")
"""Entries whose latest holds for what follows."""
COUNTS = ("input", "cacheRead", "cacheWrite", "totalTokens")
"""What an assistant message records of the context before it."""
_NAMESPACE = uuid.UUID("5f0c7a86-30d2-52b6-9f6c-2a4b6de0c911")


class Pi:
    """The JSONL that pi and OpenClaw keep of a session."""

    name = "pi"
    title = "pi or OpenClaw session (JSONL)"
    block_role = "user"

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return any(map(_is_header, records)) or (
            any(map(_is_message, records)) and all(isinstance(r, dict) and "parentId" in r for r in records)
        )

    def read(self, raw: bytes, name: str) -> Source:
        reading = _Reading()
        for record in lines.records(raw):
            reading.take(record, raw)
        if not any(entry.role for entry in reading.entries) and not reading.header:
            message = f"{name}: holds no pi entries; leave --format out, or say another"
            raise InputError(message)
        return Source(name, raw, self.name, (reading.transcript(lines.begin(raw)),))

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        return _Writing(source, transcript, cut, session).embedded(block)

    def same(self, before: Entry, after: Entry) -> bool:
        return before.raw.rstrip(b"\r\n") == after.raw.rstrip(b"\r\n") or _comparable(before) == _comparable(after)


def _is_header(record: Any) -> bool:
    return isinstance(record, dict) and record.get("type") == "session" and "cwd" in record and "timestamp" in record


def _is_message(record: Any) -> bool:
    message = record.get("message") if isinstance(record, dict) and record.get("type") == "message" else None
    return isinstance(message, dict) and message.get("role") in ("user", "assistant", "toolResult")


# Reading


@dataclass
class _Reading:
    """What one pass over the records gathers."""

    entries: list[Entry] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    kept: dict[int, str | int] = field(default_factory=dict)
    """By the index of a compaction: the id, or in version 1 the place, of the first entry that it keeps."""
    calls: pairs.Calls = field(default_factory=pairs.Calls)
    header: Value = field(default_factory=dict)
    end: int = 0

    def take(self, record: lines.Record, raw: bytes) -> None:
        lead = raw[self.end or lines.begin(raw) : record.start]
        self.end = record.end
        value, index = record.value, len(self.entries)
        kind = string(value.get("type"))
        role, parts = _read(kind, value, self.calls)
        message = value.get("message") if isinstance(value.get("message"), dict) else {}
        usage = message.get("usage") if isinstance(message, dict) else None
        total = usage.get("totalTokens") if isinstance(usage, dict) else 0
        if kind == "session" and not self.header:
            self.header = value
        if kind == "compaction":
            self.kept[index] = value.get("firstKeptEntryId") or value.get("firstKeptEntryIndex") or 0
        self.kinds.append(kind)
        self.entries.append(Entry(
            index, record.line, record.nth, record.raw, lead, role, parts, "", string(value.get("id")),
            string(value.get("parentId")), string(value.get("timestamp")),
            string(message.get("model")) if isinstance(message, dict) else "", total if isinstance(total, int) else 0,
            record.damage,
        ))  # fmt: skip

    def transcript(self, start: int) -> Transcript:
        entries = self.entries
        path, notes = self._path()
        header = [index for index in path if self.kinds[index] == "session"][:1]
        last = next((at for at in reversed(range(len(path))) if self.kinds[path[at]] == "compaction"), -1)
        sent = [index for index in path if entries[index].role and index not in header]
        past: list[int] = []
        if last >= 0:
            compaction = path[last]
            first = self._first_kept(path, last)
            before, after = path[first:last], path[last + 1 :]
            live = [compaction, *(i for i in (*before, *after) if entries[i].role and self.kinds[i] != "compaction")]
            past = [i for i in path[:first] if entries[i].role]
        else:
            live = sent
        told = {*live, *past, *header, *(i for i in path if self.kinds[i] == "compaction")}
        loose = (e.index for e in entries if not e.id and not e.role and self.kinds[e.index] != "session")
        side = frozenset(i for i in (*path, *loose) if i not in told)
        notes += [Note(entry.line, f"damaged: {entry.damage}") for entry in entries if entry.damage]
        everything = (*header, *live)
        return Transcript(
            tuple(entries), everything, len(header), 1 if last >= 0 else 0,
            ours=last >= 0 and is_block(entries[path[last]].text), past=tuple(past), side=side,
            session=string(self.header.get("id")), cwd=string(self.header.get("cwd")),
            version=str(self.header.get("version") or 1), start=start, end=self.end or start,
            notes=tuple(sorted((*notes, *pairs.notes(entries[i] for i in everything)), key=lambda note: note.line)),
        )  # fmt: skip

    def _path(self) -> tuple[list[int], list[Note]]:
        """The entries from the root to the last one, in order; all of them where they have no ids."""
        if not any(entry.id and kind != "session" for entry, kind in zip(self.entries, self.kinds, strict=True)):
            return list(range(len(self.entries))), []
        place = {e.id: e.index for e, kind in zip(self.entries, self.kinds, strict=True) if e.id and kind != "session"}
        at = next((e.index for e in reversed(self.entries) if e.id and self.kinds[e.index] != "session"), -1)
        path: list[int] = []
        notes: list[Note] = []
        seen: set[int] = set()
        while at >= 0:
            if at in seen:
                notes.append(Note(self.entries[at].line, "its parents go in a circle; cut off there"))
                break
            seen.add(at)
            path.append(at)
            parent = self.entries[at].parent
            if parent and parent not in place:
                notes.append(
                    Note(self.entries[at].line, "its parent isn't in the file; what stands before is left out")
                )
            at = place.get(parent, -1)
        heads = [entry.index for entry in self.entries if self.kinds[entry.index] == "session"][:1]
        others = len(place) - len(path)
        if others:
            notes.append(Note(1, f"{others} entries of abandoned branches are left out"))
        return [*heads, *reversed(path)], notes

    def _first_kept(self, path: Sequence[int], last: int) -> int:
        """Where on the path the entries begin that a compaction keeps; its own place where they aren't before it."""
        kept = self.kept[path[last]]
        for at, index in enumerate(path[:last]):
            if kept and (index == kept if isinstance(kept, int) else self.entries[index].id == kept):
                return at
        return last


def _read(kind: str, value: Value, calls: pairs.Calls) -> tuple[str, tuple[Part, ...]]:
    """The role in which the model is sent an entry, empty where it isn't, and what it reads."""
    message = value.get("message")
    if kind == "message" and isinstance(message, dict):
        return _message(message, calls)
    if kind == "compaction":
        return "user", (Part("text", "summary", string(value.get("summary"))),)
    if kind == "branch_summary":
        return "user", (Part("text", "summary", string(value.get("summary"))),)
    if kind == "custom_message":
        return "user", tuple(_harness(value.get("content")))
    return "", ()


def _message(message: Value, calls: pairs.Calls) -> tuple[str, tuple[Part, ...]]:
    role, content = string(message.get("role")), message.get("content")
    if role == "toolResult":
        return "tool", tuple(_result(message, calls))
    if role == "bashExecution":
        if message.get("excludeFromContext"):
            return "", ()
        text = f"$ {string(message.get('command'))}\n{string(message.get('output'))}"
        return "user", (Part("text", "tool", text),)
    if role in ("custom", "hookMessage"):
        return "user", tuple(_harness(content))
    if role in ("branchSummary", "compactionSummary"):
        return "user", (Part("text", "summary", string(message.get("summary"))),)
    if role == "assistant":
        return role, tuple(_block(block, calls) for block in content if isinstance(block, dict)) if isinstance(
            content, list
        ) else (Part("text", "assistant", string(content)),)  # fmt: skip
    if role != "user":
        return "", ()
    return role, tuple(blocks.parts(content, "user", calls, prompt))


def _harness(content: Any) -> Iterator[Part]:
    yield Part("text", "harness", blocks.result_text(content))


def _block(block: Value, calls: pairs.Calls) -> Part:
    kind = block.get("type")
    if kind == "text":
        return Part("text", "assistant", string(block.get("text")))
    if kind == "thinking":
        return Part("thinking", "assistant", string(block.get("thinking")))
    if kind == "toolCall":
        return blocks.call(string(block.get("id")), string(block.get("name")), block.get("arguments"), calls)
    return Part("opaque", "assistant", blocks.leaves(block))


def _result(message: Value, calls: pairs.Calls) -> Iterator[Part]:
    told = {"tool_use_id": message.get("toolCallId"), "content": message.get("content"),
            "is_error": message.get("isError") is True}  # fmt: skip
    for part in blocks.result(told, calls, blocks.ALONE):
        unnamed = part.kind == "result" and not part.name
        yield replace(part, name=string(message.get("toolName"))) if unnamed else part


# Writing


def _load(entry: Entry) -> dict[str, Any]:
    return (lines.editable(entry.raw) or {}) if not entry.damage else {}


def _comparable(entry: Entry) -> Any:
    value = _load(entry)
    value.pop("parentId", None)
    if value.get("type") == "session":
        value.pop("id", None)
    _zero(value)
    return value or entry.raw


def _zero(value: Value) -> bool:
    message = value.get("message")
    usage = message.get("usage") if isinstance(message, dict) else None
    counts = usage if isinstance(usage, dict) else {}
    counted = [key for key in COUNTS if counts.get(key)]
    counts.update(dict.fromkeys(counted, 0))
    return bool(counted)


@dataclass
class _Writing:
    """One conversation anew."""

    source: Source
    transcript: Transcript
    cut: int
    session: str
    notes: dict[str, int] = field(default_factory=dict)
    last: str = ""
    """The id of the entry written last, the parent of the next."""

    def embedded(self, block: str) -> Embedded:
        transcript, entries = self.transcript, self.transcript.entries
        end = b"\r\n" if entries and entries[0].raw.endswith(b"\r\n") else b"\n"
        tail = self._tail()
        linear = transcript.version == "1" and not any(entry.parent for entry in entries)
        fixed = [entries[index] for index in transcript.live[: transcript.fixed]]
        settings = self._settings(tail)
        chunks = [self._kept(entry, end) for entry in (*fixed, *settings)]
        place = len(fixed) + len(settings) + 1
        chunks.append(lines.dump(self._compaction(block, tail, place if linear else -1)) + end)
        chunks += [self._kept(entry, end) for entry in tail]
        notes = (Note(line, what) for what, line in self.notes.items())
        return Embedded(b"".join(chunks), (*notes, *signed.notes(tail)))

    def _tail(self) -> list[Entry]:
        """The kept messages with the bookkeeping among them; where children precede parents, loose records last."""
        tail, entries = self.transcript.live[self.cut :], self.transcript.entries
        in_order = list(tail) == sorted(tail)
        side = [i for i in sorted(self.transcript.side) if tail and i > tail[0] and (in_order or not entries[i].id)]
        return [entries[index] for index in (sorted((*tail, *side)) if in_order else (*tail, *side))]

    def _settings(self, tail: Sequence[Entry]) -> list[Entry]:
        """The settings that hold where the tail begins."""
        begins = tail[0].index if tail else len(self.transcript.entries)
        latest: dict[str, Entry] = {}
        for index in sorted(index for index in self.transcript.side if index < begins):
            entry = self.transcript.entries[index]
            if (kind := _load(entry).get("type")) in SETTINGS:
                latest[string(kind)] = entry
        return sorted(latest.values(), key=lambda entry: entry.index)

    def _compaction(self, block: str, tail: Sequence[Entry], place: int) -> dict[str, Any]:
        """The marker; the kept entries stand behind it, so none before it is to be kept."""
        before = self.transcript.live[self.transcript.fixed : self.cut]
        time = next((e.time for i in reversed(before) if (e := self.transcript.entries[i]).time), "")
        if place >= 0:
            return {"type": "compaction", "timestamp": time, "summary": block, "firstKeptEntryIndex": place,
                    "tokensBefore": self.transcript.usage}  # fmt: skip
        name = uuid.uuid5(_NAMESPACE, f"{self.source.sha256}:{self.cut}").hex[:8]
        parent, self.last = self.last or None, name
        first = next((entry.id for entry in tail if entry.id), name)
        return {"type": "compaction", "id": name, "parentId": parent, "timestamp": time, "summary": block,
                "firstKeptEntryId": first, "tokensBefore": self.transcript.usage,
                "details": {"readFiles": [], "modifiedFiles": []}}  # fmt: skip

    def _kept(self, entry: Entry, end: bytes) -> bytes:
        raw = entry.raw if entry.raw.endswith(b"\n") else entry.raw + end
        value = _load(entry)
        done = [what for what, changed in self._change(entry, value) if changed]
        for what in done:
            self.notes.setdefault(what, entry.line)
        return lines.dump(value) + lines.ending(raw) if done else raw

    def _change(self, entry: Entry, value: dict[str, Any]) -> Iterator[tuple[str, bool]]:
        if value.get("type") == "session":
            renamed = bool(self.session) and value.get("id") != self.session
            if renamed:
                value["id"] = self.session
            yield "session: its id is replaced", renamed
            return
        if entry.id:
            relinked = (value.get("parentId") or "") != self.last
            if relinked:
                value["parentId"] = self.last or None
            self.last = entry.id
            yield "parentId: relinked to what is kept", relinked
        yield "usage: context counts set to 0", _zero(value)


FORMAT = Pi()
