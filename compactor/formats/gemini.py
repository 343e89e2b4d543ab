"""Sessions of Gemini CLI.

The JSONL of today (`packages/core/src/services/chatRecordingService.ts` of google-gemini/gemini-cli): a header, then
records of which the last of an id holds in the first one's place, `$set` with a whole new list of messages, and
`$rewindTo`. Before that one JSON object with `messages`. Calls and their results stand in one message.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compactor.errors import InputError
from compactor.formats import blocks, lines, pairs, spans
from compactor.formats.base import Embedded
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import ACKNOWLEDGEMENT, Entry, Note, Part, Source, Transcript, is_block

Value = Mapping[str, Any]
ROLES = {"user": "user", "gemini": "assistant"}
SNAPSHOT = "<state_snapshot>"
"""What the client's own summary holds."""
_SET = b'"messages"'
_NAMESPACE = uuid.UUID("c0f1d7b2-7f3e-5a55-9a55-1a1c9e0f6d24")
_CONTEXT = ("<session_context>", "<hook_context>")
_FILES = "--- Content from referenced files ---"
"""Behind it stand the files that the user named with @, up to the end of the message."""


class Gemini(Plain):
    """Messages of the types `user` and `gemini`."""

    def role(self, message: Message) -> str:
        return ROLES.get(string(message.get("type")), "") if "content" in message else ""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        return tuple(self._parts(message, calls))

    def _parts(self, message: Message, calls: Calls) -> Iterator[Part]:
        role = self.role(message)
        thoughts = message.get("thoughts")
        for thought in thoughts if isinstance(thoughts, list) else ():
            yield Part("thinking", "assistant", blocks.leaves({k: v for k, v in thought.items() if k != "timestamp"})
                       if isinstance(thought, dict) else "")  # fmt: skip
        content = message.get("content")
        shown = False
        for piece in content if isinstance(content, list) else [content]:
            text = piece.get("text") if isinstance(piece, dict) else piece
            shown = shown or (isinstance(text, str) and text.lstrip().startswith(_FILES))
            for part in _piece(piece, role, calls):
                yield replace(part, speaker="harness", said=()) if shown and part.speaker == "human" else part
        made = message.get("toolCalls")
        for call in made if isinstance(made, list) else ():
            if isinstance(call, dict):
                yield from _call(call, calls)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        kind = "gemini" if role == "assistant" else "user"
        name, time = uuid.uuid5(_NAMESPACE, f"{after.get('id')}:{text}"), string(after.get("timestamp"))
        return {"id": str(name), "timestamp": time, "type": kind, "content": [{"text": text}]}


def _piece(piece: Any, role: str, calls: Calls) -> Iterator[Part]:
    if isinstance(piece, str) and piece:
        yield _text(piece, role)
    elif isinstance(piece, dict) and isinstance(piece.get("text"), str):
        text = piece["text"]
        yield Part("thinking", "assistant", text) if piece.get("thought") is True else _text(text, role)
    elif isinstance(piece, dict) and isinstance(call := piece.get("functionCall"), dict):
        yield blocks.call(string(call.get("id")), string(call.get("name")), call.get("args"), calls)
    elif isinstance(piece, dict) and isinstance(answer := piece.get("functionResponse"), dict):
        repeats = calls.answered(string(answer.get("id")))
        for part in _answer(string(answer.get("id")), string(answer.get("name")), [piece], False, calls):
            yield replace(part, text="") if repeats else part
    elif isinstance(piece, dict) and (data := piece.get("inlineData") or piece.get("fileData")):
        kind = string(data.get("mimeType")) if isinstance(data, dict) else ""
        yield Part("media", "human" if role == "user" else "assistant", name=kind or "file")
    elif piece:
        yield Part("opaque", "assistant" if role == "assistant" else "harness", blocks.leaves(piece))


def _text(text: str, role: str) -> Part:
    if role == "assistant":
        return Part("text", "assistant", text)
    if text.lstrip().startswith(_CONTEXT):
        return Part("text", "harness", text)
    return Part("text", "summary", text) if text.lstrip().startswith(SNAPSHOT) else prompt(text)


def _call(call: Value, calls: Calls) -> Iterator[Part]:
    name, call_id = string(call.get("name")), string(call.get("id"))
    yield blocks.call(call_id, name, call.get("args"), calls)
    if call.get("result") is not None:
        failed = call.get("status") in ("error", "cancelled")
        yield from _answer(call_id, name, call["result"], failed, calls)


def _answer(call_id: str, name: str, result: Any, failed: bool, calls: Calls) -> Iterator[Part]:
    pieces = result if isinstance(result, list) else [result]
    told = [_response(piece) for piece in pieces]
    failed = failed or any(error for _, error in told)
    block = {
        "tool_use_id": calls.answer(call_id, name),
        "content": "\n".join(text for text, _ in told if text),
        "is_error": failed,
    }
    yield from blocks.result(block, calls, blocks.ALONE)


def _response(piece: Any) -> tuple[str, bool]:
    """What the model reads of a piece of a result, and whether it says that the call failed."""
    answer = piece.get("functionResponse") if isinstance(piece, dict) else None
    response = answer.get("response") if isinstance(answer, dict) else None
    if isinstance(response, dict):
        output = response.get("output", response.get("error", response.get("content", response)))
        return output if isinstance(output, str) else blocks.leaves(output), "error" in response
    return (string(piece.get("text")) if isinstance(piece, dict) else blocks.leaves(piece)), False


DIALECT = Gemini()


def sniff_json(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is a session of before JSONL."""
    first = records[0] if len(records) == 1 and isinstance(records[0], dict) else {}
    return (
        "sessionId" in first
        and isinstance(first.get("messages"), list)
        and (
            "projectHash" in first or any(isinstance(m, dict) and m.get("type") == "gemini" for m in first["messages"])
        )
    )


LEGACY = MessageList("gemini-json", "Gemini CLI session (JSON, before 2026)", "user", DIALECT, sniff_json)


class GeminiCLI:
    """The JSONL that Gemini CLI keeps of a session."""

    name = "gemini"
    title = "Gemini CLI session (JSONL)"
    block_role = "user"

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return not sniff_json(raw, records) and any(map(_is_header, records))

    def read(self, raw: bytes, name: str) -> Source:
        reading = _Reading()
        for record in lines.records(raw):
            reading.take(record, raw)
        if not reading.header and not reading.order:
            message = f"{name}: holds no Gemini CLI records; leave --format out, or say another"
            raise InputError(message)
        return Source(name, raw, self.name, (reading.transcript(lines.begin(raw)),))

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        """Header, the client's context, the block, the agent's word, and each kept message on a line of its own."""
        entries = transcript.entries
        fixed = [entries[index] for index in transcript.live[: transcript.fixed]]
        tail = [entries[index] for index in transcript.live[cut:]]
        head = [entries[index] for index in transcript.live[transcript.fixed : cut]]
        like: Value = {
            "id": f"{source.sha256}:{cut}",
            "timestamp": next((e.time for e in reversed(head) if e.time), ""),
        }
        said = [DIALECT.said(block, "user", like, like)]
        acknowledged = bool(tail) and tail[0].role == "user"
        said += [DIALECT.said(ACKNOWLEDGEMENT, "assistant", like, like)] * acknowledged
        edits: list[Note] = []
        chunks = [_line(_renamed(entry, session, edits)) for entry in fixed]
        chunks += [_line(lines.dump(message)) for message in said]
        chunks += [_line(_renamed(entry, session, edits)) for entry in _with_side(transcript, tail)]
        return Embedded(b"".join(chunks), tuple(edits), acknowledged=acknowledged)

    def same(self, before: Entry, after: Entry) -> bool:
        if before.raw.strip() == after.raw.strip():
            return True
        one, other = (dict(next(lines.records(entry.raw)).value) for entry in (before, after))
        return _is_header(one) and {**one, "sessionId": ""} == {**other, "sessionId": ""}


def _is_header(record: Any) -> bool:
    return isinstance(record, dict) and "sessionId" in record and ("projectHash" in record or "startTime" in record)


def _is_context(entry: Entry) -> bool:
    return bool(entry.parts) and all(part.speaker == "harness" for part in entry.parts)


def _line(raw: bytes) -> bytes:
    return raw.strip() + b"\n"


def _with_side(transcript: Transcript, tail: Sequence[Entry]) -> Iterator[Entry]:
    """The kept messages, each behind the bookkeeping and damage that stands before it, and what stands behind all."""
    first = min((entry.index for entry in tail), default=len(transcript.entries))
    side = sorted((index for index in transcript.side if index > first), reverse=True)
    for entry in tail:
        while side and side[-1] < entry.index:
            yield transcript.entries[side.pop()]
        yield entry
    yield from (transcript.entries[index] for index in reversed(side))


def _renamed(entry: Entry, session: str, edits: list[Note]) -> bytes:
    value = lines.loads(entry.raw) if session else None
    if not value or not _is_header(value) or value["sessionId"] == session:
        return entry.raw
    edits.append(Note(entry.line, "sessionId: replaced"))
    return lines.dump({**value, "sessionId": session})


@dataclass
class _Reading:
    """What one pass over the records gathers, as the client does when it resumes."""

    entries: list[Entry] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)
    """The message that holds for each id, in the order of their first mention."""
    past: dict[str, int] = field(default_factory=dict)
    """What a new list of messages left out."""
    calls: Calls = field(default_factory=Calls)
    header: Value = field(default_factory=dict)
    heads: list[int] = field(default_factory=list)
    side: list[int] = field(default_factory=list)
    """Records that are no messages, and damage."""
    end: int = 0

    def take(self, record: lines.Record, raw: bytes) -> None:
        lead = raw[self.end or lines.begin(raw) : record.start]
        self.end = record.end
        value = record.value
        held = value.get("$set")
        messages = held.get("messages") if isinstance(held, dict) else None
        if isinstance(messages, list):
            self._replace(record, raw, lead)
        elif "$rewindTo" in value:
            self._add(record.line, record.nth, record.raw, lead, {}, record.damage)
            self._rewind(string(value["$rewindTo"]))
        else:
            index = self._add(record.line, record.nth, record.raw, lead, value, record.damage)
            if _is_header(value) and not self.header:
                self.header = value
                self.heads.append(index)
            elif not self.entries[index].role:
                self.side.append(index)
            else:
                self.order[string(value.get("id")) or f"line {record.line}"] = index

    def _replace(self, record: lines.Record, raw: bytes, lead: bytes) -> None:
        """A whole new list: each message of it is an entry, and so is what stands around them."""
        at = spans.gap_end(raw, record.start, record.end)
        inner = next((start for key, start in spans.members(raw, at, record.end) if key == b"$set"), -1)
        array = spans.array_in(raw, inner, record.end, (b"messages",)) if inner >= 0 else -1
        found = [(s, e) for s, e in spans.elements(raw, array, record.end) if e > 0] if array >= 0 else []
        if not found:
            self._add(record.line, record.nth, record.raw, lead, {}, record.damage)
            self._clear({})
            return
        self._add(record.line, record.nth, raw[record.start : found[0][0]], lead, {}, "")
        place, at, new = record.nth, found[0][0], dict[str, int]()
        for start, end in found:
            place += 1
            value = next(lines.records(raw[start:end])).value
            index = self._add(record.line, place, raw[start:end], raw[at:start], value, "")
            at = end
            if self.entries[index].role:
                new[string(value.get("id")) or f"line {record.line}.{place}"] = index
        self._add(record.line, place + 1, raw[at : record.end], b"", {}, "")
        self._clear(new)

    def _clear(self, new: dict[str, int]) -> None:
        self.past |= {name: index for name, index in self.order.items() if name not in new}
        self.order = new

    def _rewind(self, name: str) -> None:
        if name not in self.order:
            self.order = {}
        while self.order and self.order.popitem()[0] != name:
            pass

    def _add(self, line: int, nth: int, raw: bytes, lead: bytes, value: Value, damage: str) -> int:
        role = DIALECT.role(value)
        counted = value.get("tokens")
        total = counted.get("total") if isinstance(counted, dict) else 0
        self.entries.append(Entry(
            len(self.entries), line, nth, raw, lead, role, (), "", string(value.get("id")), "",
            string(value.get("timestamp")), string(value.get("model")), total if isinstance(total, int) else 0, damage,
        ))  # fmt: skip
        return len(self.entries) - 1

    def _listen(self) -> None:
        """Take in what the messages say that hold in the end; most were written again and again."""
        for index in dict.fromkeys((*self.past.values(), *self.order.values())):
            value = lines.loads(self.entries[index].raw) or next(lines.records(self.entries[index].raw)).value
            parts = DIALECT.parts(value, self.calls, "")
            self.entries[index] = replace(self.entries[index], parts=parts)

    def transcript(self, start: int) -> Transcript:
        self._listen()
        entries, order = self.entries, list(self.order.values())
        context = 0
        while context < len(order) and _is_context(entries[order[context]]):
            context += 1
        fixed = [*self.heads, *order[:context]]
        rest = order[context:]
        summarised = self._summarised(rest)
        for index in rest[:summarised]:
            parts = tuple(replace(part, speaker="summary", said=()) for part in entries[index].parts)
            entries[index] = replace(entries[index], parts=parts)
        live = (*fixed, *rest)
        notes = [Note(entry.line, f"damaged: {entry.damage}") for entry in entries if entry.damage]
        return Transcript(
            tuple(entries), live, len(fixed), summarised, ours=summarised > 0 and is_block(entries[rest[0]].text),
            past=tuple(sorted(self.past.values())) if summarised and not is_block(entries[rest[0]].text) else (),
            side=frozenset(self.side), session=string(self.header.get("sessionId")), start=start, end=self.end or start,
            notes=tuple(sorted((*notes, *pairs.notes(entries[i] for i in live)), key=lambda note: note.line)),
        )  # fmt: skip

    def _summarised(self, rest: list[int]) -> int:
        """How many messages, from the first, are a summary and the word that acknowledges it."""
        if not rest or self.entries[rest[0]].role != "user":
            return 0
        first = self.entries[rest[0]]
        if is_block(first.text):
            after = self.entries[rest[1]].text if len(rest) > 1 else ""
            return 2 if after == ACKNOWLEDGEMENT else 1
        if not any(part.speaker == "summary" for part in first.parts):
            return 0
        follower = self.entries[rest[1]] if len(rest) > 1 else None
        return 2 if follower and follower.role == "assistant" and follower.text.startswith("Got it.") else 1


FORMAT = GeminiCLI()
