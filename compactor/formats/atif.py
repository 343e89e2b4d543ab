"""Trajectories of Harbor and Terminal-Bench: ATIF.

`docs/rfcs/0001-trajectory-format.md` and `src/harbor/models/trajectories` of laude-institute/harbor: steps with their
calls and observations in one, numbered from 1 without a gap.
"""

from collections.abc import Iterator
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part

KEYS = (b"steps",)
ROLES = {"system": "system", "user": "user", "agent": "assistant"}
SOURCES = {"system": "system", "user": "user", "assistant": "agent"}


_HANDOFF = ("You are picking up work from a previous AI agent", "Here are the answers the other agent provided.")
"""How the harness begins a continuation, and what it hands over after a summary of its own."""


class ATIF(Plain):
    """Steps of a trajectory."""

    def role(self, message: Message) -> str:
        return ROLES.get(string(message.get("source")), "") if "step_id" in message else ""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        return tuple(self._parts(message, calls))

    def _parts(self, message: Message, calls: Calls) -> Iterator[Part]:
        role, text = self.role(message), _text(message.get("message"))
        if thought := string(message.get("reasoning_content")):
            yield Part("thinking", "assistant", thought)
        if text and role == "user":
            copied = message.get("is_copied_context") is True or text.startswith(_HANDOFF)
            yield Part("text", "harness", text) if copied else prompt(text)
        elif text:
            yield Part("text", blocks.speaker(role), text)
        made = message.get("tool_calls")
        for call in made if isinstance(made, list) else ():
            if isinstance(call, dict):
                yield blocks.call(
                    string(call.get("tool_call_id")), string(call.get("function_name")), call.get("arguments"), calls
                )
        seen = message.get("observation")
        results = seen.get("results") if isinstance(seen, dict) else None
        told = [result for result in results if isinstance(result, dict)] if isinstance(results, list) else []
        named = [call.get("tool_call_id") for call in made if isinstance(call, dict)] if isinstance(made, list) else []
        if any(result.get("source_call_id") for result in told):
            named = []  # one that names no call is of none
        for place, result in enumerate(told):
            answers = result.get("source_call_id")
            if isinstance(result, dict) and (answers := answers or (named[place] if place < len(named) else "")):
                block = {"tool_use_id": answers, "content": result.get("content") or ""}
                yield from blocks.result(block, calls, blocks.ALONE)
            elif isinstance(result, dict):
                yield Part("text", "tool", _text(result.get("content")))

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        return {"step_id": 0, "source": SOURCES.get(role, "user"), "message": text}

    def placed(self, message: dict[str, Any], place: int) -> str:
        if "step_id" not in message:
            return ""
        message["step_id"] = place + 1
        return "step_id: numbered anew"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else blocks.result_text(content) if content is not None else ""


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is such a trajectory."""
    return bool(records) and all(
        isinstance(r, dict)
        and string(r.get("schema_version")).startswith("ATIF-v")
        and isinstance(r.get("steps"), list)
        for r in records
    )


FORMAT = MessageList("atif", "Harbor trajectory (ATIF)", "user", ATIF(), sniff, keys=KEYS, numbered=True)
