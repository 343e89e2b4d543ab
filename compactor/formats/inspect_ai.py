"""Logs of Inspect AI, read as OpenAI chat messages: one row a sample. The log itself is never written.

What of a sample's messages differs from OpenAI's is put in their words: calls, images, reasoning, the error of a
result as Inspect sends it (`model/_chat_message.py`, `model/_openai.py`); the `view` of a call is left out.
Attachments stand where they are pointed at (`log/_condense.py`). Where a sample holds no messages, they are those of
its last model event, whose input may be ranges of a pool (`event/_pool.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compactor.errors import InputError
from compactor.formats import inspect_logs, sample
from compactor.formats.blocks import compact, leaves, string
from compactor.formats.messages import Message, MessageList, holds_rows
from compactor.formats.openai import OpenAI
from compactor.formats.pairs import Calls
from compactor.transcript import Note, Part, Source

_ATTACHMENTS = ("attachment://", "tc://")


class Inspect(OpenAI):
    """OpenAI's messages, with Inspect's mark of where each comes from.

    Once the model has answered, what stands in the user's role with no `source` (`input`, `operator`) is the solver's.
    """

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        told = super().parts(message, calls, before)
        if message.get("role") == "assistant":
            calls.first("answer")
        if message.get("role") != "user" or message.get("source") or not calls.met("answer"):
            return told
        return tuple(Part("text", "harness", part.text) if part.kind == "text" else part for part in told)


@dataclass
class InspectLog(MessageList):
    """A log, unpacked into rows; rows that were written from one are read as they are."""

    def read(self, raw: bytes, name: str) -> Source:
        first = sample.first_values(raw)
        if holds_rows(first, self):
            return super().read(raw, name)
        if not (inspect_logs.is_zip(raw) or inspect_logs.is_log(raw, first)):
            message = (
                f"{name}: no Inspect log, or one that was cut off or damaged; use a backup of it, or leave --format out"
            )
            raise InputError(message)
        found = inspect_logs.samples(raw, name)
        source = super().read(b"".join(compact(_row(one)).encode() + b"\n" for one in found), name)
        transcripts = tuple(
            replace(told, notes=(Note(line, f"damaged: {one.place}: {one.damage}"),)) if one.damage else told
            for line, (told, one) in enumerate(zip(source.transcripts, found, strict=True), 1)
        )
        return replace(source, original=raw, transcripts=transcripts)


def _row(one: inspect_logs.Sample) -> dict[str, Any]:
    value = one.value
    if one.damage:
        return {"sample": one.place, "messages": []}
    held = value.get("attachments")
    messages = _resolved(list(_messages(value)), held if isinstance(held, dict) else {})
    given = _resolved(value.get("input"), held if isinstance(held, dict) else {})
    asked = [told.get("content") for told in given if isinstance(told, dict)] if isinstance(given, list) else []
    told = [_openai(message, asked) for message in messages if isinstance(message, dict)]
    return {"id": value.get("id"), "epoch": value.get("epoch"), "messages": told}


def _messages(held_in: Mapping[str, Any]) -> Iterator[Any]:
    """The sample's messages, else what its last model event was sent and answered."""
    if isinstance(held := held_in.get("messages"), list) and held:
        yield from held
        return
    events = held_in.get("events")
    asked = [e for e in events if _is_model_event(e)] if isinstance(events, list) else []
    if asked:
        yield from _input(asked[-1], held_in)
        choices = output.get("choices") if isinstance(output := asked[-1].get("output"), dict) else None
        for choice in choices[:1] if isinstance(choices, list) else ():
            yield choice.get("message") if isinstance(choice, dict) else None


def _is_model_event(event: Any) -> bool:
    return isinstance(event, dict) and event.get("event") == "model"


def _input(event: Mapping[str, Any], held_in: Mapping[str, Any]) -> Iterator[Any]:
    kept = held_in.get("events_data")
    pool = kept.get("messages") if isinstance(kept, dict) else held_in.get("message_pool")
    refs, given = event.get("input_refs"), event.get("input")
    if isinstance(refs, list) and isinstance(pool, list):
        for ref in refs:
            if isinstance(ref, list) and len(ref) == 2 and all(isinstance(end, int) for end in ref):
                yield from pool[ref[0] : ref[1]]
    elif isinstance(given, list):
        yield from given


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    """A value with the texts that it points at in place of the pointers; one that leads nowhere stays."""
    if isinstance(value, str):
        hashed = next((value.removeprefix(mark) for mark in _ATTACHMENTS if value.startswith(mark)), "")
        return attachments.get(hashed, value)
    if isinstance(value, list):
        return [_resolved(inner, attachments) for inner in value]
    if isinstance(value, dict):
        return {key: _resolved(inner, attachments) for key, inner in value.items()}
    return value


def _openai(message: Mapping[str, Any], asked: list[Any]) -> dict[str, Any]:
    """A message in OpenAI's words; `asked` are the contents of the sample's input, which are the user's."""
    role, content = string(message.get("role")), message.get("content")
    told = {**message, "role": role, "content": content}
    if role == "user" and not message.get("source") and content in asked:
        told["source"] = "input"
    if isinstance(content, list):
        told["content"] = [_block(block) for block in content if not _is_reasoning(block)]
        if thought := [block.get("reasoning") or block.get("summary") for block in content if _is_reasoning(block)]:
            told["reasoning_content"] = leaves(thought)
    if isinstance(error := message.get("error"), dict) and role == "tool":
        told["content"] = f"Error: {string(error.get('message'))}"
    if isinstance(made := message.get("tool_calls"), list):
        told["tool_calls"] = [_call(call) for call in made if isinstance(call, dict)]
        told["content"] = told["content"] or None
    return told


def _is_reasoning(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "reasoning"


def _block(block: Any) -> Any:
    if not (isinstance(block, dict) and block.get("type") == "image"):
        return block
    return {"type": "image_url", "image_url": {"url": block.get("image"), "detail": block.get("detail", "auto")}}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in call.items() if key not in ("function", "arguments", "view")}
    made = {"name": string(call.get("function")), "arguments": compact(call.get("arguments") or {})}
    return {**kept, "type": "function", "function": made}


FORMAT = InspectLog(
    "inspect", "Inspect AI log (.eval, .json): read only, the result is OpenAI chat messages", "system", Inspect(),
    inspect_logs.is_log,
)  # fmt: skip
