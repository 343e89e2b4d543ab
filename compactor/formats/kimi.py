"""Sessions of Kimi Code CLI: `wire.jsonl`.

Messages are appended by `context.append_message`, the agent's steps by `context.append_loop_event`; a
`context.apply_compaction` takes the place of what stood before it. Seen in files only; how the client replays them
isn't public.
"""

from collections.abc import Mapping
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.events import EventLog, Value, texts
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part

_TYPES = ("context.", "turn.", "config.", "tools.", "llm.", "usage.", "permission.", "plan_mode.", "full_compaction.")


class Kimi:
    """Events of a type with a dot, their fields beside it."""

    name = "kimi"
    title = "Kimi Code CLI session (wire.jsonl)"
    link = ""
    unverified = "how Kimi Code CLI replays its log was seen in files only, never tried"

    def is_ours(self, record: Any) -> bool:
        if not isinstance(record, dict) or "data" in record:
            return False
        kind = string(record.get("type"))
        return kind.startswith(_TYPES) or (kind == "metadata" and "protocol_version" in record)

    def is_header(self, value: Value) -> bool:
        return value.get("type") in ("metadata", "config.update", "tools.set_active_tools")

    def read(self, value: Value, calls: Calls) -> tuple[str, tuple[Part, ...]]:
        message, event = value.get("message"), value.get("event")
        if value.get("type") == "context.append_message" and isinstance(message, dict):
            return _message(message)
        if value.get("type") == "context.append_loop_event" and isinstance(event, dict):
            return _event(event, calls)
        if value.get("type") == "config.update" and (told := string(value.get("systemPrompt"))):
            return "system", (Part("text", "system", told),)
        return "", ()

    def summary(self, value: Value) -> str | None:
        if value.get("type") != "context.apply_compaction":
            return None
        return string(value.get("contextSummary")) or string(value.get("summary"))

    def forgotten(self, value: Value) -> frozenset[str] | None:
        return None

    def marker(self, block: str, name: str, after: Value, fixed: int) -> dict[str, Any]:
        told = {"summary": block, "contextSummary": block}
        return {"type": "context.apply_compaction", **told, "time": after.get("time")}


def _message(message: Mapping[str, Any]) -> tuple[str, tuple[Part, ...]]:
    """A message; only what the record says to come from the user is the user's."""
    role, origin = string(message.get("role")), message.get("origin")
    theirs = role == "user" and (not isinstance(origin, dict) or origin.get("kind") == "user")
    told = tuple(texts(message.get("content")))
    if theirs:
        return role, tuple(map(prompt, told))
    speaker: Any = "assistant" if role == "assistant" else "system" if role == "system" else "harness"
    return role, tuple(Part("text", speaker, text) for text in told)


def _event(event: Mapping[str, Any], calls: Calls) -> tuple[str, tuple[Part, ...]]:
    part, kind = event.get("part"), event.get("type")
    if kind == "content.part" and isinstance(part, dict):
        if thought := string(part.get("think")):
            return "assistant", (Part("thinking", "assistant", thought),)
        return "assistant", (Part("text", "assistant", string(part.get("text"))),)
    if kind == "tool.call":
        call_id, name = string(event.get("toolCallId")), string(event.get("name"))
        return "assistant", (blocks.call(call_id, name, event.get("args"), calls),)
    if kind == "tool.result":
        result = event.get("result")
        told: Mapping[str, Any] = result if isinstance(result, dict) else {}
        output = told.get("output")
        text = output if isinstance(output, str) else "\n".join(texts(output))
        failed = bool(told.get("isError") or told.get("is_error"))
        block = {"tool_use_id": event.get("toolCallId"), "content": text, "is_error": failed}
        return "tool", tuple(blocks.result(block, calls, blocks.ALONE))
    return "", ()


FORMAT = EventLog(Kimi())
