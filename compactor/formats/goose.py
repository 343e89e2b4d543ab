"""Sessions of Goose, exported as JSON or JSONL.

`crates/goose/src/conversation/message.rs` of block/goose: messages with typed content, and whether user and agent see
them. A message that the agent doesn't see isn't sent. How a session is taken back in was never tried.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain, is_row
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part

KEYS = (b"messages", b"conversation")
_OWN = frozenset(("toolRequest", "toolResponse", "systemNotification", "frontendToolRequest", "redactedThinking"))


class Goose(Plain):
    """Messages of typed content, with marks of who sees them."""

    def role(self, message: Message) -> str:
        about = message.get("metadata")
        hidden = isinstance(about, dict) and about.get("agentVisible") is False
        return "" if hidden or "content" not in message else string(message.get("role"))

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        content = message.get("content")
        pieces = content if isinstance(content, list) else [{"type": "text", "text": content}]
        role = string(message.get("role"))
        return tuple(part for piece in pieces if isinstance(piece, dict) for part in _parts(piece, role, calls))

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        created, seen = after.get("created"), {"userVisible": True, "agentVisible": True}
        said = {"role": role, "created": created if isinstance(created, int) else 0}
        return {**said, "content": [{"type": "text", "text": text}], "metadata": seen}


def _parts(piece: Mapping[str, Any], role: str, calls: Calls) -> Iterator[Part]:
    kind, text = piece.get("type"), string(piece.get("text"))
    if kind == "text" and text:
        yield prompt(text) if role == "user" else Part("text", blocks.speaker(role), text)
    elif kind in ("toolRequest", "frontendToolRequest"):
        call = _value(piece.get("toolCall"))
        told: Mapping[str, Any] = call if isinstance(call, dict) else {}
        yield blocks.call(string(piece.get("id")), string(told.get("name")), told.get("arguments"), calls)
    elif kind == "toolResponse":
        result = piece.get("toolResult")
        failed = isinstance(result, dict) and (result.get("status") == "error" or "error" in result)
        told_back = _value(result)
        content = told_back.get("content") if isinstance(told_back, dict) else told_back
        failed = failed or (isinstance(told_back, dict) and told_back.get("isError") is True)
        block = {"tool_use_id": piece.get("id"), "content": content if content is not None else blocks.leaves(result),
                 "is_error": failed}  # fmt: skip
        yield from blocks.result(block, calls, blocks.ALONE)
    elif kind == "thinking":
        yield Part("thinking", "assistant", string(piece.get("thinking")))
    elif kind == "image":
        yield Part("media", "human" if role == "user" else "assistant", name=f"image, {string(piece.get('mimeType'))}")
    elif kind != "systemNotification":
        yield Part("opaque", "assistant" if role == "assistant" else "harness", blocks.leaves(text))


def _value(wrapped: Any) -> Any:
    """What Goose wraps in a status."""
    return wrapped.get("value") if isinstance(wrapped, dict) and "value" in wrapped else wrapped


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values, or the lists they hold, are such messages."""
    held = [message for record in records for message in _messages(record)]
    return any(isinstance(m, dict) and isinstance(m.get("role"), str) and _is_own(m) for m in held)


def _messages(record: Any) -> list[Any]:
    if is_row(record, KEYS):
        return next(held for key in KEYS if isinstance(held := record.get(key.decode()), list))
    return [record]


def _is_own(message: Message) -> bool:
    about, content = message.get("metadata"), message.get("content")
    kinds = [string(p.get("type")) for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    return (isinstance(about, dict) and "agentVisible" in about) or any(kind in _OWN for kind in kinds)


FORMAT = MessageList("goose", "Goose session (JSON or JSONL)", "user", Goose(), sniff, keys=KEYS)
