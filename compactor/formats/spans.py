"""Where the values of a JSON document begin and end.

Found in the bytes, without parsing, in linear time; a raw line break inside a string ends the search, since JSON
forbids it and a cut-off line would else swallow those after it.
"""

import re
from collections.abc import Iterator
from functools import cache

_CHARS = rb"[\x00-\x09\x0b-!#-\[\]-\xff]*+"
"""All but quote, backslash and line break; as ranges, since `re` takes three times as long for a negated set."""
_TEXT = rb'"' + _CHARS + rb"(?:\\[^\n]" + _CHARS + rb')*+"'
_PLAIN = rb"[\x00-!#-Z\\^-z|~-\xff]++"
"""What stands between strings and brackets."""
_LEVELS = 10
"""How deep a value may be nested to be passed in one go."""
_STRING = re.compile(_TEXT)
_SCALAR = re.compile(rb"[^\s,\[\]{}\":]+")
_GAP = re.compile(rb"[\s,]*+")
_COLON = re.compile(rb"\s*+:\s*+")


def end_of(raw: bytes, at: int, stop: int) -> int:
    """Where the value that begins at `at` ends (exclusive); -1 where it isn't closed before `stop`."""
    first = raw[at : at + 1]
    if first in (b"[", b"{"):
        return _closed(raw, at, stop)
    match = (_STRING if first == b'"' else _SCALAR).match(raw, at, stop)
    return match.end() if match else -1


@cache
def _bracket() -> re.Pattern[bytes]:
    """Up to the next bracket that closes what is open, or that opens something nested deeper than `_LEVELS`."""
    inner = _PLAIN + b"|" + _TEXT
    for _ in range(_LEVELS):
        inner = _PLAIN + b"|" + _TEXT + rb"|[\[{](?:" + inner + rb")*+[\]}]"
    return re.compile(b"(?:" + inner + rb")*+(?:([\[{])|[\]}])")


def _closed(raw: bytes, at: int, stop: int) -> int:
    depth, bracket = 1, _bracket()
    at += 1
    # not finditer: behind a string that is never closed it would begin anew at every byte
    while match := bracket.match(raw, at, stop):
        at = match.end()
        depth += 1 if match.lastindex else -1
        if depth == 0:
            return at
    return -1


def elements(raw: bytes, at: int, stop: int) -> Iterator[tuple[int, int]]:
    """The span of each element of the array at `at`; one that isn't closed ends at -1, and is the last."""
    at += 1
    while (at := gap_end(raw, at, stop)) < stop and raw[at : at + 1] != b"]":
        end = end_of(raw, at, stop)
        yield at, end
        if end < 0:
            return
        at = end


def members(raw: bytes, at: int, stop: int) -> Iterator[tuple[bytes, int]]:
    """Each key of the object at `at` (as written, without quotes), and where its value begins."""
    at += 1
    while (at := gap_end(raw, at, stop)) < stop:
        key = _STRING.match(raw, at, stop)
        colon = key and _COLON.match(raw, key.end(), stop)
        if not key or not colon:
            return
        yield key[0][1:-1], colon.end()
        at = end_of(raw, colon.end(), stop)
        if at < 0:
            return


def array_in(raw: bytes, at: int, stop: int, keys: tuple[bytes, ...]) -> int:
    """Where the array begins that the object at `at` holds under one of `keys`; -1 when there is none."""
    if raw[at : at + 1] != b"{" or not any(raw.find(b'"' + key + b'"', at, stop) >= 0 for key in keys):
        return -1
    return next((start for key, start in members(raw, at, stop) if key in keys and raw[start : start + 1] == b"["), -1)


def gap_end(raw: bytes, at: int, stop: int) -> int:
    """Past the white space and commas at `at`."""
    match = _GAP.match(raw, at, stop)
    return match.end() if match else at
