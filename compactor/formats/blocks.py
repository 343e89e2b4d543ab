"""What the model sees in the content blocks of an Anthropic message."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from compactor.formats.pairs import Calls
from compactor.formats.voice import Beside, answered
from compactor.transcript import Part, Speaker

Block = Mapping[str, Any]
MEDIA = frozenset((
    "image", "document", "image_url", "input_audio", "audio", "video", "file", "input_image", "input_file",
))  # fmt: skip
NOTHING: Mapping[str, Any] = {}
ALONE = Beside()


def parts(content: Any, role: str, calls: Calls, say: Callable[[str], Part], beside: Beside = ALONE) -> Iterator[Part]:
    """The parts of a message's content; `say` makes a text of the user's role into a part."""
    if isinstance(content, str):
        yield _text(content, role, say)
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield from _parts(block, role, calls, say, beside)
            else:
                yield Part("opaque", "assistant" if role == "assistant" else "harness", leaves(block))


def _parts(block: Block, role: str, calls: Calls, say: Callable[[str], Part], beside: Beside) -> Iterator[Part]:
    kind = string(block.get("type"))
    who: Speaker = "assistant" if role == "assistant" else "human"
    if kind == "text" and isinstance(block.get("text"), str):
        yield _text(block["text"], role, say)
    elif kind == "tool_use" or kind == "server_tool_use":
        yield call(string(block.get("id")), string(block.get("name")), block.get("input"), calls)
    elif kind == "tool_result":
        yield from result(block, calls, beside)
    elif kind == "thinking":
        yield Part("thinking", "assistant", string(block.get("thinking")))
    elif kind == "redacted_thinking":
        yield Part("opaque", "assistant")
    elif kind in MEDIA:
        yield media(block, who)
    else:
        yield Part("opaque", "assistant" if role == "assistant" else "harness", leaves(block))


def _text(text: str, role: str, say: Callable[[str], Part]) -> Part:
    if role == "user":
        return say(text)
    return Part("text", "assistant" if role == "assistant" else "system", text)


def call(call_id: str, name: str, arguments: Any, calls: Calls) -> Part:
    """A call whose arguments are recorded as JSON."""
    given = arguments if isinstance(arguments, dict) else NOTHING
    text = arguments if isinstance(arguments, str) else compact(arguments)
    return Part("call", "assistant", text, (), calls.add(call_id, name, given), name, given)


def result(block: Block, calls: Calls, beside: Beside) -> Iterator[Part]:
    """A tool result, and the media in it."""
    call_id, content = calls.answer(string(block.get("tool_use_id"))), block.get("content")
    text, failed = result_text(content), block.get("is_error") is True
    name, arguments = calls.of(call_id)
    heard = answered(name, arguments, text, failed, beside)
    yield Part(
        "result", "tool", text, heard.said, call_id, name, NOTHING, failed, None, heard.verdict, heard.answers
    )  # fmt: skip
    if isinstance(content, list):
        yield from (media(item, "tool") for item in content if is_media(item))


def media(block: Block, speaker: Speaker) -> Part:
    """An image, a document, a sound: what it is and how large, as far as the record tells, in place of its bytes."""
    kind = string(block.get("type")).removeprefix("input_").removesuffix("_url")
    inner = next((value for key in _HOLDS_MEDIA if isinstance(value := block.get(key), dict)), block)
    data = next((text for key in _MEDIA_DATA if (text := string(inner.get(key)))), "")
    match = _DATA_URL.match(data)
    told = string(inner.get("media_type")) or string(inner.get("format")) or (match[1] if match else "")
    size = 3 * (len(data) - (match.end() if match else 0)) // 4 if match or not data.startswith(_ADDRESS) else 0
    return Part("media", speaker, name=", ".join(filter(None, (kind, told, f"{size:,} bytes" if size else ""))))


_HOLDS_MEDIA = ("source", "image_url", "input_audio", "file")
_MEDIA_DATA = ("data", "url", "image_url", "file_data", "file_url")
_DATA_URL = re.compile(r"data:([\w/+.-]*)[^,]{0,80},")
_ADDRESS = ("http:", "https:", "file:", "gs:", "s3:")


def is_media(block: Any) -> bool:
    return isinstance(block, dict) and string(block.get("type")) in MEDIA


def result_text(content: Any) -> str:
    """What the model reads of a result's content."""
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [content]
    return "\n".join(text for item in items if (text := _item_text(item)))


def _item_text(item: Any) -> str:
    if not isinstance(item, dict):
        return leaves(item)
    if item.get("type") == "text":
        return string(item.get("text"))
    if item.get("type") == "tool_reference":
        return f"tool_reference {string(item.get('tool_name'))}"
    return "" if is_media(item) else leaves(item)


def speaker(role: str) -> Speaker:
    """Who speaks in a text that isn't in the user's role."""
    if role in ("system", "developer"):
        return "system"
    return "assistant" if role == "assistant" else "tool" if role in ("tool", "function") else "harness"


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def leaves(value: Any) -> str:
    """The strings in a value of unknown shape, `type` tags apart."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict):
            waiting.extend(reversed([inner for key, inner in item.items() if key != "type"]))
        elif isinstance(item, list):
            waiting.extend(reversed(item))
    return "\n".join(found)


def compact(value: Any) -> str:
    """A value as compact JSON."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            return leaves(value)
