"""Sessions of Cline's SDK: `<id>.messages.json`, and `<id>.compaction.json` beside it.

Messages in blocks like Anthropic's, with `file` blocks for what the user attached, under `messages` of one object.
Cline never shortens the first file: what it sends since a compaction stands in the second, in messages of the same
kind; a summary in it has `metadata.kind` `compaction_summary`, or blocks in `<SYSTEM_NOTICE>` tell what was left out
(cline/cline, `sdk/packages/core/src/session/models/session-compaction.ts`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from compactor.formats import cline_voice, condensed, dialects, lines
from compactor.formats.anthropic import Anthropic
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList
from compactor.formats.pairs import Calls
from compactor.transcript import Part, Source

UNVERIFIED = "how Cline goes on from a session that was shortened was never tried"
_NOTICE = "<SYSTEM_NOTICE>"
_SUMMARY = "compaction_summary"


class Cline(Anthropic):
    """Anthropic's messages with what Cline adds."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        content = cline_voice.joined(message.get("content"))
        if not isinstance(content, list):
            return super().parts(message, calls, before)
        return tuple(part for block in content for part in self._parts(message, block, calls, before))

    def _parts(self, message: Message, block: Any, calls: Calls, before: str) -> Iterator[Part]:
        kind = block.get("type") if isinstance(block, dict) else ""
        if kind == "file" and isinstance(block.get("content"), str):
            yield Part("text", "harness", f"{string(block.get('path'))}\n{block['content']}")
            return
        noticed = kind == "text" and string(block.get("text")).startswith(_NOTICE)
        for part in super().parts({**message, "content": [block]}, calls, before):
            if noticed:
                part = replace(part, speaker="summary", said=())
            yield replace(part, failed=True) if part.kind == "result" and _failed(block.get("content")) else part

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        told = {"id": f"msg_{uuid5(NAMESPACE_OID, text).hex[:12]}", "role": role}
        at = {"ts": after["ts"]} if "ts" in after else {}
        return {**told, "content": [{"type": "text", "text": text}], **at}


class ClineSession(MessageList):
    """A list that begins with Cline's own summary where it is the second file."""

    def read(self, raw: bytes, name: str) -> Source:
        return condensed.seen(super().read(raw, name), _is_summary, _view, UNVERIFIED)


def _kind(message: Message) -> str:
    about = message.get("metadata")
    return string(about.get("kind")) if isinstance(about, dict) else ""


def _failed(content: Any) -> bool:
    """Whether all that a tool did failed: it tells of each, in JSON or as text of JSON."""
    if isinstance(content, str):
        told: Any = [lines.loads(content.encode("utf-8", "replace"))] if content.lstrip().startswith("{") else []
    else:
        told = content
    done = [one["success"] for one in told if isinstance(one, dict) and "success" in one] if told else []
    return bool(done) and not any(done)


def _is_summary(raw: bytes) -> bool:
    return b'"' + _SUMMARY.encode() + b'"' in raw


def _view(marked: Mapping[int, Message], count: int) -> tuple[frozenset[int], int]:
    """A summary stands in front; what it replaces isn't in the file."""
    summary = max((index for index, one in marked.items() if _kind(one) == _SUMMARY), default=-1)
    return frozenset(range(max(summary, 0))), summary


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is such a session."""
    return len(records) == 1 and dialects.is_cline(records[0])


FORMAT = ClineSession("cline", "Cline SDK session (messages.json, compaction.json)", "user", Cline(), sniff)
