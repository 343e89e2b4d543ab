"""Histories of Roo Code that it has condensed or truncated: `api_conversation_history.json`.

Anthropic's messages; what was condensed or truncated stays in the file with a mark. What is sent is what follows the
last `isSummary`, itself included, without messages whose `truncationParent` has its marker there; with no summary,
all but those whose parent (`condenseParent`, `truncationParent`) still exists (RooCodeInc/Roo-Code,
`src/core/condense/index.ts`, `getEffectiveApiHistory`). A history without any mark is an `anthropic` list.
"""

import uuid
from collections.abc import Mapping
from typing import Any

from compactor.formats import condensed, dialects
from compactor.formats.anthropic import Anthropic
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList
from compactor.formats.pairs import Calls
from compactor.transcript import Part, Source

UNVERIFIED = (
    "how Roo Code goes on from its history was read in its source, never tried; its ui_messages.json is as it was"
)


class Roo(Anthropic):
    """Anthropic's messages with Roo's marks."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        told = super().parts(message, calls, before)
        if message.get("isTruncationMarker") is not True:
            return told
        return tuple(Part("text", "harness", part.text) if part.kind == "text" else part for part in told)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        message = {"role": role, "content": [{"type": "text", "text": text}], "ts": after.get("ts")}
        if role == "user":
            message |= {"isSummary": True, "condenseId": str(uuid.uuid5(uuid.NAMESPACE_OID, text))}
        return {key: value for key, value in message.items() if value is not None}


_MARKS = tuple(f'"{mark}"'.encode() for mark in sorted(dialects.ROO_MARKS))


class RooHistory(MessageList):
    """A list in which the client hides what it has condensed."""

    def read(self, raw: bytes, name: str) -> Source:
        return condensed.seen(super().read(raw, name), _is_marked, _view, UNVERIFIED)


def _is_marked(raw: bytes) -> bool:
    return any(mark in raw for mark in _MARKS)


def _view(marked: Mapping[int, Message], count: int) -> tuple[frozenset[int], int]:
    """Which messages aren't sent, and which one is the summary (-1 for none)."""
    summary = max((index for index, one in marked.items() if one.get("isSummary") is True), default=-1)
    sent = {index: one for index, one in marked.items() if index >= summary}
    parents = {string(one.get("truncationId")) for one in sent.values() if one.get("isTruncationMarker") is True} - {""}
    hidden = {index for index, one in sent.items() if one.get("truncationParent") in parents}
    return frozenset(hidden | set(range(max(summary, 0)))), summary


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the values are messages, some with Roo's marks."""
    messages = [record for record in records if isinstance(record, dict)]
    held = bool(messages) and all(isinstance(one.get("role"), str) and "content" in one for one in messages)
    return held and any(map(dialects.is_roo, messages))


FORMAT = RooHistory("roo", "Roo Code history with condense marks (JSON array)", "user", Roo(), sniff)
