"""What a file begins with."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from compactor.formats import lines, spans

LIMIT = 50
_TRIES = 1_000
_LARGE = 1 << 20
_START = re.compile(rb"\s*+")


@dataclass(frozen=True, slots=True)
class _Beginning:
    values: list[Any]
    alone: bool
    """Whether the first value is an object, and all there is."""


_kept: ContextVar[list[tuple[bytes, _Beginning]] | None] = ContextVar("_kept", default=None)


@contextmanager
def kept() -> Iterator[None]:
    """Look at each file once only while it is read: a large one takes its time, and several ask."""
    token = _kept.set([])
    try:
        yield
    finally:
        _kept.reset(token)


def first_values(raw: bytes) -> list[Any]:
    """The first JSON values in some bytes, at most 50: records by line, or the elements of one array.

    Of an object larger than a megabyte the arrays are cut to their first 50 elements.
    """
    return _beginning(raw).values


def is_object(raw: bytes) -> bool:
    """Whether some bytes are known to be one object, as a large one is when it is looked at."""
    return _beginning(raw).alone


def _beginning(raw: bytes) -> _Beginning:
    known = _kept.get()
    for held, found in known or ():
        if held is raw:
            return found
    found = _looked_at(raw)
    if known is not None:
        known.append((raw, found))
    return found


def _looked_at(raw: bytes) -> _Beginning:
    at = start(raw)
    if (alone := _alone(raw, at)) is not None:
        return _Beginning([alone], True)
    values = _elements(raw, at) if raw[at : at + 1] == b"[" else _objects(raw, at)
    return _Beginning(list(islice(values, LIMIT)), False)


def _alone(raw: bytes, at: int) -> dict[str, Any] | None:
    """The one object that the bytes are, if its first line alone is none or is large."""
    end = raw.find(b"\n", at) + 1 or len(raw)
    if raw[at : at + 1] != b"{" or (end - at <= _LARGE and lines.loads(raw[at:end]) is not None):
        return None
    value = lines.loads(memoryview(raw)[at:])
    if value is None or len(raw) - at <= _LARGE:
        return value
    return {key: inner[:LIMIT] if isinstance(inner, list) else inner for key, inner in value.items()}


def start(raw: bytes) -> int:
    """Where the first value begins."""
    match = _START.match(raw, lines.begin(raw))
    return match.end() if match else 0


def _elements(raw: bytes, at: int) -> Iterator[Any]:
    for begin, end in spans.elements(raw, at, len(raw)):
        if end > 0:
            yield peek(raw, begin, end)


def _objects(raw: bytes, at: int) -> Iterator[Any]:
    size, spread, tries = len(raw), True, 0
    while at < size and tries < _TRIES:
        tries += 1
        end = raw.find(b"\n", at) + 1 or size
        if end - at > _LARGE:
            yield peek(raw, spans.gap_end(raw, at, end), end)
        elif raw[at:end].lstrip(b"\0").lstrip().startswith(b"{"):
            record = next(lines.records(raw[at:end]), None)
            if record and record.value:
                yield record.value
            elif spread:
                begin = spans.gap_end(raw, at, end)
                close = spans.end_of(raw, begin, size)
                spread = close >= 0
                if close > end:
                    yield peek(raw, begin, close)
                    end = close
        at = end


def peek(raw: bytes, at: int, end: int) -> Any:
    """The value in a span; of a large object only the beginning of its arrays, of a broken one nothing."""
    if end - at <= _LARGE:
        return _value(raw[at:end])
    if raw[at : at + 1] != b"{":
        return None
    return {key.decode(errors="replace"): _member(raw, begin, end) for key, begin in spans.members(raw, at, end)}


def _member(raw: bytes, at: int, stop: int) -> Any:
    if raw[at : at + 1] != b"[":
        end = spans.end_of(raw, at, stop)
        return _value(raw[at:end]) if 0 <= end - at <= _LARGE else None
    found: list[Any] = []
    for begin, end in spans.elements(raw, at, stop):
        if len(found) == LIMIT or end < 0:
            break
        found.append(_value(raw[begin:end]))
    return found


def _value(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        record = next(lines.records(raw), None)
        return record.value or None if record else None
