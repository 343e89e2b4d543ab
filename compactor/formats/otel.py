"""Messages as OpenTelemetry's GenAI conventions record them.

The value of `gen_ai.input.messages` (semantic-conventions, `docs/gen-ai/gen-ai-input-messages.json`): `role` and
`parts` with `content`. A file of spans is read as the messages in them, a row for each conversation (`otel_spans`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.formats import blocks, otel_spans, sample
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Note, Part, Source

KEYS = (b"messages", b"gen_ai.input.messages")
KINDS = frozenset(("text", "reasoning", "tool_call", "tool_call_response", "blob", "file", "file_data", "uri"))


class OTel(Plain):
    """Messages of typed parts."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        held = message.get("parts")
        pieces = held if isinstance(held, list) else ()
        return tuple(
            part for piece in pieces if isinstance(piece, dict) for part in _parts(piece, self.role(message), calls)
        )

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        return {"role": role, "parts": [{"type": "text", "content": text}]}


def _parts(piece: Mapping[str, Any], role: str, calls: Calls) -> Iterator[Part]:
    kind = string(piece.get("type"))
    if kind == "text":
        text = string(piece.get("content"))
        yield prompt(text) if role == "user" else Part("text", blocks.speaker(role), text)
    elif kind == "reasoning":
        yield Part("thinking", "assistant", string(piece.get("content")))
    elif kind == "tool_call":
        yield blocks.call(string(piece.get("id")), string(piece.get("name")), arguments(piece.get("arguments")), calls)
    elif kind == "tool_call_response":
        response = piece.get("response", piece.get("result"))
        content = response if isinstance(response, str) else blocks.compact(response)
        yield from blocks.result({"tool_use_id": piece.get("id"), "content": content}, calls, blocks.ALONE)
    elif kind in KINDS:
        yield Part("media", "human" if role == "user" else "assistant", name=string(piece.get("mime_type")) or kind)
    else:
        yield Part("opaque", "assistant" if role == "assistant" else "harness", blocks.leaves(piece))


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values, or the lists they hold, are such messages."""
    if otel_spans.holds(records):
        return True
    held = [item for record in records for item in _messages(record)]
    pieces = [p for m in held if isinstance(m, dict) for p in _list(m.get("parts")) if isinstance(p, dict)]
    typed = all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("parts"), list) for m in held
    )
    return (
        bool(pieces)
        and typed
        and all(
            isinstance(p.get("type"), str) and "text" not in p and not p["type"].startswith("tool-") for p in pieces
        )
    )


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _messages(record: Any) -> list[Any]:
    if isinstance(record, dict):
        for key in KEYS:
            if isinstance(held := record.get(key.decode()), list):
                return held
    return [record]


class OTelList(MessageList):
    """Lists of messages, and files of spans, unpacked into such lists."""

    def read(self, raw: bytes, name: str) -> Source:
        if not otel_spans.holds(sample.first_values(raw)):
            return super().read(raw, name)
        rows = b"".join(blocks.compact(row).encode() + b"\n" for row in otel_spans.rows(raw))
        source = super().read(rows, name)
        notes = tuple(Note(line, f"damaged: {what}") for line, what in otel_spans.damage(raw))
        first, *others = source.transcripts
        told = (replace(first, notes=(*notes, *first.notes)), *others)
        return replace(source, original=raw, transcripts=told)


FORMAT = OTelList("otel", "OpenTelemetry GenAI messages", "system", OTel(), sniff, keys=KEYS)
