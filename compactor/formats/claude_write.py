"""What a compacted Claude Code session looks like; signed thoughts in it stay as they are (`signed`)."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compactor.formats import claude_micro, lines, signed
from compactor.formats.base import Embedded
from compactor.transcript import Entry, Note, Source, Transcript

CONTEXT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_NAMESPACE = uuid.UUID("7d3f0c52-6a0b-5d0e-9a53-0f6b9c1d2e41")
_ENVELOPE = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch", "slug", "agentId")
_POINTERS = ("leafUuid", "messageId")
_LINKS = ("parentUuid", "sessionId", "session_id")


def embed(source: Source, transcript: Transcript, cut: int, block: str, role: str, session: str) -> Embedded:
    """A boundary, the block as its summary, and the tail relinked to it."""
    name = f"{source.sha256}:{transcript.live[cut] if cut < len(transcript.live) else len(transcript.entries)}"
    boundary, summary = (str(uuid.uuid5(_NAMESPACE, f"{name}:{which}")) for which in ("boundary", "summary"))
    last = _last_head(transcript, cut)
    envelope = _envelope(last, session)
    end = b"\r\n" if transcript.entries and transcript.entries[0].raw.endswith(b"\r\n") else b"\n"
    tail = _tail(transcript, cut)
    edits = _Edits(transcript, tail, transcript.live[cut:], summary, session)
    head = [
        _boundary(envelope, boundary, last, transcript.usage),
        _summary(envelope, boundary, summary, block, role, last),
    ]
    chunks = [lines.dump(record) + end for record in head]
    for entry in tail:
        raw = edits.apply(entry)
        # the last line is ended too: the client appends to the file as it is
        chunks += [entry.lead, raw, b"" if raw.endswith(b"\n") else end]
    return Embedded(b"".join(chunks), (*edits.notes(), *claude_micro.restored(tail), *signed.notes(tail)))


def same(before: bytes, after: bytes) -> bool:
    """Whether two records are one, but for the fields that `embed` changes."""
    if before.rstrip(b"\r\n") == after.rstrip(b"\r\n"):
        return True
    return bool(_comparable(before) == _comparable(after))


def _comparable(raw: bytes) -> Any:
    value = _load(raw)
    if value is None:
        return raw
    for key in _LINKS:
        value.pop(key, None)
    _zero_usage(value)
    return value


def _load(raw: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# The new records


def _last_head(transcript: Transcript, cut: int) -> Entry:
    """The last summarised record that has an envelope to copy."""
    entries, live = transcript.entries, transcript.live
    head = (entries[index] for index in (*reversed(live[:cut]), *live[cut:]))
    return next((entry for entry in head if entry.id), entries[live[0]])


def _envelope(last: Entry, session: str) -> dict[str, Any]:
    value = _load(last.raw) or {}
    kept = {key: value[key] for key in _ENVELOPE if key in value}
    kept.setdefault("isSidechain", False)
    if session:
        kept["sessionId"] = session
    return kept


def _boundary(envelope: Mapping[str, Any], boundary: str, last: Entry, tokens: int) -> dict[str, Any]:
    return {
        "parentUuid": None, "logicalParentUuid": last.id or None, **envelope,
        "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False,
        "timestamp": last.time, "uuid": boundary, "level": "info",
        "compactMetadata": {"trigger": "manual", "preTokens": tokens},
    }  # fmt: skip


def _summary(
    envelope: Mapping[str, Any], boundary: str, summary: str, block: str, role: str, last: Entry
) -> dict[str, Any]:
    return {
        "parentUuid": boundary, **envelope, "type": "user", "message": {"role": role, "content": block},
        "isVisibleInTranscriptOnly": True, "isCompactSummary": True, "uuid": summary, "timestamp": last.time,
    }  # fmt: skip


# The tail


def _tail(transcript: Transcript, cut: int) -> list[Entry]:
    """The kept records in order: those that a compaction preserved, then the rest with its bookkeeping."""
    entries, live = transcript.entries, transcript.live[cut:]
    if not live:
        return []
    moved = next((k for k in range(len(live) - 1, 0, -1) if live[k - 1] > live[k]), 0)
    side = (index for index in transcript.side if index > live[0])
    ordered = [entries[index] for index in (*live[:moved], *sorted((*live[moved:], *side)))]
    written = {entry.id for entry in ordered if entry.id}
    # where the client records queued prompts itself, the queue is read by that: not so in a tail without such a record
    strange = any(map(_is_recorded, entries)) and not any(map(_is_recorded, ordered))
    return [e for e in ordered if e.role or not (_points_away(e, written) or (strange and _is_queue(e)))]


def _is_recorded(entry: Entry) -> bool:
    """Whether it is a prompt of the user's, queued while the agent worked and recorded by the client."""
    return b'"queued_command"' in entry.raw and any(part.speaker == "human" for part in entry.parts)


def _is_queue(entry: Entry) -> bool:
    return b'"queue-operation"' in entry.raw and (_load(entry.raw) or {}).get("type") == "queue-operation"


def _points_away(entry: Entry, written: set[str]) -> bool:
    """Whether it is bookkeeping about a record that isn't written."""
    if entry.id or entry.damage or not any(key.encode() in entry.raw for key in _POINTERS):
        return False
    value = _load(entry.raw) or {}
    return any(value.get(key) and value[key] not in written for key in _POINTERS)


class _Edits:
    """The changes that kept records need for the client to go on from them."""

    def __init__(
        self, transcript: Transcript, tail: list[Entry], live: tuple[int, ...], summary: str, session: str
    ) -> None:
        self.session = session
        self.parents = _parents(transcript, tail, frozenset(live), summary)
        self.changed: dict[str, int] = {}

    def apply(self, entry: Entry) -> bytes:
        """The bytes of a kept record: its own, where nothing in it has to change."""
        parent = self.parents.get(entry.index, entry.parent)
        may_change = parent != entry.parent or entry.usage or self.session
        value = _load(entry.raw) if may_change and not entry.damage else None
        if value is None:
            return entry.raw
        done = [what for what, changed in self._change(value, parent) if changed]
        for what in done:
            self.changed.setdefault(what, entry.line)
        ending = lines.ending(entry.raw)
        return lines.dump(value) + ending if done else entry.raw

    def notes(self) -> tuple[Note, ...]:
        return tuple(Note(line, what) for what, line in self.changed.items())

    def _change(self, value: dict[str, Any], parent: str) -> Iterator[tuple[str, bool]]:
        relinked = value.get("uuid") is not None and (value.get("parentUuid") or "") != parent
        if relinked:
            value["parentUuid"] = parent
        yield "parentUuid: relinked to what is kept", relinked
        yield "usage: context counts set to 0", _zero_usage(value)
        yield "sessionId: replaced", self._rename(value)

    def _rename(self, value: dict[str, Any]) -> bool:
        wanted = self.session
        keys = [key for key in ("sessionId", "session_id") if wanted and value.get(key, wanted) != wanted]
        for key in keys:
            value[key] = self.session
        return bool(keys)


def _parents(transcript: Transcript, tail: list[Entry], live: frozenset[int], summary: str) -> dict[int, str]:
    """The parent of each kept record: the nearest kept one above it, else the message kept before it, else the summary.

    Where records stand before their parents, or the links break off, each message follows the one before.
    """
    above = _above(transcript, tail, live)
    place = {entry.id: position for position, entry in enumerate(tail) if entry.id}
    jumbled = any(
        place.get(parent, -1) > place[entry.id] for entry in tail if entry.id and (parent := above[entry.index])
    )
    broken = sum(not above[entry.index] for entry in tail if entry.id and entry.index in live) > 1
    found, behind = {}, summary
    for entry in tail:
        if entry.id:
            found[entry.index] = behind if jumbled or broken else above[entry.index] or behind
            behind = entry.id if entry.index in live else behind
    return found


def _above(transcript: Transcript, tail: list[Entry], live: frozenset[int]) -> dict[int, str]:
    """For each kept record the nearest kept one that it descends from, or nothing."""
    by_id = {entry.id: entry for entry in reversed(transcript.entries) if entry.id}
    by_id |= {entry.id: entry for entry in tail if entry.id and entry.index in live}
    written = {entry.id for entry in tail if entry.id}
    found = {}
    for entry in tail:
        at, seen = entry.parent, {entry.id}
        while at and at not in seen and at not in written:
            seen.add(at)
            at = by_id[at].parent if at in by_id else ""
        found[entry.index] = at if at in written and at != entry.id else ""
    return found


def _zero_usage(value: dict[str, Any]) -> bool:
    """Set an assistant record's counts of the context before it to 0: the client sizes its context by them."""
    message = value.get("message")
    usage = message.get("usage") if value.get("type") == "assistant" and isinstance(message, dict) else None
    if not isinstance(usage, dict):
        return False
    turns = usage.get("iterations")
    places = [usage, *(turn for turn in (turns if isinstance(turns, list) else ()) if isinstance(turn, dict))]
    created = [place["cache_creation"] for place in places if isinstance(place.get("cache_creation"), dict)]
    changed = [_zero(place, CONTEXT_COUNTS) for place in places] + [_zero(place, tuple(place)) for place in created]
    return any(changed)


def _zero(place: dict[str, Any], keys: Iterable[str]) -> bool:
    counted = [key for key in keys if isinstance(place.get(key), int) and place[key]]
    for key in counted:
        place[key] = 0
    return bool(counted)
