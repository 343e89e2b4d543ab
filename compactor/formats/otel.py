"""Messages as OpenTelemetry's GenAI conventions record them.

The value of `gen_ai.input.messages` (semantic-conventions, `docs/gen-ai/gen-ai-input-messages.json`): `role` and
`parts` with `content`. A span holds the whole history of its call, so the last span's messages are the transcript.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part

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


FORMAT = MessageList("otel", "OpenTelemetry GenAI messages", "system", OTel(), sniff, keys=KEYS)
