"""Items of OpenAI's Responses API, as an application keeps them to send them again.

One item a line, a JSON list, or an object with a list under `input`, `output`, `items` or `data`: requests, responses
and conversations of the API (https://platform.openai.com/docs/api-reference/responses). A reasoning item stays with
what it produced, since the API refuses one without the other. A compaction that only the provider can read stays, in
front of the conversation: nobody here could tell what is in it.
"""

from typing import Any

from compactor.formats import items
from compactor.formats.blocks import string
from compactor.formats.messages import Message, MessageList, Plain, is_row
from compactor.formats.pairs import Calls
from compactor.transcript import Part

KEYS = (b"input", b"output", b"items", b"data")
_SIGNS = items.KINDS - {"message"}


class Responses(Plain):
    """The items of the Responses API."""

    def role(self, message: Message) -> str:
        return items.role_of(message)

    def parts(self, message: Message, calls: Calls, before: str) -> tuple[Part, ...]:
        return items.parts(message, calls)

    def said(self, text: str, role: str, like: Message, after: Message) -> Message:
        if role == "assistant":  # `output_text` is for messages that the API gave an id
            return {"type": "message", "role": role, "content": text}
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    def leads(self, message: Message) -> bool:
        return message.get("type") == "reasoning"


def sniff(raw: bytes, records: list[Any]) -> bool:
    """Whether some values are items, or objects that hold them."""
    found = [item for record in records for item in _items(record)]
    return bool(found) and all(isinstance(item, dict) and _is_item(item) for item in found) and any(map(_tells, found))


def _items(record: Any) -> list[Any]:
    if not is_row(record, KEYS):
        return [record] if isinstance(record, dict) and "payload" not in record else []
    return next(record[key.decode()] for key in KEYS if isinstance(record.get(key.decode()), list))


def _is_item(item: Message) -> bool:
    kind = item.get("type")
    if kind is None:
        return "role" in item and "content" in item and "tool_calls" not in item
    return isinstance(kind, str) and kind in items.KINDS and not {"data", "message", "messageID"} & set(item)


def _tells(item: Message) -> bool:
    """Whether an item is of this API and of no other."""
    content = item.get("content")
    blocks = content if isinstance(content, list) else ()
    typed = any(isinstance(b, dict) and string(b.get("type")) in ("input_text", "output_text") for b in blocks)
    return string(item.get("type")) in (*_SIGNS, "message") or typed


FORMAT = MessageList(
    "responses", "OpenAI Responses items, as lines, array or object", "user", Responses(), sniff, keys=KEYS
)
