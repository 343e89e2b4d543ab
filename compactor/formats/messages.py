"""How a list of chat messages is stored, whatever dialect the messages are in.

One message per line; a JSON array of messages; or rows, by line or in an array or alone in the file, each an object
with a list of messages under `messages` or `traj` and other keys that are none of our business.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import orjson

from compactor.errors import InputError
from compactor.formats import lines, pairs, sample, signed, spans
from compactor.formats.base import Embedded
from compactor.formats.blocks import string
from compactor.formats.lines import Record
from compactor.transcript import ACKNOWLEDGEMENT, BLOCK_START, Entry, Note, Part, Source, Transcript, is_block

Message = Mapping[str, Any]
ROW_KEYS = (b"messages", b"traj", b"conversations")
SYSTEM_ROLES = ("system", "developer")


class Dialect(Protocol):
    """What the messages of a list look like."""

    def role(self, message: Message) -> str:
        """The role, as OpenAI names it; empty where it is no message."""

    def parts(self, message: Message, calls: pairs.Calls, before: str) -> tuple[Part, ...]:
        """What the model sees in a message; `before` is the text of the assistant message just before it."""

    def without(self, message: Message, orphans: frozenset[str]) -> Message | None:
        """The message without the results that answer those calls; None when nothing else is in it."""

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        """A message of that role that says just this.

        `like` is one of the list, of that role where there is any; `after` the last one that it takes the place of.
        """

    def leads(self, message: Message) -> bool:
        """Whether a message must stay with the one that follows."""

    def placed(self, message: dict[str, Any], place: int) -> str:
        """Change what a kept message says of its own place in the list (from 0), and say what; empty where nothing."""


class Plain:
    """What most dialects have in common."""

    def role(self, message: Message) -> str:
        return string(message.get("role"))

    def without(self, message: Message, orphans: frozenset[str]) -> Message | None:
        return None

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        return {"role": role, "content": text}

    def leads(self, message: Message) -> bool:
        return False

    def placed(self, message: dict[str, Any], place: int) -> str:
        return ""


@dataclass
class MessageList:
    """A format that keeps conversations as lists of messages."""

    name: str
    title: str
    block_role: str
    dialect: Dialect
    takes: Callable[[bytes, list[Any]], bool]
    guess: Callable[[bytes, list[Any]], str] = lambda raw, records: ""
    """What has to be assumed to read these bytes in this dialect; empty when nothing."""
    keys: tuple[bytes, ...] = ROW_KEYS
    """Under which keys an object holds a list of messages."""
    numbered: bool = False
    """Whether messages tell their own place in the list."""

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return self.takes(raw, records)

    def read(self, raw: bytes, name: str) -> Source:
        first = sample.first_values(raw)
        found = tuple(
            _transcript(raw, pieces, begin, self.dialect) for begin, pieces in _conversations(raw, first, self)
        )
        if not any(entry.role for transcript in found for entry in transcript.entries):
            message = f"{name}: holds no chat messages; each must be an object with a role"
            raise InputError(message)
        guess = self.guess(raw, first)
        return Source(name, raw, self.name, found, (guess,) if guess else ())

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        kept, repaired, notes = _repaired(_tail(transcript, cut), self.dialect)
        gone = frozenset(entry.index for entry, raw in kept if not raw)
        fixed = [transcript.entries[index] for index in transcript.live[: transcript.fixed]]
        added = [self._said(transcript, cut, block, role or self.block_role)]
        opens = next((entry.role for entry, raw in kept if entry.role and raw), "")
        if opens == "user" and (role or self.block_role) == "user":
            added.append(self._said(transcript, cut, ACKNOWLEDGEMENT, "assistant"))
        written: list[tuple[Entry | None, bytes]] = [(entry, entry.raw) for entry in fixed]
        written += [(None, orjson.dumps(message)) for message in added]
        written += [(entry, raw) for entry, raw in kept if raw]
        written = self._placed(written, notes) if self.numbered else written
        notes += signed.notes([*fixed, *(entry for entry, raw in kept if raw)])
        return Embedded(_join(source, transcript, written), tuple(notes), repaired, gone, len(added) > 1)

    def _said(self, transcript: Transcript, cut: int, text: str, role: str) -> Message:
        found = [transcript.entries[index] for index in transcript.live if transcript.entries[index].role]
        first = min(transcript.live[cut:], default=len(transcript.entries))
        head = [entry for entry in transcript.entries[:first] if entry.role]
        last = (head or found)[-1:]
        near = [entry for entry in (*reversed(head), *found) if entry.role == role][:1] or last
        like, after = (next((_message(entry.raw) for entry in one), {}) for one in (near, last))
        return self.dialect.said(text, role, like, after)

    def _placed(self, written: list[tuple[Entry | None, bytes]], notes: list[Note]) -> list[tuple[Entry | None, bytes]]:
        """The messages with what they say of their own place made true; the first change of a kind is noted."""
        placed = []
        for place, (entry, raw) in enumerate(written):
            value = lines.editable(raw)
            what = self.dialect.placed(value, place) if value else ""
            if what and entry and not any(note.text == what for note in notes):
                notes.append(Note(entry.line, what))
            placed.append((entry, lines.dump(value) + lines.ending(raw) if what and value else raw))
        return placed

    def same(self, before: Entry, after: Entry) -> bool:
        if before.raw.rstrip(b"\r\n") == after.raw.rstrip(b"\r\n"):
            return True
        one, other = (lines.editable(entry.raw) for entry in (before, after)) if self.numbered else (None, None)
        return bool(one and other and self.dialect.placed(one, 0) and self.dialect.placed(other, 0) and one == other)


def _message(raw: bytes) -> Message:
    record = next(lines.records(raw), None)
    return record.value if record else {}


# Reading


def _conversations(raw: bytes, first: list[Any], form: MessageList) -> Iterator[tuple[int, Iterator[Record]]]:
    """Where each conversation begins, and where its messages are stored."""
    at = sample.start(raw)
    in_array, place = raw[at : at + 1] == b"[", _Place(raw)
    if holds_rows(first, form):
        rows = spans.elements(raw, at, len(raw)) if in_array else _row_spans(raw)
        for begin, end in rows:
            stop = end if end >= 0 else len(raw)
            array = spans.array_in(raw, spans.gap_end(raw, begin, stop), stop, form.keys)
            if array >= 0:
                yield array + 1, _elements(raw, array, stop, place)
    elif in_array:
        yield at + 1, _elements(raw, at, len(raw), place)
    else:
        yield lines.begin(raw), lines.records(raw)


def holds_rows(values: Iterable[Any], form: MessageList) -> bool:
    """Whether some values are rows, not messages: the first that is either decides."""
    for value in values:
        if is_row(value, form.keys) or (isinstance(value, dict) and form.dialect.role(value)):
            return is_row(value, form.keys)
    return False


def is_row(value: Any, keys: tuple[bytes, ...] = ROW_KEYS) -> bool:
    """Whether a value is an object that holds a conversation."""
    return isinstance(value, dict) and any(isinstance(value.get(key.decode()), list) for key in keys)


def _row_spans(raw: bytes) -> Iterator[tuple[int, int]]:
    """The spans of the top-level objects of a file, each on a line of its own or spread over several."""
    at, size, spread = lines.begin(raw), len(raw), True
    if sample.is_object(raw):
        yield at, size
        return
    while at < size:
        end = raw.find(b"\n", at) + 1 or size
        start = spans.gap_end(raw, at, end)
        if spread and raw[start : start + 1] == b"{" and spans.end_of(raw, start, end) < 0:
            close = spans.end_of(raw, start, size)
            spread = close >= 0
            end = max(end, close)
        yield at, end
        at = end


class _Place:
    """Counts on which line a message begins and which one of that line it is, going forward through the bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at, self.line, self.nth = raw, 0, 1, 0

    def step(self, at: int) -> tuple[int, int]:
        passed = self.raw.count(b"\n", self.at, at)
        self.at, self.line, self.nth = at, self.line + passed, 1 if passed else self.nth + 1
        return self.line, self.nth


def _elements(raw: bytes, array: int, stop: int, place: _Place) -> Iterator[Record]:
    for start, end in spans.elements(raw, array, stop):
        yield _element(raw, start, end if end >= 0 else _rest(raw, start, stop), *place.step(start))


def _rest(raw: bytes, start: int, stop: int) -> int:
    """The end of an element that was cut off: all that is left of its line or file."""
    return start + len(raw[start:stop].rstrip())


def _element(raw: bytes, start: int, end: int, line: int, nth: int) -> Record:
    stored = raw[start:end]
    try:
        value = orjson.loads(stored)
    except orjson.JSONDecodeError:
        record = next(lines.records(stored), None)
        if record is None or record.damage or record.end != end - start:
            damage = record.damage if record and record.damage else "not JSON"
            return Record(line, nth, start, stored, {}, f"{damage.split(' at byte')[0]} at byte {start}")
        value = record.value
    if not isinstance(value, dict):
        return Record(line, nth, start, stored, {}, f"no JSON object at byte {start}")
    return Record(line, nth, start, stored, value)


def _transcript(raw: bytes, records: Iterable[Record], begin: int, dialect: Dialect) -> Transcript:
    entries: list[Entry] = []
    calls, end, before, unit = pairs.Calls(), begin, "", ""
    for record in records:
        role = dialect.role(record.value)
        leads = bool(role) and dialect.leads(record.value)
        unit = unit or (f"unit {len(entries)}" if leads else "")
        entry = _entry(record, role, len(entries), raw[end : record.start], unit, dialect, calls, before)
        unit = unit if leads or not entry.role else ""
        before = entry.text if entry.role == "assistant" else before if not entry.role else ""
        entries.append(entry)
        end = record.end
    return _arranged(entries, begin, end)


def _entry(
    record: Record, role: str, index: int, lead: bytes, unit: str, dialect: Dialect, calls: pairs.Calls, before: str
) -> Entry:
    value = record.value
    parts: tuple[Part, ...] = ()
    if role:
        parts = dialect.parts(value, calls, before)
    elif isinstance(value.get("system"), str) and not record.damage:
        role, parts = "system", (Part("text", "system", value["system"]),)
    model = string(value.get("model")) or _model(value.get("modelInfo"))
    return Entry(
        index, record.line, record.nth, record.raw, lead, role, parts, unit if role else "", string(value.get("id")),
        "", string(value.get("timestamp")), model, 0, record.damage,
    )  # fmt: skip


def _model(about: Any) -> str:
    """The model as Cline names it."""
    return string(about.get("id")) or string(about.get("modelId")) if isinstance(about, dict) else ""


def _arranged(entries: list[Entry], begin: int, end: int) -> Transcript:
    """The conversation in a list: its header and leading system messages, its block, the rest."""
    first = next((entry.index for entry in entries if entry.role), len(entries))
    header = [entry.index for entry in entries[:first] if not entry.damage]
    messages = [entry.index for entry in entries if entry.role]
    leading = 0
    while leading < len(messages) and entries[messages[leading]].role in SYSTEM_ROLES:
        leading += 1
    opaque = [index for index in messages[leading:] if _is_opaque(entries[index])]
    if opaque:
        moved = set(opaque)
        messages = [*messages[:leading], *opaque, *(i for i in messages[leading:] if i not in moved)]
    leading += len(opaque)
    place = next((at for at in range(leading) if _is_block(entries[messages[at]])), leading)
    blocks = _blocks(entries, messages[place:])
    for index in messages[place : place + blocks]:
        parts = tuple(replace(part, speaker="summary", said=()) for part in entries[index].parts)
        entries[index] = replace(entries[index], parts=parts)
    live = (*header, *messages)
    return Transcript(
        tuple(entries),
        live,
        fixed=len(header) + place,
        summarised=blocks,
        ours=blocks > 0,
        side=frozenset(range(len(entries))) - frozenset(live),
        start=begin,
        end=end,
        notes=(
            *_damage(entries),
            *_carried([entries[index] for index in opaque]),
            *(_mistakable(entry) for index in messages[: place + 1] if _is_mistakable(entry := entries[index])),
            *pairs.notes(entries[index] for index in live),
        ),
    )


def _is_block(entry: Entry) -> bool:
    return is_block(entry.text) and all(part.kind == "text" for part in entry.parts)


def _is_opaque(entry: Entry) -> bool:
    """Whether an entry is a summary that only the provider can read: part of the fixed part, wherever it stands."""
    parts = entry.parts
    if not parts or parts[0].kind != "opaque":
        return False
    return all(part.kind == "opaque" and part.speaker == "summary" for part in parts)


def _carried(opaque: list[Entry]) -> Iterator[Note]:
    if opaque:
        text = f"{len(opaque)} compactions that only the provider can read: carried as they are, not summarised"
        yield Note(opaque[0].line, text)


def _is_mistakable(entry: Entry) -> bool:
    return entry.role in (*SYSTEM_ROLES, "user") and entry.text.startswith(BLOCK_START) and not _is_block(entry)


def _mistakable(entry: Entry) -> Note:
    as_what = "what the user said" if entry.role == "user" else "an ordinary system message"
    return Note(entry.line, f"begins like a compact record but isn't one; read as {as_what}")


def _blocks(entries: list[Entry], rest: list[int]) -> int:
    """How many of these messages, from the first, are a block of ours and its acknowledgement."""
    if not rest or not _is_block(entries[rest[0]]) or entries[rest[0]].role not in (*SYSTEM_ROLES, "user"):
        return 0
    follower = entries[rest[1]] if len(rest) > 1 else None
    return 2 if follower and follower.role == "assistant" and follower.text == ACKNOWLEDGEMENT else 1


def _damage(entries: Iterable[Entry]) -> Iterator[Note]:
    return (Note(entry.line, f"damaged: {entry.damage}") for entry in entries if entry.damage)


# Writing


def _tail(transcript: Transcript, cut: int) -> list[Entry]:
    """The kept messages, with the bookkeeping that stands among and behind them."""
    tail = transcript.live[cut:]
    side = [index for index in transcript.side if tail and index > tail[0]]
    return [transcript.entries[index] for index in sorted((*tail, *side))]


def _repaired(tail: list[Entry], dialect: Dialect) -> tuple[list[tuple[Entry, bytes]], frozenset[int], list[Note]]:
    """The tail's bytes without results whose call is gone: APIs refuse a conversation with such a result."""
    lost: dict[int, set[str]] = {}
    for entry, call_id in pairs.orphans(tail):
        lost.setdefault(entry.index, set()).add(call_id)
    kept, notes = [], []
    for entry in tail:
        raw = entry.raw
        if entry.index in lost:
            ids = frozenset(lost[entry.index])
            raw = _without(entry, dialect, ids)
            notes.append(Note(entry.line, f"dropped the result of {', '.join(sorted(ids))}, which answers no call"))
        kept.append((entry, raw))
    return kept, frozenset(lost), notes


def _without(entry: Entry, dialect: Dialect, ids: frozenset[str]) -> bytes:
    record = next(lines.records(entry.raw))
    message = dialect.without(record.value, ids)
    if message is None:
        return b""
    end = lines.ending(entry.raw)
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + end


def _join(source: Source, transcript: Transcript, written: list[tuple[Entry | None, bytes]]) -> bytes:
    """The bytes of some entries in the place of a conversation's; new ones come as no entry."""
    before = source.raw[: transcript.start].rstrip()
    glue = _array_glue if before.endswith(b"[") else partial(_line_glue, source.raw)
    return b"".join(glue(transcript.entries, written))


def _array_glue(entries: tuple[Entry, ...], written: list[tuple[Entry | None, bytes]]) -> Iterator[bytes]:
    first = entries[0].lead if entries else b""
    between = entries[1].lead if len(entries) > 1 else b"," + (first or b" ")
    for at, (entry, raw) in enumerate(written):
        yield first if at == 0 else entry.lead if entry and entry.index else between
        yield raw


def _line_glue(source: bytes, entries: tuple[Entry, ...], written: list[tuple[Entry | None, bytes]]) -> Iterator[bytes]:
    end = b"\r\n" if b"\r\n" in source[: source.find(b"\n") + 1] else b"\n"
    for at, (entry, raw) in enumerate(written):
        yield entry.lead if entry else b""
        yield raw
        if not raw.endswith(b"\n") and (entry is None or at + 1 < len(written)):
            yield end
