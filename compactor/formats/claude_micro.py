"""Which results Claude Code has cleared without a compaction.

A `microcompact_boundary` names the calls whose results the client sends as a stub from then on; the file keeps them. A
resumed client (2.1.14, `cli.js`) reads the boundaries behind the last compaction anew and goes on sending stubs, so a
cleared result is sent whole again where its boundary isn't written.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from compactor.formats import lines
from compactor.transcript import Entry, Note, Part

SUBTYPE = "microcompact_boundary"
STUB = "[Old tool result content cleared]"
"""What the client sends for a cleared result; where it could save the result, it names the file in its place."""


def cleared(entries: Iterable[Entry]) -> frozenset[str]:
    """The calls whose results the boundaries among some records clear."""
    return frozenset(call for entry in entries if SUBTYPE.encode() in entry.raw for call in _named(entry))


def _named(entry: Entry) -> Iterator[str]:
    value: Mapping[str, Any] = (lines.editable(entry.raw) or {}) if not entry.damage else {}
    told = value.get("microcompactMetadata") if value.get("subtype") == SUBTYPE else None
    calls = told.get("compactedToolIds") if isinstance(told, dict) else None
    yield from (call for call in (calls if isinstance(calls, list) else ()) if isinstance(call, str))


def as_sent(entry: Entry, calls: frozenset[str]) -> Entry:
    """The record with its cleared results counted as the stub, and without what was shown in them."""
    if not any(part.kind == "result" and part.call_id in calls for part in entry.parts):
        return entry
    return replace(entry, parts=tuple(_parts(entry.parts, calls)))


def _parts(parts: tuple[Part, ...], calls: frozenset[str]) -> Iterator[Part]:
    gone = False
    for part in parts:
        if part.kind == "result":
            gone = part.call_id in calls
            yield replace(part, stub=STUB) if gone else part
        elif not (gone and part.kind == "media" and part.speaker == "tool"):
            gone = False
            yield part


def restored(tail: Iterable[Entry]) -> Iterator[Note]:
    """A word where kept results were cleared by a boundary that isn't kept: the client sends them whole again."""
    tail = tuple(tail)
    stubs = [(entry, part.call_id) for entry in tail for part in entry.parts if part.stub]
    known = cleared(tail) if stubs else frozenset()
    whole = [entry for entry, call in stubs if call not in known]
    if whole:
        text = f"{len(whole)} results that the client had cleared are sent whole again: their microcompaction is gone"
        yield Note(whole[0].line, text)
