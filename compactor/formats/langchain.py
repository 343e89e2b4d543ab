"""Messages of LangChain, as `messages_to_dict` and `dumpd` write them.

`{"type": "human", "data": {...}}` (langchain_core/messages/base.py) or
`{"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {...}}` (langchain_core/load/dump.py). A
`RemoveMessage` takes out the message of that id before it, or all of them (langgraph/graph/message.py): what it names
isn't sent, and it isn't written, since without that message it is an error.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.formats import blocks, lines, pairs
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Entry, Note, Part, Source, Transcript

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CLASSES = {"user": "HumanMessage", "assistant": "AIMessage", "system": "SystemMessage"}
_TYPES = {"user": "human", "assistant": "ai", "system": "system"}


class LangChain(Plain):
    """Messages with their fields under `data` or `kwargs`."""

    def role(self, message: Message) -> str:
        kind, fields = _told(message)
        role = string(fields.get("role")) if kind == "chat" else ROLES.get(kind, "")
        return {"human": "user", "ai": "assistant"}.get(role, role)

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        _, fields = _told(message)
        role = self.role(message)
        if role == "tool":
            told = {"tool_use_id": fields.get("tool_call_id"), "content": fields.get("content"),
                    "is_error": fields.get("status") == "error"}  # fmt: skip
            return tuple(blocks.result(told, calls, blocks.ALONE))
        known = set[str]()
        found = list(_content(fields.get("content"), role, calls, known))
        for call in _made(fields):
            if string(call.get("id")) not in known:
                known.add(string(call.get("id")) or "without")
                found.append(_call(call, calls))
        return tuple(found)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        if "lc" not in like or not isinstance(like.get("id"), list):
            name = _TYPES.get(role, role)
            return {"type": name, "data": {"content": text, "additional_kwargs": {}, "response_metadata": {},
                                           "type": name, "name": None, "id": None}}  # fmt: skip
        path = [*like["id"][:-1], _CLASSES.get(role, "HumanMessage")]
        return {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": text, "type": _TYPES.get(role, role)}}


def _told(message: Message) -> tuple[str, Mapping[str, Any]]:
    """The type of a message without `Chunk`, in lower case, and its fields."""
    if "lc" in message and isinstance(path := message.get("id"), list) and path:
        kind, fields = str(path[-1]).removesuffix("Chunk").removesuffix("Message").lower(), message.get("kwargs")
    else:
        kind = string(message.get("type")).removesuffix("Chunk").removesuffix("Message").lower()
        fields = message.get("data")
    return kind, fields if isinstance(fields, dict) else {}


def _content(content: Any, role: str, calls: Calls, known: set[str]) -> Iterator[Part]:
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            if block:
                yield prompt(block) if role == "user" else Part("text", _speaker(role), block)
        elif isinstance(block, dict):
            if block.get("type") == "tool_use":
                known.add(string(block.get("id")))
            elif block.get("type") in ("tool_call", "invalid_tool_call", "tool_call_chunk"):
                continue
            yield from blocks.parts([block], role, calls, prompt)


def _speaker(role: str) -> Any:
    return role if role in ("assistant", "system") else "harness"


def _made(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The calls of a message, those that couldn't be parsed too, else OpenAI's copy of them."""
    copy = fields.get("additional_kwargs")
    told = [fields.get("tool_calls"), fields.get("invalid_tool_calls"),
            copy.get("tool_calls") if isinstance(copy, dict) else None]  # fmt: skip
    for calls in told:
        yield from (call for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()


def _call(call: Mapping[str, Any], calls: Calls) -> Part:
    inner = call.get("function")
    function: Mapping[str, Any] = inner if isinstance(inner, dict) else call
    given = arguments(function.get("args", function.get("arguments")))
    return blocks.call(string(call.get("id")), string(function.get("name")), given, calls)


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values, or the lists under `messages`, are such messages."""
    found = [item for record in records for item in _messages(record)]
    return bool(found) and all(isinstance(item, dict) and _is_message(item) for item in found)


def _messages(record: Any) -> list[Any]:
    held = record.get("messages") if isinstance(record, dict) else None
    return held if isinstance(held, list) else [record]


def _is_message(item: Message) -> bool:
    kind, fields = _told(item)
    return bool(fields) and "content" in fields and kind in (*ROLES, "chat", "remove")


ALL = "__remove_all__"
"""The id by which all messages are taken out."""


class LangChainList(MessageList):
    """Lists in which messages may have been taken out again."""

    def read(self, raw: bytes, name: str) -> Source:
        source = super().read(raw, name)
        return replace(source, transcripts=tuple(map(_without_removed, source.transcripts)))


def _without_removed(transcript: Transcript) -> Transcript:
    entries = transcript.entries
    removals = [entry.index for entry in entries if not entry.role and _removes(entry)]
    if not removals:
        return transcript
    gone = _removed(entries, removals)
    live = tuple(index for index in transcript.live if index not in {*gone, *removals})
    sent = {index: at for at, index in enumerate(transcript.live)}
    fixed = sum(sent[index] < transcript.fixed for index in live)
    summarised = sum(transcript.fixed <= sent[index] < transcript.first for index in live)
    stale = {note.text for note in pairs.notes(entries[index] for index in transcript.live)}
    notes = [note for note in transcript.notes if note.text not in stale]
    notes.append(Note(entries[removals[0]].line, f"{len(gone)} messages were removed by later records: not sent"))
    notes += pairs.notes(entries[index] for index in live)
    return replace(
        transcript, live=live, fixed=fixed, summarised=summarised, ours=transcript.ours and summarised > 0,
        past=tuple(index for index in transcript.live if index in gone and entries[index].role),
        side=transcript.side - frozenset(removals), notes=tuple(sorted(notes, key=lambda note: note.line)),
    )  # fmt: skip


def _removed(entries: tuple[Entry, ...], removals: list[int]) -> frozenset[int]:
    """The messages that the removals name, each among those before it."""
    known, gone, waiting = dict[str, list[int]](), set[int](), set(removals)
    for entry in entries:
        name = _name(entry)
        if entry.index not in waiting:
            known.setdefault(name, []).extend([entry.index] if entry.role else [])
        elif name == ALL:
            gone.update(index for held in known.values() for index in held)
        else:
            gone.update(known.pop(name, ()) if name else ())
    return frozenset(gone)


def _removes(entry: Entry) -> bool:
    return b"emove" in entry.raw and _told(_value(entry))[0] == "remove"


def _name(entry: Entry) -> str:
    return string(_told(_value(entry))[1].get("id"))


def _value(entry: Entry) -> Message:
    return (lines.editable(entry.raw.strip()) or {}) if not entry.damage else {}


FORMAT = LangChainList("langchain", "LangChain messages (messages_to_dict, dumpd)", "system", LangChain(), sniff)
