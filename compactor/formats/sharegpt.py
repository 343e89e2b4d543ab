"""Conversations as ShareGPT and LLaMA-Factory keep them: `conversations` of `from` and `value`.

Calls have no ids: a `function_call` is answered by the `observation` that follows (LLaMA-Factory, `data/README.md`).
"""

from typing import Any

from compactor.formats.blocks import compact, string
from compactor.formats.messages import Message, MessageList, Plain, is_row
from compactor.formats.openai import arguments
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part

KEYS = (b"conversations",)
ROLES = {
    "human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "bot": "assistant",
    "model": "assistant", "chatgpt": "assistant", "bard": "assistant", "system": "system",
    "function_call": "assistant", "observation": "tool", "tool": "tool", "function_response": "tool",
}  # fmt: skip
_NAMES = {"user": "human", "assistant": "gpt", "system": "system"}


class ShareGPT(Plain):
    """Turns of `from` and `value`."""

    def role(self, message: Message) -> str:
        return ROLES.get(string(message.get("from")).lower(), "") if "value" in message else ""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        text, who = string(message.get("value")), string(message.get("from")).lower()
        role = self.role(message)
        if who == "function_call":
            made = arguments(text)
            given, name = arguments(made.get("arguments")), string(made.get("name"))
            told = compact(made.get("arguments")) if "arguments" in made else text
            return (Part("call", "assistant", told, (), calls.add("", name, given), name, given),)
        if role == "tool":
            call_id = calls.answer("")
            return (Part("result", "tool", text, (), call_id, calls.of(call_id)[0]),)
        if role == "user":
            return (prompt(text),)
        return (Part("text", "assistant" if role == "assistant" else "system", text),)

    def without(self, message: Message, orphans: frozenset[str]) -> Message | None:
        return message  # no API refuses it

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        return {"from": _NAMES.get(role, role), "value": text}


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values are rows of such turns, or such turns themselves."""
    rows = [record for record in records if is_row(record, KEYS)]
    turns = [turn for row in rows for turn in row["conversations"]] or records
    return bool(turns) and all(isinstance(t, dict) and {"from", "value"} <= set(t) for t in turns)


FORMAT = MessageList("sharegpt", "ShareGPT or LLaMA-Factory rows", "user", ShareGPT(), sniff, keys=KEYS)
