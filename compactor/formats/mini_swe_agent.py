"""Trajectories of mini-swe-agent: an object with `trajectory_format`, or the bare array of its first version.

The agent works alone unless a message says that its user broke in (`extra.interrupt_type`): the first message in the
user's role is the task, the others are what a command gave or what the harness says of a form. In text mode the
command is the one fenced block of the assistant's message, or `extra.actions`; `exit` ends the run and is never sent
(SWE-agent/mini-swe-agent, `agents/default.py`, `agents/interactive.py`, `models/utils/actions_text.py`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.formats import blocks, dialects
from compactor.formats.blocks import string
from compactor.formats.messages import ROW_KEYS, Message, MessageList
from compactor.formats.openai import OpenAI
from compactor.formats.pairs import Calls
from compactor.transcript import Part, speech

_WRAPPER = re.compile(r"Interrupted by user: |The user added a new task: |[^\n]{0,80}with the following message:\s*")
_CODE = re.compile(r"\s*<returncode>(-?\d+)</returncode>")


class Mini(OpenAI):
    """OpenAI's messages, with commands in the text and what they gave in the user's role."""

    def role(self, message: Message) -> str:
        role = string(message.get("role"))
        return "" if role == "exit" else role

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        told = super().parts(message, calls, before)
        if message.get("role") == "assistant":
            return (*told, *_commands(message, told, calls))
        code = _exit_code(message, told)
        if message.get("role") == "user" and calls.met("task"):
            return tuple(_seen(part, message, code, calls) for part in told)
        if message.get("role") == "user":
            calls.first("task")
        if code is None:
            return told
        return tuple(replace(part, exit_code=code) if part.kind == "result" else part for part in told)


def _commands(message: Message, told: tuple[Part, ...], calls: Calls) -> Iterator[Part]:
    """The commands in the text of a message that makes no calls."""
    if any(part.kind == "call" for part in told):
        return
    listed = _extra(message).get("actions")
    found = [string(one.get("command")) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    for command in found or dialects.fenced("".join(part.text for part in told if part.kind == "text")):
        yield blocks.call("", "bash", {"command": command}, calls)


def _seen(part: Part, message: Message, code: int | None, calls: Calls) -> Part:
    """A text in the user's role behind the task."""
    if part.kind != "text":
        return part
    kind = string(_extra(message).get("interrupt_type"))
    if kind.startswith("User"):
        wrapper = _WRAPPER.match(part.text)
        return Part("text", "human", part.text, speech(part.text[wrapper.end() :] if wrapper else part.text))
    if kind:
        return Part("text", "harness", part.text)
    call_id = calls.answer("", "bash")
    if not call_id:
        return Part("text", "tool", part.text)
    return Part("result", "tool", part.text, (), call_id, "bash", {}, bool(code), code)


def _exit_code(message: Message, told: tuple[Part, ...]) -> int | None:
    code = _extra(message).get("returncode")
    match = _CODE.match(told[0].text) if told else None
    return code if isinstance(code, int) else int(match[1]) if match else None


def _extra(message: Message) -> Mapping[str, Any]:
    extra = message.get("extra")
    return extra if isinstance(extra, dict) else {}


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether the value is such an object, or the values such messages."""
    return dialects.is_mini(records)


FORMAT = MessageList("mini-swe-agent", "mini-swe-agent trajectory", "user", Mini(), sniff, keys=ROW_KEYS)
