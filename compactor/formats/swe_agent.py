"""Trajectories of SWE-agent: one object, its `history` in messages like OpenAI's.

Results name their calls in `tool_call_ids`. The agent works alone: the first message in the user's role that is no
demonstration is the task, the others are what it saw, unless their `message_type` says that they are nothing of that.
What is replayed is `history`; `trajectory` repeats the prompt for every step and is left as it is
(SWE-agent/SWE-agent, `sweagent/agent/history_processors.py`).
"""

from typing import Any

from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList
from compactor.formats.openai import OpenAI
from compactor.formats.pairs import Calls
from compactor.transcript import Part

KEYS = (b"history",)


class SWEAgent(OpenAI):
    """OpenAI's messages, with the agent's own marks on them."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        named = message.get("tool_call_ids")
        if message.get("role") == "tool" and isinstance(named, list) and named:
            return super().parts({**message, "tool_call_id": named[0]}, calls, before)
        if message.get("role") == "user" and (
            message.get("is_demo") or (not calls.first("task") and _is_seen(message))
        ):
            told = super().parts(message, calls, before)
            return tuple(Part("text", "tool", part.text) if part.kind == "text" else part for part in told)
        return super().parts(message, calls, before)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        about = {"agent": like["agent"]} if "agent" in like else {}
        return {"role": role, "content": text, **about}


def _is_seen(message: Message) -> bool:
    """Whether a message in the user's role is what the agent saw: where it says nothing of itself it is."""
    return string(message.get("message_type")) in ("", "observation", "demonstration", "action", "thought")


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is such a trajectory."""
    held = [r["history"] for r in records if isinstance(r, dict) and isinstance(r.get("history"), list)]
    if not (len(held) == len(records) == 1 and held[0]):
        return False
    return all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in held[0])


FORMAT = MessageList("swe-agent", "SWE-agent trajectory (.traj)", "user", SWEAgent(), sniff, keys=KEYS)
