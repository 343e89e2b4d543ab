"""What a transcript is: read, nothing more."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from compactor import split
from compactor.transcript import Part, Source, Transcript

Count = Callable[[Part], int]


def overview(source: Source, count: Callable[[str], Count]) -> dict[str, Any]:
    """Format, and of each conversation its client, messages, turns, tokens by speaker, calls, compactions, safe cuts.

    `count` gives, for a model's name, how the tokens of a part are counted.
    """
    told = [_conversation(transcript, count(transcript.model)) for transcript in source.transcripts]
    return {"name": source.name, "format": source.format, "sha256": source.sha256, "lines": source.lines,
            "guesses": list(source.guesses), "conversations": told}  # fmt: skip


def _conversation(transcript: Transcript, count: Count) -> dict[str, Any]:
    live = [transcript.entries[index] for index in transcript.live]
    speakers: Counter[str] = Counter()
    for part in (part for entry in live for part in entry.parts):
        speakers[part.speaker] += count(part)
    calls = Counter(part.name for entry in live for part in entry.parts if part.kind == "call")
    summaries = sum(any(p.speaker == "summary" for p in transcript.entries[i].parts) for i in transcript.past)
    return {
        "session": transcript.session, "version": transcript.version, "model": transcript.model,
        "messages": sum(bool(entry.role) for entry in live),
        "turns": sum(map(split.starts_turn, live)),
        "tokens": sum(speakers.values()), "provider_tokens": transcript.usage,
        "tokens_by_speaker": {name: number for name, number in speakers.most_common() if number},
        "calls": dict(calls.most_common()),
        "compactions": summaries + (transcript.summarised > 0), "compacted_by_us": transcript.ours,
        "before_compaction": len(transcript.past),
        "safe_cuts": len(split.safe_positions(transcript)),
        "notes": [{"line": note.line, "text": note.text} for note in transcript.notes],
    }  # fmt: skip


def lines(told: Mapping[str, Any]) -> Iterator[str]:
    """The overview for people."""
    yield f"{told['name']}: {told['format']}, {told['lines']:,} lines, {len(told['conversations'])} conversations"
    for number, one in enumerate(told["conversations"], 1):
        about = ", ".join(filter(None, (one["session"], one["version"], one["model"])))
        yield f"{number}. {about or 'no session named'}"
        counted = f" (the provider last counted {one['provider_tokens']:,})" if one["provider_tokens"] else ""
        yield f"   {one['messages']:,} messages, {one['turns']:,} turns, {one['tokens']:,} tokens{counted}"
        speakers = ", ".join(f"{name} {number:,}" for name, number in one["tokens_by_speaker"].items())
        yield f"   tokens: {speakers or 'none'}"
        calls = ", ".join(f"{name or 'unnamed'} {number}" for name, number in list(one["calls"].items())[:8])
        yield f"   calls: {calls or 'none'}"
        ours = ", the last by compact" if one["compacted_by_us"] else ""
        yield f"   compactions: {one['compactions']}{ours}; safe cuts: {one['safe_cuts']}"
        for note in one["notes"]:
            yield f"   line {note['line']}: {note['text']}"
