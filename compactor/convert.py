"""A live conversation of any format as a plain list of messages, as OpenAI or Anthropic take them.

What such a list can't hold (thoughts, media, what only a provider can read) is left out and counted.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from compactor.transcript import Entry, Part, Transcript

Dialect = Literal["openai", "anthropic"]
DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic")
Message = dict[str, Any]


@dataclass
class Converted:
    """The messages, and how many parts of each kind were left out."""

    messages: list[Message] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)


def convert(transcript: Transcript, dialect: Dialect) -> Converted:
    """The live conversation in that dialect; calls and results are paired by the ids that the reader gave them."""
    done = Converted()
    called = {p.call_id for i in transcript.live for p in transcript.entries[i].parts if p.kind == "call"}
    for role, parts in _turns([transcript.entries[index] for index in transcript.live]):
        kept = [part for part in parts if _stays(part, called, done.lost)]
        if kept:
            done.messages += _openai(role, kept) if dialect == "openai" else _anthropic(role, kept, done.messages)
    return done


def _turns(entries: Sequence[Entry]) -> Iterator[tuple[str, list[Part]]]:
    """Roles and their parts in order; what the assistant says in one go is one turn, and so are results together."""
    held: list[Part] = []
    role = ""
    for entry in entries:
        for part in entry.parts:
            mine = _role(entry, part)
            calls = mine == "assistant" and part.kind == "text" and any(p.kind == "call" for p in held)
            again = mine != role or calls
            if held and (again or mine in ("user", "system")):
                yield role, held
                held = []
            role = mine
            held.append(part)
    if held:
        yield role, held


def _role(entry: Entry, part: Part) -> str:
    if part.kind == "result":
        return "tool"
    if part.kind in ("call", "thinking") or part.speaker == "assistant":
        return "assistant"
    return "system" if entry.role in ("system", "developer") else "user"


def _stays(part: Part, called: set[str], lost: Counter[str]) -> bool:
    reason = ""
    if part.kind in ("thinking", "media", "opaque"):
        reason = {"thinking": "thoughts", "media": "media", "opaque": "parts without words of their own"}[part.kind]
    elif part.kind == "result" and part.call_id not in called:
        reason = "results without a call"
    lost[reason] += bool(reason)
    return not reason and (part.kind != "text" or bool(part.text))


def _openai(role: str, parts: Sequence[Part]) -> list[Message]:
    if role == "tool":
        return [{"role": "tool", "tool_call_id": part.call_id, "content": part.text} for part in parts]
    text = "\n".join(part.text for part in parts if part.kind == "text")
    message: Message = {"role": role, "content": text}
    if made := [part for part in parts if part.kind == "call"]:
        message["content"] = text or None
        message["tool_calls"] = [
            {"id": part.call_id, "type": "function",
             "function": {"name": part.name, "arguments": json.dumps(_given(part), ensure_ascii=False)}}
            for part in made
        ]  # fmt: skip
    return [message]


def _anthropic(role: str, parts: Sequence[Part], before: list[Message]) -> list[Message]:
    """A message of blocks; what the user's role holds goes together, results first, as the API wants it."""
    blocks = [_block(part) for part in parts]
    if role != "assistant" and before and before[-1]["role"] == "user" and role != "system":
        before[-1]["content"] += blocks
        return []
    return [{"role": {"assistant": "assistant", "system": "system"}.get(role, "user"), "content": blocks}]


def _block(part: Part) -> Message:
    if part.kind == "call":
        return {"type": "tool_use", "id": _id(part.call_id), "name": part.name, "input": _given(part)}
    if part.kind == "result":
        failed = {"is_error": True} if part.failed else {}
        return {"type": "tool_result", "tool_use_id": _id(part.call_id), "content": part.text, **failed}
    return {"type": "text", "text": part.text}


def _given(part: Part) -> dict[str, Any]:
    """A call's arguments; raw input that is no object stands under `input`."""
    return dict(part.input) or ({"input": part.text} if part.text.strip() not in ("", "{}", "null") else {})


def _id(call_id: str) -> str:
    """An id that Anthropic's API takes."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id)
