"""Spans that OpenTelemetry exported: of each conversation the messages of its last call.

A span's `gen_ai.input.messages` repeats the whole history, so the last span holds the conversation, with what it got
under `gen_ai.output.messages`; system instructions may stand apart. Attributes are an object (`ReadableSpan.to_json` of
opentelemetry-sdk) or OTLP's list of keys and values, on the span or on an event of it, each value JSON in a string or
structured. Conversations are told apart by `gen_ai.conversation.id`, else by trace, and by agent.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from compactor.formats import lines, sample, spans
from compactor.formats.blocks import string

Value = Mapping[str, Any]
INPUT, OUTPUT, SYSTEM = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"
_SCALARS = ("stringValue", "boolValue", "intValue", "doubleValue")


def holds(values: Iterable[Any]) -> bool:
    """Whether some values are spans with messages in them."""
    return any(True for value in values for span in _spans(value) for _ in _calls(span))


def rows(raw: bytes) -> Iterator[dict[str, Any]]:
    """A row for each conversation, in the order of their last calls."""
    found: dict[str, list[Any]] = {}
    for value in _values(raw):
        for span in _spans(value):
            for about in _calls(span):
                name = _name(span, about)
                found.pop(name, None)
                told = (_messages(about.get(key)) or () for key in (INPUT, OUTPUT))
                found[name] = [*_system(about), *(message for held in told for message in held)]
    return ({"conversation": name, "messages": messages} for name, messages in found.items())


def damage(raw: bytes) -> Iterator[tuple[int, str]]:
    """What of the file can't be read, by line."""
    at = sample.start(raw)
    if raw[at : at + 1] != b"[":
        yield from ((record.line, record.damage) for record in lines.records(raw) if record.damage)
        return
    for begin, end in spans.elements(raw, at, len(raw)):
        if end < 0:
            yield raw.count(b"\n", 0, begin) + 1, f"cut off at byte {begin}"


def _values(raw: bytes) -> Iterator[Any]:
    at = sample.start(raw)
    if raw[at : at + 1] != b"[":
        yield from (record.value for record in lines.records(raw))
        return
    for begin, end in spans.elements(raw, at, len(raw)):
        if end > 0:
            yield _json(raw[begin:end])


def _spans(value: Any) -> Iterator[Value]:
    """The spans in a record: itself, or those of an OTLP request."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            continue
        inner = [held for key in ("resourceSpans", "scopeSpans", "spans") if isinstance(held := one.get(key), list)]
        if not inner and ("attributes" in one or isinstance(one.get(INPUT), str)):
            yield one
        waiting.extend(item for held in reversed(inner) for item in reversed(held))


def _calls(span: Value) -> Iterator[Value]:
    """The attributes of a span, and of its events, that hold messages."""
    events = span.get("events")
    for one in (span, *(events if isinstance(events, list) else ())):
        about = _attributes(one.get("attributes", one)) if isinstance(one, dict) else {}
        if _messages(about.get(INPUT)) is not None:
            yield about


def _attributes(told: Any) -> Value:
    if isinstance(told, list):
        pairs = [pair for pair in told if isinstance(pair, dict) and isinstance(pair.get("key"), str)]
        return {pair["key"]: _plain(pair.get("value")) for pair in pairs}
    return told if isinstance(told, dict) else {}


def _plain(value: Any) -> Any:
    """What an OTLP value holds."""
    if not isinstance(value, dict):
        return value
    if isinstance(held := value.get("arrayValue"), dict):
        return [_plain(item) for item in held.get("values", ())]
    if isinstance(held := value.get("kvlistValue"), dict):
        return _attributes(held.get("values"))
    return next((value[key] for key in _SCALARS if key in value), None)


def _messages(told: Any) -> list[Any] | None:
    told = _json(told.encode()) if isinstance(told, str) else told
    return told if isinstance(told, list) and all(isinstance(m, dict) and "role" in m for m in told) else None


def _system(about: Value) -> Iterator[dict[str, Any]]:
    told = about.get(SYSTEM)
    parts = _json(told.encode()) if isinstance(told, str) else told
    if isinstance(parts, list) and parts:
        yield {"role": "system", "parts": parts}


def _name(span: Value, about: Value) -> str:
    context = span.get("context")
    trace = string(span.get("traceId")) or (string(context.get("trace_id")) if isinstance(context, dict) else "")
    agent = string(about.get("gen_ai.agent.id")) or string(about.get("gen_ai.agent.name"))
    return ", ".join(filter(None, (string(about.get("gen_ai.conversation.id")) or trace, agent)))


def _json(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
