"""Whether a list of messages is OpenAI's or Anthropic's."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

from compactor.formats.messages import ROW_KEYS, is_row

Dialect = Literal["openai", "anthropic", "either", "both", "none"]
_ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
ROLE_WORDS = {
    "human": "user", "ai": "assistant", "bot": "assistant", "agent": "assistant", "model": "assistant",
    "chatbot": "assistant", "gpt": "assistant", **{role: role for role in _ROLES},
}  # fmt: skip
"""What plain logs call the roles, in lower case, and what OpenAI calls them."""
_CONTENT = frozenset(("content", "tool_calls", "function_call"))
_BARE = frozenset(("role", "name", "id", "timestamp", "model", "refusal"))
"""What a message without content may have at most, lest a message of another format passes for one."""
_ANTHROPIC_BLOCKS = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking"))
_FOREIGN_BLOCKS = frozenset((
    "input_text", "output_text", "toolCall", "toolRequest", "toolResponse", "tool-call", "tool-result",
))  # fmt: skip
_FOREIGN_KEYS = frozenset(("payload", "parts", "message", "kind", "call_id", "record_type", "lc", "data"))
ROO_MARKS = frozenset(("isSummary", "condenseParent", "isTruncationMarker", "truncationParent"))
"""What Roo Code writes on the messages that it has condensed or truncated, and on what stands for them."""
_CLINE_KEYS = frozenset(("version", "updated_at", "agent", "sessionId"))
_FENCED = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
_RETURNED = re.compile(r"\s*<returncode>")
_FOREIGN_TYPE = re.compile("tool|call|reasoning|message")
_TRAFFIC = (b'"tool_', b'"thinking"', b'"function_call"')
_AS_KEY = re.compile(rb'"(?:tool_calls|tool_call_id|function_call)"\s*:')
_AS_TYPE = re.compile(rb'"(?:tool_use|tool_result|thinking)"')
_TYPE = re.compile(rb'"type"\s*:\s*\Z')
GUESS = "no tool traffic tells OpenAI and Anthropic apart: read as openai; --format anthropic otherwise"


def is_openai(raw: bytes, records: list[Any]) -> bool:
    return dialect(raw, records) in ("openai", "either", "both")


def is_anthropic(raw: bytes, records: list[Any]) -> bool:
    return dialect(raw, records) in ("anthropic", "both")


def guess_openai(raw: bytes, records: list[Any]) -> str:
    return GUESS if dialect(raw, records) == "either" else ""


def dialect(raw: bytes, records: list[Any]) -> Dialect:
    """Which of the two a list is in: what its first messages show, else the first tool traffic in the bytes."""
    messages = list(_messages(records))
    if any(map(is_cline, records)) or any(map(is_roo, messages)) or is_mini(records):
        return "none"
    if not any("content" in message for message in messages) or not all(_is_message(m) for m in messages):
        return "none"
    shown = {sign for message in messages for sign in _signs(message)}
    for openai, anthropic in (("calls", "blocks"), ("roles", "images")):
        if openai in shown or anthropic in shown:
            return "openai" if anthropic not in shown else "anthropic" if openai not in shown else "both"
    return _traffic(raw)


def _traffic(raw: bytes) -> Dialect:
    """Whose the first tool traffic in the bytes is; looked for by its words, since a pattern tries at every quote."""
    found = min(filter(None, (_first(raw, word) for word in _TRAFFIC)), default=None)
    return found[1] if found else "either"


def _first(raw: bytes, word: bytes) -> tuple[int, Dialect] | None:
    at = raw.find(word)
    while at >= 0:
        if _AS_KEY.match(raw, at):
            return at, "openai"
        if _AS_TYPE.match(raw, at) and _TYPE.search(raw[max(at - 64, 0) : at]):
            return at, "anthropic"
        at = raw.find(word, at + 1)
    return None


def _messages(records: list[Any]) -> Iterator[dict[str, Any]]:
    """The messages among the first values; a record without a role is somebody's header, in front of messages only."""
    for record in records:
        if is_row(record):
            rows = next(record[key.decode()] for key in ROW_KEYS if isinstance(record.get(key.decode()), list))
            yield from filter(_speaks, rows)
        elif _speaks(record):
            yield record


def is_roo(message: dict[str, Any]) -> bool:
    """Whether Roo Code has marked a message as condensed or truncated, or as what stands for such ones."""
    return bool(ROO_MARKS & set(message))


def is_cline(record: Any) -> bool:
    """Whether a value is a session of Cline's SDK, or the history that it sends since it compacted one."""
    if not (isinstance(record, dict) and isinstance(record.get("messages"), list)):
        return False
    return set(record) >= _CLINE_KEYS or "source_message_count" in record


def is_mini(records: list[Any]) -> bool:
    """Whether some values are a trajectory of mini-swe-agent, by its name or by how its text mode talks.

    An assistant message with one fenced command, and what it gave behind `<returncode>`.
    """
    named = [r.get("trajectory_format") for r in records if isinstance(r, dict) and is_row(r)]
    if named:
        return len(records) == 1 and isinstance(named[0], str) and named[0].startswith("mini-swe-agent")
    for one, other in pairwise(records):
        if isinstance(one, dict) and isinstance(other, dict) and one.get("role") == "assistant":
            text, seen = one.get("content"), other.get("content")
            asked = isinstance(text, str) and bool(fenced(text)) and not one.get("tool_calls")
            return asked and isinstance(seen, str) and bool(_RETURNED.match(seen)) and other.get("role") == "user"
    return False


def fenced(text: str) -> list[str]:
    """The command in a text that holds one fenced block of commands; none where it holds several."""
    found = _FENCED.findall(text)
    return found if len(found) == 1 else []


def _speaks(record: Any) -> bool:
    return isinstance(record, dict) and (isinstance(record.get("role"), str) or _is_foreign(record))


def _is_foreign(record: dict[str, Any]) -> bool:
    """Whether a record without a role is a piece of the conversation all the same."""
    return bool(_FOREIGN_KEYS & set(record) or _FOREIGN_TYPE.search(_kind(record)))


def _is_message(record: dict[str, Any]) -> bool:
    role, content = record.get("role"), record.get("content")
    if not isinstance(role, str) or not (_CONTENT & set(record) or set(record) <= _BARE):
        return False
    if role not in _ROLES and not (role.lower() in ROLE_WORDS and isinstance(content, str)):
        return False
    blocks = content if isinstance(content, list) else ()
    return not any(isinstance(block, dict) and _kind(block) in _FOREIGN_BLOCKS for block in blocks)


def _kind(block: dict[str, Any]) -> str:
    kind = block.get("type")
    return kind if isinstance(kind, str) else ""


def _signs(message: dict[str, Any]) -> Iterator[str]:
    if message.get("role") in ("tool", "function") or message.get("tool_calls") or message.get("function_call"):
        yield "calls"
    role = message.get("role")
    if role in ("system", "developer") or role not in _ROLES or message.get("content", "") is None:
        yield "roles"
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        kind = _kind(block) if isinstance(block, dict) else ""
        if kind in _ANTHROPIC_BLOCKS:
            yield "blocks"
        elif kind in ("image_url", "input_audio"):
            yield "roles"
        elif kind in ("image", "document") and isinstance(block.get("source"), dict):
            yield "images"
