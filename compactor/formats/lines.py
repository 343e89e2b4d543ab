"""Where the records of a JSONL file begin and end, and which of them can't be read."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from compactor.formats import spans

BOM = b"\xef\xbb\xbf"
_PATIENCE = 4
"""How often, at most, as many bytes as there are may be looked through for the end of what turns out to be damaged."""
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_NULS = re.compile(r"\0+")
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)", re.DOTALL)


@dataclass(slots=True)
class Record:
    """One JSON object of the file, or a stretch of it that is damaged."""

    line: int
    nth: int
    start: int
    raw: bytes
    """With the line's end, where it is the line's last."""
    value: dict[str, Any]
    damage: str = ""

    @property
    def end(self) -> int:
        return self.start + len(self.raw)


def begin(raw: bytes) -> int:
    """Where the text begins, after a byte order mark."""
    return len(BOM) if raw.startswith(BOM) else 0


def records(raw: bytes) -> Iterator[Record]:
    """Every record in file order; blank lines are left out, and lie between the spans of their neighbours."""
    at, line, size, spread, in_vain = begin(raw), 1, len(raw), True, 0
    while at < size:
        end = raw.find(b"\n", at) + 1 or size
        chunk = raw[at:end]
        if not chunk.isspace():
            value = loads(chunk)
            if value is None and spread and chunk.lstrip().startswith(b"{"):
                value, close = _spread(raw, at, end)
                in_vain += close - end if value is None else 0
                spread = close > 0 and in_vain <= _PATIENCE * size
                end = close if value is not None else end
                chunk = raw[at:end]
            if value is not None:
                yield Record(line, 1, at, chunk, value)
            else:
                yield from _pieces(chunk, line, at)
        line += chunk.count(b"\n")
        at = end


def loads(chunk: bytes | memoryview) -> dict[str, Any] | None:
    """The object in some bytes; None where they hold no single JSON object that orjson reads."""
    try:
        value = orjson.loads(chunk)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def editable(raw: bytes) -> dict[str, Any] | None:
    """The object in some bytes as Python reads it: lone surrogates and large numbers stay; None where there is none."""
    try:
        value = json.loads(raw)
        return value if isinstance(value, dict) and dump(value) else None
    except (ValueError, RecursionError):
        return None


def dump(value: Mapping[str, Any]) -> bytes:
    """An object as most clients write it: compact, not escaped; raises ValueError for numbers that JSON hasn't."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # lone surrogates have no UTF-8
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def ending(raw: bytes) -> bytes:
    """The line end of a record, empty where it has none."""
    return raw[len(raw.rstrip(b"\r\n")) :]


def parse(text: str) -> Any:
    """The JSON value of a text, lone surrogates replaced; raises ValueError where there is none."""
    text = _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def _spread(raw: bytes, at: int, line_end: int) -> tuple[dict[str, Any] | None, int]:
    """An object that goes on over several lines, and where its last line ends; -1 if it is never closed."""
    start = spans.gap_end(raw, at, line_end)
    close = spans.end_of(raw, start, len(raw))
    if close <= line_end:
        return None, close if close < 0 else line_end
    end = raw.find(b"\n", close) + 1 or len(raw)
    if raw[close:end].strip():
        return None, end
    return loads(raw[at:end]) or _half(raw[at:end]), end


def _half(chunk: bytes) -> dict[str, Any] | None:
    """An object with half a surrogate pair in it, which orjson refuses and JavaScript writes; None for any other."""
    if b"\\ud" not in chunk and b"\\uD" not in chunk:
        return None
    try:
        value = parse(chunk.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _pieces(chunk: bytes, line: int, at: int) -> Iterator[Record]:
    """What a line holds that isn't one plain object: several objects, NUL bytes, damage."""
    try:
        text = chunk.decode()
    except UnicodeDecodeError as error:
        yield Record(line, 1, at, chunk, {}, f"not UTF-8 at byte {at + error.start}")
        return
    pos, nth = 0, 1
    while pos < len(text):
        value, end, damage = _piece(text, pos)
        if _blank(text, end) == len(text):
            end = len(text)
        raw = text[pos:end].encode()
        yield Record(line, nth, at, raw, value, damage and f"{damage} at byte {at}")
        at, pos, nth = at + len(raw), end, nth + 1


def _piece(text: str, pos: int) -> tuple[dict[str, Any], int, str]:
    """The object that begins here, where it ends, and what is wrong with it."""
    start = _blank(text, pos)
    if nuls := _NULS.match(text, start):
        return {}, nuls.end(), f"{nuls.end() - start} NUL bytes"
    try:
        value, end = _DECODER.raw_decode(text, start)
        value = parse(text[start:end])
    except RecursionError:
        return {}, len(text), "nested too deeply"
    except ValueError:
        return {}, len(text), "not JSON" if text.endswith("\n") else "cut off"
    if not isinstance(value, dict):
        return {}, len(text), "no JSON object"
    return value, end, ""


def _blank(text: str, pos: int) -> int:
    match = _BLANK.match(text, pos)
    return match.end() if match else pos
