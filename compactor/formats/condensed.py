"""What of a list of messages its client still sends, where it has compacted the list itself."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from compactor.formats import lines, pairs
from compactor.formats.messages import Message
from compactor.transcript import ACKNOWLEDGEMENT, Note, Source, Transcript, is_block

View = Callable[[Mapping[int, Message], int], tuple[frozenset[int], int]]
"""Of the marked messages by index, and how many entries there are: the hidden ones, and the summary or -1."""


def seen(source: Source, is_marked: Callable[[bytes], bool], view: View, note: str = "") -> Source:
    """The source with its conversations as the client sends them."""
    return replace(source, transcripts=tuple(_seen(one, is_marked, view, note) for one in source.transcripts))


def _seen(transcript: Transcript, is_marked: Callable[[bytes], bool], view: View, note: str) -> Transcript:
    marked = {e.index: lines.editable(e.raw.strip()) or {} for e in transcript.entries if e.role and is_marked(e.raw)}
    hidden, summary = view(marked, len(transcript.entries))
    added = [Note(1, note)] if note else []
    if not hidden and summary < 0:
        return replace(transcript, notes=tuple(sorted((*transcript.notes, *added), key=lambda one: one.line)))
    entries = list(transcript.entries)
    if summary >= 0:
        told = tuple(replace(p, speaker="summary", said=()) if p.kind == "text" else p for p in entries[summary].parts)
        entries[summary] = replace(entries[summary], parts=told)
    live = tuple(index for index in transcript.live if index not in hidden)
    fixed = sum(index not in hidden for index in transcript.live[: transcript.fixed])
    ours = (
        is_block(entries[summary].text)
        if summary >= 0
        else transcript.ours and transcript.live[transcript.fixed] not in hidden
    )
    known = {note.text for note in pairs.notes(transcript.entries[index] for index in transcript.live)}
    notes = [one for one in transcript.notes if one.text not in known]
    notes += [*pairs.notes(entries[index] for index in live), *added]
    return replace(
        transcript, entries=tuple(entries), live=live, fixed=fixed, ours=ours,
        past=tuple(index for index in transcript.live if index in hidden and entries[index].role),
        summarised=_summarised(transcript, live[fixed:], summary, ours),
        notes=tuple(sorted(notes, key=lambda one: one.line)),
    )  # fmt: skip


def _summarised(transcript: Transcript, rest: tuple[int, ...], summary: int, ours: bool) -> int:
    """How many messages, from the first that is sent, are the summary and its acknowledgement."""
    if summary < 0:
        return transcript.summarised if ours else 0
    if not rest or rest[0] != summary:
        return 0
    follower = transcript.entries[rest[1]] if ours and len(rest) > 1 else None
    return 2 if follower and follower.role == "assistant" and follower.text == ACKNOWLEDGEMENT else 1
