"""Sessions of opencode, as `opencode export` writes them.

`{"info": {...}, "messages": [{"info": {...}, "parts": [...]}]}` (`packages/opencode/src/session/message-v2.ts` of
sst/opencode). A tool's call and its result are one part. `opencode import` takes it back.
"""

import uuid
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.formats import blocks, lines
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Entry, Part, Source, Transcript

_NAMESPACE = uuid.UUID("9d0fd1c1-2f2a-5bbd-b8a0-4b5f5c8a7a3e")
_CLEARED = "[Old tool result content cleared]"
"""What the client sends for an output that it pruned (`state.time.compacted`)."""
_SILENT = ("step-start", "step-finish", "snapshot", "patch", "retry", "compaction", "agent", "subtask")


class OpenCode(Plain):
    """Messages of an `info` and its parts."""

    def role(self, message: Message) -> str:
        info = message.get("info")
        return string(info.get("role")) if isinstance(info, dict) and isinstance(message.get("parts"), list) else ""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        role = self.role(message)
        summary = message["info"].get("summary") is True and role == "assistant"
        found = (part for piece in message["parts"] if isinstance(piece, dict) for part in _parts(piece, role, calls))
        return tuple(Part("text", "summary", part.text) if summary and part.kind == "text" else part for part in found)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        """A message with ids and a time of its own, just behind `after`."""
        info, last = (dict(told) if isinstance(told := m.get("info"), dict) else {} for m in (like, after))
        key = uuid.uuid5(_NAMESPACE, f"{last.get('id')}:{text}").hex[:12]
        created = last["time"].get("created", 0) if isinstance(last.get("time"), dict) else 0
        # the client sorts by id: right behind the last one that is gone, the block before the word on it
        tail = f"{_early(last)}{'zz' if role == 'assistant' else 'zy'}{key}"
        session, name = string(last.get("sessionID")), f"msg_{tail}"
        kept = (
            ("parentID", "agent", "model", "mode", "path", "modelID", "providerID") if info.get("role") == role else ()
        )
        info = {key: info[key] for key in kept if key in info}
        info |= {"role": role, "time": {"created": created}, "id": name, "sessionID": session}
        if role == "assistant":
            zero = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
            info |= {"cost": 0, "tokens": zero, "finish": "stop", "time": {"created": created, "completed": created}}
        part = {
            "type": "text",
            "text": text,
            "id": f"prt_{tail}",
            "sessionID": session,
            "messageID": name,
        }
        return {"info": info, "parts": [part]}


def _early(info: Mapping[str, Any]) -> str:
    """The part of an id that sorts it by time."""
    return string(info.get("id")).removeprefix("msg_")[:12] or "0" * 12


def _parts(piece: Mapping[str, Any], role: str, calls: Calls) -> Iterator[Part]:
    kind = string(piece.get("type"))
    if kind == "text":
        text = string(piece.get("text"))
        if piece.get("ignored") is True or not text:
            return
        if role == "assistant":
            yield Part("text", "assistant", text)
        else:
            yield Part("text", "harness", text) if piece.get("synthetic") is True else prompt(text)
    elif kind == "reasoning":
        yield Part("thinking", "assistant", string(piece.get("text")))
    elif kind == "tool":
        state = piece.get("state")
        yield from _tool(piece, state if isinstance(state, dict) else {}, calls)
    elif kind == "file":
        yield Part("media", "human" if role == "user" else "assistant", name=f"file, {string(piece.get('mime'))}")
    elif kind not in _SILENT:
        yield Part("opaque", "assistant" if role == "assistant" else "harness", blocks.leaves(piece.get("text")))


def _tool(piece: Mapping[str, Any], state: Mapping[str, Any], calls: Calls) -> Iterator[Part]:
    call_id = string(piece.get("callID"))
    yield blocks.call(call_id, string(piece.get("tool")), state.get("input"), calls)
    if state.get("status") in ("completed", "error"):
        failed = state.get("status") == "error"
        time = state.get("time")
        pruned = isinstance(time, dict) and time.get("compacted") and not failed
        told = state.get("error") if failed else state.get("output")
        block = {
            "tool_use_id": call_id,
            "content": told if isinstance(told, str) else blocks.compact(told),
            "is_error": failed,
        }
        for part in blocks.result(block, calls, blocks.ALONE):
            yield replace(part, stub=_CLEARED) if pruned else part


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is an export."""
    first = records[0] if len(records) == 1 and isinstance(records[0], dict) else {}
    held = first.get("messages")
    return (
        isinstance(first.get("info"), dict)
        and isinstance(held, list)
        and all(
            isinstance(m, dict) and isinstance(m.get("info"), dict) and isinstance(m.get("parts"), list) for m in held
        )
    )


class OpenCodeExport(MessageList):
    """An export, live from the newest compaction of the client's own."""

    def read(self, raw: bytes, name: str) -> Source:
        source = super().read(raw, name)
        return replace(source, transcripts=tuple(map(_since_compaction, source.transcripts)))

    def _said(self, transcript: Transcript, cut: int, text: str, role: str) -> Message:
        """A message whose id sorts before the first kept one, also where ids share their time."""
        message = super()._said(transcript, cut, text, role)
        name, first = message["info"]["id"], min(transcript.live[cut:], default=len(transcript.entries))
        following = next(
            (i for k in transcript.live[cut:] if (i := string(_info(transcript.entries[k]).get("id")))), ""
        )
        if not following or name < following:
            return message
        heads = (string(_info(entry).get("id")) for entry in transcript.entries[:first])
        last = max((i for i in heads if i < following), default="msg_")
        key = f"{last.removeprefix('msg_')}{name[len('msg_') + len(_early(message['info'])) :]}"
        parts = [{**part, "id": f"prt_{key}", "messageID": f"msg_{key}"} for part in message["parts"]]
        return {"info": {**message["info"], "id": f"msg_{key}"}, "parts": parts}


def _since_compaction(transcript: Transcript) -> Transcript:
    entries, places = transcript.entries, dict[str, list[int]]()
    for summary in reversed(transcript.live):
        if entries[summary].role == "assistant" and any(part.speaker == "summary" for part in entries[summary].parts):
            places = places or _places(entries)
            info = _info(entries[summary])
            asked = _before(places, summary, string(info.get("parentID")))
            compaction = _compaction(entries[asked]) if asked >= 0 else None
            if info.get("finish") and not info.get("error") and compaction is not None:
                start = _before(places, asked, string(compaction.get("tail_start_id")))
                return _begun(transcript, asked, summary, start)
    return transcript


def _begun(transcript: Transcript, asked: int, summary: int, start: int) -> Transcript:
    """The conversation with what was asked of the client and its summary in front, then what it kept, then the rest."""
    rest = [i for i in transcript.live if i not in (asked, summary) and (i > asked or 0 <= start <= i)]
    live = (asked, summary, *rest)
    sent = set(live)
    past = tuple(i for i in transcript.live if i not in sent)
    side = frozenset(i for i in transcript.side if i > asked)
    return replace(transcript, live=live, past=past, side=side, fixed=0, summarised=2, ours=False)


def _places(entries: tuple[Entry, ...]) -> dict[str, list[int]]:
    """Where the messages of each id stand."""
    found: dict[str, list[int]] = {}
    for entry in entries:
        found.setdefault(string(_info(entry).get("id")), []).append(entry.index)
    return found


def _before(places: Mapping[str, list[int]], index: int, name: str) -> int:
    """Where the message of that id stands before another, or -1."""
    found = places.get(name, []) if name else []
    at = bisect_left(found, index)
    return found[at - 1] if at else -1


def _info(entry: Entry) -> Message:
    info = _value(entry).get("info")
    return info if isinstance(info, dict) else {}


def _compaction(entry: Entry) -> Message | None:
    pieces = _value(entry).get("parts")
    held = pieces if isinstance(pieces, list) else []
    return next((piece for piece in held if isinstance(piece, dict) and piece.get("type") == "compaction"), None)


def _value(entry: Entry) -> Message:
    return (lines.editable(entry.raw) or {}) if entry.role else {}


FORMAT = OpenCodeExport("opencode", "opencode export", "user", OpenCode(), sniff)
