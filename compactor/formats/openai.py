"""OpenAI chat messages."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from compactor.formats import cline_voice, dialects
from compactor.formats.blocks import ALONE, MEDIA, compact, is_media, leaves, media, result_text, string
from compactor.formats.messages import SYSTEM_ROLES, Message, MessageList, Plain
from compactor.formats.pairs import Calls
from compactor.formats.voice import NOTHING_HEARD, answered, called, observation
from compactor.transcript import Part, Speaker

_NO_CALLS = Calls()


class OpenAI(Plain):
    """The messages of the Chat Completions API."""

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        role = string(message.get("role"))
        if role in ("tool", "function"):
            return tuple(_result(message, calls))
        content = cline_voice.joined(message.get("content")) if role == "user" else message.get("content")
        told = (*_reasoning(message), *_content(content, role, before), *_calls(message, calls))
        return _seen(told, before, calls) if role == "user" else told


def _seen(told: tuple[Part, ...], before: str, calls: Calls) -> tuple[Part, ...]:
    """With all that answers a call in the assistant's text as a tool's, once one text says of itself that it does."""
    if any(part.speaker == "tool" for part in told):
        calls.first("observation")
    if not (calls.met("observation") and called(before)):
        return told
    return tuple(Part("text", "tool", part.text) if part.kind == "text" else part for part in told)


def _content(content: Any, role: str, before: str) -> Iterator[Part]:
    if isinstance(content, str):
        yield _text(content, role, before)
    elif isinstance(content, list):
        yield from (_block(block, role, before) for block in content)
    elif content is not None:
        yield Part("opaque", _speaker(role), leaves(content))


def _block(block: Any, role: str, before: str) -> Part:
    if isinstance(block, str):
        return _text(block, role, before)
    kind = string(block.get("type")) if isinstance(block, dict) else ""
    if kind in ("text", "refusal"):
        found = (block.get(key) for key in (kind, "text", "value"))
        return _text(next((text for text in found if isinstance(text, str)), ""), role, before)
    if kind in ("reasoning", "thinking"):
        return Part("thinking", "assistant", leaves(block))
    if kind in MEDIA:
        return media(block, _speaker(role))
    return Part("opaque", _speaker(role), leaves(block))


def _text(text: str, role: str, before: str) -> Part:
    if role != "user":
        return Part("text", _speaker(role), text)
    if observation(text, before):
        return Part("text", "tool", text)
    return cline_voice.told(text, before, _NO_CALLS)


def _speaker(role: str) -> Speaker:
    return "system" if role in SYSTEM_ROLES else "assistant" if role == "assistant" else "harness"


def _reasoning(message: Message) -> Iterator[Part]:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(text := message.get(key), str) and text:
            yield Part("thinking", "assistant", text)
            return


def _calls(message: Message, calls: Calls) -> Iterator[Part]:
    made = message.get("tool_calls")
    for call in made if isinstance(made, list) else ():
        if isinstance(call, dict):
            yield _call(string(call.get("id")), call.get("function") or call.get("custom") or call, calls)
    if isinstance(old := message.get("function_call"), dict):
        yield _call("", old, calls)


def _call(call_id: str, function: Any, calls: Calls) -> Part:
    name = string(function.get("name")) if isinstance(function, dict) else ""
    given = function.get("arguments", function.get("input")) if isinstance(function, dict) else function
    parsed = arguments(given)
    text = given if isinstance(given, str) else compact(given) if given is not None else ""
    return Part("call", "assistant", text, (), calls.add(call_id, name, parsed), name, parsed)


def arguments(given: Any) -> Mapping[str, Any]:
    """A call's arguments as an object; empty where they are none."""
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError:
            return {}
    return given if isinstance(given, dict) else {}


def _result(message: Message, calls: Calls) -> Iterator[Part]:
    content, name = message.get("content"), string(message.get("name"))
    call_id = calls.answer(string(message.get("tool_call_id")), name)
    called, given = calls.of(call_id)
    text = result_text(content) if content is not None else ""
    failed = _failed(text)
    heard = NOTHING_HEARD if failed else answered(called, given, text, False, ALONE)
    yield Part(
        "result", "tool", text, heard.said, call_id, called or name, {}, failed, None, heard.verdict, heard.answers
    )  # fmt: skip
    if isinstance(content, list):
        yield from (media(item, "tool") for item in content if is_media(item))


def _failed(text: str) -> bool:
    opening = text[:64].lstrip()
    if opening[:5].lower() == "error":
        return True
    if not opening.startswith("{") or '"error"' not in text:
        return False
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(value, dict) and bool(value.get("error"))


class Chat(OpenAI):
    """The same, and logs of plain texts that call the roles by other words."""

    def role(self, message: Message) -> str:
        role = super().role(message)
        return dialects.ROLE_WORDS.get(role.lower(), role)

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        role = self.role(message)
        return super().parts(message if message["role"] == role else {**message, "role": role}, calls, before)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        """In the list's own word for the role, where it has one."""
        word = string(like.get("role"))
        return {"role": word if self.role(like) == role else role, "content": text}


FORMAT = MessageList(
    "openai", "OpenAI chat messages, as lines, rows, array or object", "system", Chat(),
    dialects.is_openai, dialects.guess_openai,
)  # fmt: skip
