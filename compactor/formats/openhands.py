"""Histories of OpenHands: the events of version 0, as an array, under `history`, or one a line.

An event has an integer `id`, a `source`, and an `action` with `args` or an `observation` with `content`; `cause` names
the action that an observation answers (All-Hands-AI/OpenHands, `openhands/events/serialization`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part

KEYS = (b"history",)
_SILENT = frozenset(
    ("null", "agent_state_changed", "change_agent_state", "system", "recall", "condensation", "condensation_request")
)
_ANSWERS = {"browse": ("browse_interactive",), "mcp": ("call_tool_mcp",)}
"""Kinds of observations that answer actions of other names."""


class OpenHands(Plain):
    """Actions and observations."""

    def role(self, message: Message) -> str:
        if not _is_event(message) or _kind(message) in _SILENT:
            return "system" if message.get("action") == "system" else ""
        if message.get("observation"):
            return "tool"
        return "user" if message.get("source") == "user" else "assistant"

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        return tuple(self._parts(message, calls))

    def _parts(self, message: Message, calls: Calls) -> Iterator[Part]:
        kind, told = _kind(message), message.get("args")
        given: Mapping[str, Any] = told if isinstance(told, dict) else {}
        if message.get("observation"):
            yield from _observed(message, calls)
        elif kind == "system":
            yield Part("text", "system", string(given.get("content")))
        elif kind == "message":
            text = string(given.get("content")) or string(message.get("message"))
            yield prompt(text) if message.get("source") == "user" else Part("text", "assistant", text)
        elif kind == "think":
            yield Part("thinking", "assistant", string(given.get("thought")))
        elif kind == "finish":
            yield Part("text", "assistant", blocks.leaves([given.get("final_thought"), given.get("thought")]))
        else:
            if thought := string(given.get("thought")):
                yield Part("text", "assistant", thought)
            arguments = {k: v for k, v in given.items() if k not in ("thought", "hidden", "confirmation_state")}
            made = blocks.call(_call_id(message.get("id")), kind, arguments, calls)
            if named := _named(message):
                calls.also(named, made.call_id)
            yield made

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        about = {"id": after.get("id", 0), "timestamp": string(after.get("timestamp"))}
        source = "user" if role == "user" else "agent"
        return {**about, "source": source, "message": text, "action": "message", "args": {"content": text}}

    def placed(self, message: dict[str, Any], place: int) -> str:
        """Ids are kept, since causes name them; a new event gets the place of what it replaces."""
        return ""


def _is_event(message: Message) -> bool:
    source = message.get("source")
    return ("action" in message or "observation" in message) and (isinstance(source, str) or "id" not in message)


def _kind(message: Message) -> str:
    return string(message.get("observation")) or string(message.get("action"))


def _call_id(number: Any) -> str:
    return f"event {number}" if isinstance(number, int) else ""


def _named(message: Message) -> str:
    """The provider's own id of the call that an event belongs to."""
    about = message.get("tool_call_metadata")
    return string(about.get("tool_call_id")) if isinstance(about, dict) else ""


def _answered(message: Message, calls: Calls) -> str:
    """The action that an observation answers: what it names, or, where it names none, the nearest of its kind."""
    cause, named = _call_id(message.get("cause")), _named(message)
    if cause in calls:
        return cause
    if cause or named:
        return calls.by(named)
    kind = _kind(message)
    return calls.nearest(() if kind in ("error", "user_rejected") else (kind, *_ANSWERS.get(kind, ())))


def _observed(message: Message, calls: Calls) -> Iterator[Part]:
    """What the tool gave; a command's exit code tells whether it failed."""
    call_id = _answered(message, calls)
    extras = message.get("extras")
    about = extras.get("metadata") if isinstance(extras, dict) else None
    code = (
        about.get("exit_code")
        if isinstance(about, dict)
        else extras.get("exit_code")
        if isinstance(extras, dict)
        else None
    )
    failed = message.get("observation") in ("error", "user_rejected") or (isinstance(code, int) and code > 0)
    text = string(message.get("content"))
    if not call_id:
        yield Part("text", "tool", text)
        return
    block = {"tool_use_id": call_id, "content": text, "is_error": failed}
    for part in blocks.result(block, calls, blocks.ALONE):
        yield Part(part.kind, part.speaker, part.text, part.said, part.call_id, part.name, {}, part.failed,
                   code if isinstance(code, int) and code >= 0 else None)  # fmt: skip


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values, or the lists under `history`, are such events."""
    held = [event for record in records for event in _events(record)]
    known = [event for event in held if isinstance(event, dict) and _is_event(event)]
    return bool(known) and 2 * len(known) > len(held) and all("kind" not in event for event in known)


def _events(record: Any) -> list[Any]:
    history = record.get("history") if isinstance(record, dict) else None
    if not isinstance(history, list):
        return [record]
    return [event for item in history for event in (item if isinstance(item, list) else [item])]


FORMAT = MessageList("openhands", "OpenHands history (version 0)", "user", OpenHands(), sniff, keys=KEYS)
