"""Codex rollouts.

The JSONL that Codex keeps under `$CODEX_HOME/sessions`, one record `{timestamp, type, payload}` a line; older ones
hold the items bare. What the model is sent are the `response_item`s (openai/codex, `codex-rs/protocol/src/models.rs`);
`event_msg`s repeat them for people. A `compacted` record with a `replacement_history` is the whole history before
it (`codex-rs/core/src/session/rollout_reconstruction.rs`): that is how a block is written. What only the provider can
read stays with the item that it led to (`signed`).
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compactor.errors import InputError
from compactor.formats import items, lines, pairs, signed
from compactor.formats.base import Embedded
from compactor.formats.blocks import leaves, string
from compactor.formats.strange import Strange
from compactor.transcript import Entry, Note, Part, Source, Transcript, is_block

Value = Mapping[str, Any]
SUMMARY_PREFIX = "Another language model started to solve this problem and produced a summary"
"""How the client's own summary begins (`templates/compact/summary_prefix.md`)."""
TYPES = frozenset(("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"))
_KNOWN = (
    TYPES | items.KINDS | {"inter_agent_communication", "inter_agent_communication_metadata", "ghost_snapshot", "state"}
)
CARRIED = ("world_state", "turn_context")
"""What the client needs anew after a compaction: its latest state of these."""
_NAMESPACE = uuid.UUID("a4b7c1de-54f0-5f57-8d8b-7a9d6d1c0b55")


class Codex:
    """The JSONL that Codex keeps of a session."""

    name = "codex"
    title = "Codex rollout (JSONL)"
    block_role = "user"

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return any(map(_is_ours, records)) or _is_flat(records)

    def read(self, raw: bytes, name: str) -> Source:
        reading = _Reading()
        for record in lines.records(raw):
            reading.take(record, raw)
        if not reading.ours:
            message = f"{name}: holds no Codex records; leave --format out, or say another"
            raise InputError(message)
        return Source(name, raw, self.name, (reading.transcript(lines.begin(raw)),))

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        return _Writing(source, transcript, cut, session).embedded(block, role or self.block_role)

    def same(self, before: Entry, after: Entry) -> bool:
        return before.raw.rstrip(b"\r\n") == after.raw.rstrip(b"\r\n") or _comparable(before) == _comparable(after)


def _is_ours(record: Any) -> bool:
    return isinstance(record, dict) and string(record.get("type")) in TYPES and isinstance(record.get("payload"), dict)


def _is_flat(records: Sequence[Any]) -> bool:
    """Whether it is a rollout of before September 2025, without envelopes."""
    first = records[0] if records and isinstance(records[0], dict) else {}
    if not (isinstance(first.get("id"), str) and isinstance(first.get("timestamp"), str)):
        return False
    if "type" in first or not {"instructions", "git"} & set(first) or len(records) < 2:
        return False
    return all(isinstance(r, dict) and ("record_type" in r or items.role_of(r)) for r in records[1:])


# Reading


@dataclass
class _Reading:
    """What one pass over the records gathers."""

    ours: bool = False
    asks: str = "codex"
    entries: list[Entry] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """What each record is: meta, item, context, compacted, side."""
    calls: pairs.Calls = field(default_factory=pairs.Calls)
    live: list[int] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)
    """Where in `live` the user speaks since the last compaction: what can be rolled back."""
    past: list[int] = field(default_factory=list)
    leading: list[int] = field(default_factory=list)
    """The header and the context that the client put before the conversation."""
    compacted: int = -1
    model: str = ""
    meta: Value = field(default_factory=dict)
    rolled_back: int = 0
    unit: str = ""
    """What a reasoning item and the item that it led to have in common, while that is awaited."""
    ordinal: int = -1
    """The largest one so far."""
    unordered: int = 0
    """The line of the first record whose ordinal isn't larger than those before it."""
    strange: Strange = field(default_factory=lambda: Strange(_KNOWN))
    end: int = 0

    def take(self, record: lines.Record, raw: bytes) -> None:
        lead = raw[self.end or lines.begin(raw) : record.start]
        self.end = record.end
        value, index = record.value, len(self.entries)
        kind, item = _unwrapped(value)
        self.ours = self.ours or bool(kind)
        self._order(value.get("ordinal"), record.line)
        self.strange.take(record.line, string(item.get("type")) if kind == "response_item" else kind)
        role = items.role_of(item) if kind == "response_item" else "user" if kind == "compacted" else ""
        parts = items.parts(item, self.calls, self.asks) if role and kind != "compacted" else ()
        told = string(value.get("timestamp"))
        leads = item.get("type") == "reasoning" and bool(role)
        self.unit = self.unit or (f"unit {index}" if leads else "")
        unit = self.unit if role else ""
        self.unit = self.unit if leads or not role else ""
        entry = Entry(index, record.line, record.nth, record.raw, lead, role, parts, unit, _id(item), "", told,
                      self.model if role == "assistant" else "", damage=record.damage)  # fmt: skip
        self.entries.append(entry)
        if role and kind != "compacted":
            self.opened += [len(self.live)] * _speaks(entry)
            self.live.append(index)
        self._watch(kind, item, index)

    def _order(self, ordinal: Any, line: int) -> None:
        if isinstance(ordinal, int):
            self.unordered = self.unordered or (line if ordinal <= self.ordinal else 0)
            self.ordinal = max(self.ordinal, ordinal)

    def _watch(self, kind: str, item: Value, index: int) -> None:
        if kind == "session_meta" and not self.meta:
            self.meta = item
            if not self.live and self.compacted < 0:
                self.live.append(index)
        elif kind == "turn_context":
            self.model = string(item.get("model")) or self.model
        elif kind == "compacted":
            self._compacted(item, index)
        elif kind == "event_msg":
            self._event(item)

    def _event(self, item: Value) -> None:
        kind = item.get("type")
        if kind == "token_count" and isinstance(info := item.get("info"), dict):
            last = info.get("last_token_usage")
            total = last.get("total_tokens") if isinstance(last, dict) else 0
            if isinstance(total, int) and total and self.live:
                at = self.live[-1]
                self.entries[at] = replace(self.entries[at], usage=total)
        elif kind == "thread_rolled_back" and isinstance(turns := item.get("num_turns"), int):
            self._roll_back(turns)

    def _roll_back(self, turns: int) -> None:
        """Leave out the last turns of the user's, and what followed them."""
        taken = min(max(turns, 0), len(self.opened))
        if taken:
            self.rolled_back += taken
            del self.live[self.opened[-taken] :]
            del self.opened[-taken:]

    def _compacted(self, item: Value, index: int) -> None:
        """A compaction: what the model is sent of the time before it is in its record, or in its message alone."""
        history, message = item.get("replacement_history"), string(item.get("message"))
        if is_block(message):
            parts: tuple[Part, ...] = (Part("text", "summary", message),)
        elif isinstance(history, list):
            kept = [inner for inner in history if isinstance(inner, dict) and items.role_of(inner)]
            parts = tuple(part for inner in kept for part in _retained(inner, self.calls))
        else:
            parts = (Part("text", "summary", message),)
        self.entries[index] = replace(self.entries[index], parts=parts)
        leading = self._leading() if self.compacted < 0 else self.leading
        self.past += self.live[len(leading) :]
        self.leading, self.compacted = leading, index
        self.live[len(leading) :] = [index]
        self.opened.clear()

    def _leading(self) -> list[int]:
        """The header, and the messages of the client's before the user's first."""
        found = []
        for index in self.live:
            entry = self.entries[index]
            context = entry.role in ("system", "developer") or (entry.role == "user" and not _speaks(entry))
            if entry.role and not (context and all(part.kind == "text" for part in entry.parts)):
                break
            found.append(index)
        return found

    def _plain_block(self, place: int) -> None:
        """A block that stands as a message, in a rollout that knows no compactions."""
        index = self.live[place] if self.compacted < 0 and place < len(self.live) else -1
        if index >= 0 and self.entries[index].role == "user" and is_block(text := self.entries[index].text):
            self.entries[index] = replace(self.entries[index], parts=(Part("text", "summary", text),))
            self.compacted = index

    def transcript(self, start: int) -> Transcript:
        leading = self.leading if self.compacted >= 0 else self._leading()
        self._plain_block(len(leading))
        rest = self.live[len(leading) :]
        opaque = [i for i in rest if i != self.compacted and _is_opaque(self.entries[i])]
        moved = set(opaque)
        leading = [*leading, *opaque]
        self.live = [*leading, *(i for i in rest if i not in moved)]
        live, entries = tuple(self.live), tuple(self.entries)
        summarised = 1 if self.compacted >= 0 else 0
        dead = {*live, *self.past}
        notes = [Note(entry.line, f"damaged: {entry.damage}") for entry in entries if entry.damage]
        notes += self.strange.notes()
        if self.unordered:
            notes.append(Note(self.unordered, "ordinals out of order: read as the file has them"))
        if self.rolled_back:
            notes.append(Note(1, f"{self.rolled_back} turns were rolled back: left out"))
        return Transcript(
            entries, live, len(leading), summarised,
            ours=bool(summarised) and is_block(entries[self.compacted].text),
            past=tuple(self.past),
            side=frozenset(entry.index for entry in entries if entry.index not in dead and not entry.role),
            session=string(self.meta.get("id")), cwd=string(self.meta.get("cwd")),
            version=string(self.meta.get("cli_version")), start=start, end=self.end or start,
            notes=tuple(sorted((*notes, *pairs.notes(entries[i] for i in live)), key=lambda note: note.line)),
        )  # fmt: skip


def _unwrapped(value: Value) -> tuple[str, Value]:
    """What kind of record a value is, and what it holds; a flat rollout's items count as wrapped."""
    payload = value.get("payload")
    if isinstance(value.get("type"), str) and isinstance(payload, dict):
        return string(value["type"]), payload
    if items.role_of(value):
        return "response_item", value
    if "record_type" in value:
        return "state", value
    return ("session_meta", value) if "id" in value and "type" not in value else ("", value)


def _id(item: Value) -> str:
    return string(item.get("id"))


def _is_opaque(entry: Entry) -> bool:
    """Whether an entry is a summary that only the provider can read."""
    return bool(entry.parts) and all(part.kind == "opaque" and part.speaker == "summary" for part in entry.parts)


def _speaks(entry: Entry) -> bool:
    return any(part.speaker == "human" for part in entry.parts)


def _retained(item: Value, calls: pairs.Calls) -> Iterator[Part]:
    """What the model reads of an item that a compaction kept; the client's own summary is marked as such."""
    for part in items.parts(item, calls):
        if part.kind == "text" and part.text.startswith(SUMMARY_PREFIX):
            yield replace(part, speaker="summary", said=())
        elif part.kind in pairs.PAIRED:
            yield Part("opaque", "summary", part.text)
        else:
            yield part


# Writing


def _load(entry: Entry) -> dict[str, Any]:
    return (lines.editable(entry.raw) or {}) if not entry.damage else {}


def _comparable(entry: Entry) -> Any:
    value = _load(entry)
    _changed(value, 0, "")
    value.pop("ordinal", None)
    if isinstance(payload := value.get("payload"), dict) and value.get("type") == "session_meta":
        value["payload"] = {key: inner for key, inner in payload.items() if key not in ("id", "session_id")}
    return value or entry.raw


def _changed(value: dict[str, Any], ordinal: int | None, session: str) -> Iterator[str]:
    """Make the changes that a kept record needs, and name each."""
    # a record without one in a file of numbered ones: the client refuses to append behind it
    if ordinal is not None and "payload" in value and value.get("ordinal") != ordinal:
        value["ordinal"] = ordinal
        yield "ordinal: numbered anew"
    payload = value.get("payload")
    if not isinstance(payload, dict):
        return
    if value.get("type") == "event_msg" and payload.get("type") == "token_count" and payload.get("info"):
        payload["info"] = None
        yield "token_count: its info is taken out"
    if value.get("type") == "session_meta" and session and payload.get("id") != session:
        payload |= {key: session for key in ("id", "session_id") if key in payload}
        yield "session_meta: its id is replaced"


@dataclass
class _Writing:
    """One conversation anew."""

    source: Source
    transcript: Transcript
    cut: int
    session: str
    notes: dict[str, int] = field(default_factory=dict)
    ordinal: int | None = None

    def embedded(self, block: str, role: str) -> Embedded:
        transcript, entries = self.transcript, self.transcript.entries
        fixed = [entries[index] for index in transcript.live[: transcript.fixed]]
        tail = self._tail()
        end = b"\r\n" if entries and entries[0].raw.endswith(b"\r\n") else b"\n"
        ordinals = [
            value["ordinal"] for entry in entries[:1] if isinstance((value := _load(entry)).get("ordinal"), int)
        ]
        numbered = bool(ordinals) or any(b'"ordinal"' in entry.raw[:80] for entry in entries[:50])
        self.ordinal = (ordinals[0] if ordinals else 0) if numbered else None
        flat = "payload" not in _load(entries[0]) if entries else False
        chunks = [self._kept(entry, end) for entry in fixed]
        head = [self._message(block, role)] if flat else self._head(block, role, fixed, tail)
        chunks += [self._new(record) + end for record in head]
        chunks += [self._kept(entry, end) for entry in tail]
        notes = (Note(line, what) for what, line in self.notes.items())
        return Embedded(b"".join(chunks), (*notes, *signed.notes([*fixed, *tail])))

    def _tail(self) -> list[Entry]:
        tail = self.transcript.live[self.cut :]
        side = [index for index in self.transcript.side if tail and index > tail[0]]
        entries = (self.transcript.entries[index] for index in sorted((*tail, *side)))
        # what was rolled back is gone: said again, the client would take back turns that stay
        return [entry for entry in entries if entry.role or b'"thread_rolled_back"' not in entry.raw]

    def _kept(self, entry: Entry, end: bytes) -> bytes:
        raw = entry.raw if entry.raw.endswith(b"\n") else entry.raw + end
        may_change = self.ordinal is not None or self.session or b'"token_count"' in raw
        value = _load(entry) if may_change else {}
        done = list(_changed(value, self.ordinal, self.session))
        if self.ordinal is not None and "ordinal" in value:
            self.ordinal += 1
        for what in done:
            self.notes.setdefault(what, entry.line)
        return lines.dump(value) + lines.ending(raw) if done else raw

    def _message(self, block: str, role: str) -> dict[str, Any]:
        name = f"msg_{uuid.uuid5(_NAMESPACE, f'{self.source.sha256}:{self.cut}')}"
        return {"type": "message", "id": name, "role": role, "content": [{"type": "input_text", "text": block}]}

    def _new(self, record: dict[str, Any]) -> bytes:
        if self.ordinal is not None:
            record = {"timestamp": record["timestamp"], "ordinal": self.ordinal, **record}
            self.ordinal += 1
        return lines.dump(record)

    def _head(self, block: str, role: str, fixed: Sequence[Entry], tail: Sequence[Entry]) -> Iterator[dict[str, Any]]:
        """The compaction, and what the client needs anew behind it."""
        before = self.transcript.live[self.transcript.fixed : self.cut]
        time = next((e.time for i in reversed(before) if (e := self.transcript.entries[i]).time), "")
        history = [*self._context(fixed), self._message(block, role)]
        yield {"timestamp": time, "type": "compacted", "payload": {"message": block, "replacement_history": history}}
        begins = tail[0].index if tail else len(self.transcript.entries)
        for kind in CARRIED:
            latest = self._latest(kind, begins)
            if latest and not any(_unwrapped(_load(entry))[0] == kind for entry in tail[:3]):
                yield {"timestamp": time, "type": kind, "payload": latest["payload"]}

    def _latest(self, kind: str, before: int) -> dict[str, Any]:
        for entry in reversed(self.transcript.entries[:before]):
            value = _load(entry) if not entry.role and kind.encode() in entry.raw[:200] else {}
            payload = value.get("payload")
            if (
                value.get("type") == kind
                and isinstance(payload, dict)
                and (kind != "world_state" or payload.get("full"))
            ):
                return value
        return {}

    def _context(self, fixed: Sequence[Entry]) -> Sequence[Value]:
        """What stands before the conversation in every request: the client's context, and what nobody can read."""
        compacted = self.transcript.live[self.transcript.fixed] if self.transcript.summarised else -1
        if compacted >= 0:
            payload = _load(self.transcript.entries[compacted]).get("payload", {})
            history = payload.get("replacement_history")
            kept = [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
            found = [item for item in kept if _is_context(item)]
            later = [_unwrapped(_load(entry))[1] for entry in fixed if entry.role and entry.index > compacted]
            if found:
                return [*found, *later]
        return [_unwrapped(_load(entry))[1] for entry in fixed if entry.role]


def _is_context(item: Value) -> bool:
    if item.get("type") in items.OPAQUE:
        return True
    if items.role_of(item) in ("developer", "system"):
        return True
    text = leaves(item.get("content"))
    return item.get("role") == "user" and not any(p.speaker == "human" for p in items.parts(item, pairs.Calls())) and (
        not is_block(text) and not text.startswith(SUMMARY_PREFIX))  # fmt: skip


FORMAT = Codex()
