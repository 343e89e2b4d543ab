"""Conversations of the OpenHands SDK (version 1), exported with one event a line.

`openhands-sdk/openhands/sdk/event` of OpenHands/software-agent-sdk. A `Condensation` takes out the events that it
names and puts its summary in, as a message of the user's.
"""

from collections.abc import Mapping
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.events import EventLog, Value, texts
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part


class OpenHandsSDK:
    """Events of a `kind`."""

    name = "openhands-sdk"
    title = "OpenHands SDK conversation (one event a line)"
    link = ""
    unverified = ""

    def is_ours(self, record: Any) -> bool:
        kind = string(record.get("kind")) if isinstance(record, dict) else ""
        return (kind.endswith(("Event", "Observation")) or kind.startswith("Condensation")) and "source" in record

    def is_header(self, value: Value) -> bool:
        return value.get("kind") == "SystemPromptEvent"

    def read(self, value: Value, calls: Calls) -> tuple[str, tuple[Part, ...]]:
        match value.get("kind"):
            case "SystemPromptEvent":
                return "system", tuple(Part("text", "system", text) for text in texts(value.get("system_prompt")))
            case "MessageEvent":
                return _message(value)
            case "ActionEvent":
                return "assistant", tuple(_action(value, calls))
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                return "tool", tuple(_observed(value, calls))
        return "", ()

    def summary(self, value: Value) -> str | None:
        return string(value.get("summary")) if value.get("kind") == "Condensation" else None

    def forgotten(self, value: Value) -> frozenset[str] | None:
        named = value.get("forgotten_event_ids")
        return frozenset(name for name in named if isinstance(name, str)) if isinstance(named, list) else frozenset()

    def marker(self, block: str, name: str, after: Value, fixed: int) -> dict[str, Any]:
        told = {"forgotten_event_ids": [], "summary": block, "summary_offset": fixed, "llm_response_id": name}
        time = string(after.get("timestamp"))
        return {"kind": "Condensation", "id": name, "timestamp": time, "source": "environment", **told}


def _message(value: Value) -> tuple[str, tuple[Part, ...]]:
    message = value.get("llm_message")
    told: Mapping[str, Any] = message if isinstance(message, dict) else {}
    role = string(told.get("role"))
    if role == "user" and value.get("source") == "user":
        return role, tuple(prompt(text) for text in texts(told.get("content")))
    speaker: Any = "assistant" if role == "assistant" else "harness"
    return role, tuple(Part("text", speaker, text) for text in texts(told.get("content")))


def _action(value: Value, calls: Calls) -> list[Part]:
    found = [Part("thinking", "assistant", text)] if (text := string(value.get("reasoning_content"))) else []
    found += [Part("text", "assistant", text) for text in texts(value.get("thought"))]
    call, action = value.get("tool_call"), value.get("action")
    given = arguments(call.get("arguments")) if isinstance(call, dict) else {}
    given = given or (dict(action) if isinstance(action, dict) else {})
    found.append(blocks.call(string(value.get("tool_call_id")), string(value.get("tool_name")), given, calls))
    return found


def _observed(value: Value, calls: Calls) -> list[Part]:
    seen = value.get("observation")
    content = seen.get("content") if isinstance(seen, dict) else None
    text = "\n".join(texts(content)) or string(value.get("error")) or string(value.get("rejection_reason"))
    failed = value.get("kind") != "ObservationEvent" or (isinstance(seen, dict) and seen.get("is_error") is True)
    block = {"tool_use_id": value.get("tool_call_id"), "content": text, "is_error": failed}
    return list(blocks.result(block, calls, blocks.ALONE))


FORMAT = EventLog(OpenHandsSDK())
