"""Sessions of GitHub Copilot CLI: `events.jsonl`.

Events as the SDK's types have them (github/copilot-sdk, `nodejs/src/generated/session-events.ts`). Which events the
client replays behind a `session.compaction_complete` isn't public.
"""

from collections.abc import Mapping
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.events import EventLog, Value
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part


class Copilot:
    """Events of a type with a dot, and their data."""

    name = "copilot"
    title = "GitHub Copilot CLI session (events.jsonl)"
    link = "parentId"
    unverified = "Copilot CLI isn't public: what it replays behind a compaction was never tried"

    def is_ours(self, record: Any) -> bool:
        return (
            isinstance(record, dict)
            and isinstance(record.get("data"), dict)
            and "id" in record
            and ("." in string(record.get("type")) or record.get("type") == "abort")
        )

    def is_header(self, value: Value) -> bool:
        return value.get("type") in ("session.start", "system.message")

    def read(self, value: Value, calls: Calls) -> tuple[str, tuple[Part, ...]]:
        data = value.get("data")
        told: Mapping[str, Any] = data if isinstance(data, dict) else {}
        match value.get("type"):
            case "system.message":
                return "system", (Part("text", "system", string(told.get("content"))),)
            case "user.message":
                return "user", (_user(told),)
            case "assistant.message":
                return "assistant", tuple(_assistant(told, calls))
            case "tool.execution_complete":
                return "tool", tuple(_result(told, calls))
        return "", ()

    def summary(self, value: Value) -> str | None:
        data = value.get("data")
        if value.get("type") != "session.compaction_complete" or not isinstance(data, dict):
            return None
        return None if data.get("success") is False else string(data.get("summaryContent"))

    def forgotten(self, value: Value) -> frozenset[str] | None:
        return None

    def marker(self, block: str, name: str, after: Value, fixed: int) -> dict[str, Any]:
        return {"type": "session.compaction_complete", "data": {"success": True, "summaryContent": block},
                "id": name, "timestamp": string(after.get("timestamp")), "parentId": None}  # fmt: skip


def _user(told: Mapping[str, Any]) -> Part:
    """What the user typed is speech; what the client made of it for the model may hold more."""
    typed, sent = string(told.get("content")), string(told.get("transformedContent"))
    part = prompt(typed)
    return Part("text", part.speaker, sent, part.said) if sent and typed in sent else part


def _assistant(told: Mapping[str, Any], calls: Calls) -> list[Part]:
    found = [Part("thinking", "assistant", text)] if (text := string(told.get("reasoningText"))) else []
    found += [Part("text", "assistant", text)] if (text := string(told.get("content"))) else []
    made = told.get("toolRequests")
    for call in made if isinstance(made, list) else ():
        if isinstance(call, dict):
            given = arguments(call.get("arguments"))
            found.append(blocks.call(string(call.get("toolCallId")), string(call.get("name")), given, calls))
    return found


def _result(told: Mapping[str, Any], calls: Calls) -> list[Part]:
    result, error = told.get("result"), told.get("error")
    failed = told.get("success") is False
    shown = error if failed and isinstance(error, dict) else result
    text = string(shown.get("content", shown.get("message"))) if isinstance(shown, dict) else blocks.leaves(shown)
    block = {"tool_use_id": told.get("toolCallId"), "content": text, "is_error": failed}
    return list(blocks.result(block, calls, blocks.ALONE))


FORMAT = EventLog(Copilot())
