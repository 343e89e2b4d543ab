"""Messages of the Vercel AI SDK: UIMessage, with calls and results in one part, and ModelMessage.

`packages/ai/src/ui/ui-messages.ts` of vercel/ai, and the prompt parts of `@ai-sdk/provider-utils` (4.0): there an
approval is asked for beside the call, answered in a message of its own, and a denial comes again as the call's result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.formats import blocks
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import prompt
from compactor.transcript import Part, speech

_OTHERS = ("tool_call", "tool_call_response", "blob", "file_data", "uri")
"""Kinds of parts that OpenTelemetry's messages have."""
_ENDED = ("output-available", "output-error")
_DENIED = "Tool call execution denied."
"""What the SDK sends the model of a call that was denied for no reason told."""
_OWN_PARTS = ("step-start", "source-url", "source-document", "dynamic-tool")
_OWN_CONTENT = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response")


class Vercel(Plain):
    """Messages of `parts`, or of content parts."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        held = message.get("parts", message.get("content"))
        role = self.role(message)
        found = [{"type": "text", "text": held}] if isinstance(held, str) else held if isinstance(held, list) else []
        return tuple(part for piece in found if isinstance(piece, dict) for part in _parts(piece, role, calls))

    def leads(self, message: Message) -> bool:
        """Whether it asks for leave to run a call: without that the SDK refuses the answer."""
        return "tool-approval-request" in _kinds(message)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        if "parts" not in like:
            return {"role": role, "content": text if role == "system" else [{"type": "text", "text": text}]}
        name = f"compact-{role}"
        return {"id": name, "role": role, "parts": [{"type": "text", "text": text}]}


def _parts(piece: Mapping[str, Any], role: str, calls: Calls) -> Iterator[Part]:
    kind = string(piece.get("type"))
    if kind == "text":
        text = string(piece.get("text"))
        yield prompt(text) if role == "user" else Part("text", blocks.speaker(role), text)
    elif kind == "reasoning":
        yield Part("thinking", "assistant", string(piece.get("text")))
    elif kind == "tool-call":
        yield blocks.call(
            string(piece.get("toolCallId")), string(piece.get("toolName")), piece.get("input", piece.get("args")), calls
        )
    elif kind == "tool-result":
        yield from _told(piece, piece.get("output", piece.get("result")), calls)
    elif kind == "tool-approval-request":
        calls.also(string(piece.get("approvalId")), string(piece.get("toolCallId")))
        yield Part("opaque", "assistant")
    elif kind == "tool-approval-response":
        yield _decided(piece, calls)
    elif kind.startswith("tool-") or kind == "dynamic-tool":
        name = string(piece.get("toolName")) or kind.removeprefix("tool-")
        yield blocks.call(string(piece.get("toolCallId")), name, piece.get("input"), calls)
        yield from _ended(piece, calls)
    elif kind in ("file", "image"):
        yield Part(
            "media", "human" if role == "user" else "assistant", name=f"{kind}, {string(piece.get('mediaType'))}"
        )
    elif kind not in ("step-start",):
        yield Part("opaque", "assistant" if role == "assistant" else "harness", blocks.leaves(piece))


def _told(piece: Mapping[str, Any], output: Any, calls: Calls) -> Iterator[Part]:
    """A result in a message of its own, with what the user decided on its call."""
    if isinstance(output, dict) and output.get("type") == "execution-denied":
        reason = string(output.get("reason"))
        users = calls.met(f"denied {string(piece.get('toolCallId'))}")
        for part in _result(piece, reason or _DENIED, calls, failed=True):
            yield replace(part, said=speech(reason), verdict="refused") if users else part
        return
    approved = calls.met(f"approved {string(piece.get('toolCallId'))}")
    for part in _result(piece, output, calls):
        yield replace(part, verdict="approved") if approved and part.kind == "result" else part


def _decided(piece: Mapping[str, Any], calls: Calls) -> Part:
    """What the user decided on a call. A denial's reason is heard in the result that the SDK makes of it."""
    approved, reason = piece.get("approved") is True, string(piece.get("reason"))
    calls.first(f"{'approved' if approved else 'denied'} {calls.by(string(piece.get('approvalId')))}")
    return Part("text", "harness", reason or ("approved" if approved else "denied"), speech(reason) if approved else ())


def _ended(piece: Mapping[str, Any], calls: Calls) -> Iterator[Part]:
    """What became of a call, and what the user decided on it; a policy's verdict (`isAutomatic`) isn't the user's."""
    state, told = piece.get("state"), piece.get("approval")
    approval: Mapping[str, Any] = told if isinstance(told, dict) else {}
    users = bool(approval) and approval.get("isAutomatic") is not True
    if state == "output-denied" or (state == "approval-responded" and approval.get("approved") is False):
        reason = string(approval.get("reason"))
        for part in _result(piece, reason or _DENIED, calls, failed=True):
            yield replace(part, said=speech(reason), verdict="refused") if users else part
    elif state in _ENDED:
        output = piece.get("errorText") if state == "output-error" else piece.get("output")
        for part in _result(piece, output, calls, state != "output-available"):
            approved = users and approval.get("approved") is True and part.kind == "result"
            yield replace(part, verdict="approved") if approved else part


def _result(piece: Mapping[str, Any], output: Any, calls: Calls, failed: bool = False) -> Iterator[Part]:
    kind = string(output.get("type")) if isinstance(output, dict) else ""
    told = output.get("value") if kind in ("text", "json", "content", "error-text", "error-json") else output
    content = told if isinstance(told, str | list) else blocks.compact(told)
    failed = failed or kind.startswith("error") or piece.get("isError") is True
    block = {"tool_use_id": piece.get("toolCallId"), "content": content, "is_error": failed}
    yield from blocks.result(block, calls, blocks.ALONE)


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values, or the lists under `messages`, are such messages."""
    held = [item for record in records for item in _messages(record)]
    if not held or not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in held):
        return False
    kinds = [kind for message in held for kind in _kinds(message)]
    if any(isinstance(message.get("parts"), list) for message in held):
        pieces = [p for message in held for p in _list(message.get("parts")) if isinstance(p, dict)]
        return bool(pieces) and all(
            "content" not in p and isinstance(p.get("type"), str) and p["type"] not in _OTHERS for p in pieces
        )
    return any(kind in _OWN_CONTENT for kind in kinds)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _messages(record: Any) -> list[Any]:
    held = record.get("messages") if isinstance(record, dict) else None
    return held if isinstance(held, list) else [record]


def _kinds(message: Message) -> list[str]:
    held = message.get("parts", message.get("content"))
    return [string(p.get("type")) for p in held if isinstance(p, dict)] if isinstance(held, list) else []


FORMAT = MessageList("vercel", "Vercel AI SDK messages (UIMessage, ModelMessage)", "system", Vercel(), sniff)
