"""What stands behind a ref."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from compactor.tools import strings
from compactor.transcript import Entry, Part, Ref, Source, ref


class Evidence:
    """The entries of some sources, found by ref."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.sources = tuple(sources)

    @cached_property
    def _entries(self) -> Mapping[str, Mapping[tuple[int, int], Entry]]:
        return {
            source.sha256: {(e.line, e.nth): e for transcript in source.transcripts for e in transcript.entries}
            for source in self.sources
        }

    def knows(self, ref: str) -> bool:
        """Whether the ref's source is among those at hand."""
        return any(sha.startswith(Ref.parse(ref).source) for sha in self._entries)

    def parts(self, ref: str) -> tuple[Part, ...]:
        """The parts a ref points at; empty when nothing stands there, or a message that says nothing."""
        wanted, entry = Ref.parse(ref), self._entry(ref)
        if not entry:
            return ()
        return entry.parts if not wanted.part else entry.parts[wanted.part - 1 : wanted.part]

    def stands(self, ref: str) -> bool:
        """Whether there is something where a ref points, be it a message that says nothing."""
        return bool(self.parts(ref)) or (not Ref.parse(ref).part and self._entry(ref) is not None)

    def _entry(self, ref: str) -> Entry | None:
        wanted = Ref.parse(ref)
        found = (entries for sha, entries in self._entries.items() if sha.startswith(wanted.source))
        return next((e for entries in found if (e := entries.get((wanted.line, wanted.nth)))), None)

    @cached_property
    def _calls(self) -> Mapping[int, Part]:
        """The call of each result, by the result's identity: call ids repeat, in one conversation and over several."""
        found: dict[int, Part] = {}
        for transcript in (transcript for source in self.sources for transcript in source.transcripts):
            latest: dict[str, Part] = {}
            early: dict[str, list[Part]] = {}
            for part in (part for entry in transcript.entries for part in entry.parts):
                if part.kind == "call":
                    latest[part.call_id] = part
                    found |= {id(result): part for result in early.pop(part.call_id, ())}
                elif part.kind == "result" and part.call_id in latest:
                    found[id(part)] = latest[part.call_id]
                elif part.kind == "result":
                    early.setdefault(part.call_id, []).append(part)
        return found

    def text(self, refs: Iterable[str]) -> str:
        """All that the cited parts say, a call's arguments also unescaped; a result speaks with its call."""
        return "\n".join(piece for ref in refs for part in self.parts(ref) for piece in self.pieces(part))

    def pieces(self, part: Part) -> Iterator[str]:
        """What a part says, piece by piece; a result also what its call says."""
        yield from _pieces(part)
        if id(part) in self._calls:
            yield from _pieces(self._calls[id(part)])

    def said(self, refs: Iterable[str]) -> list[str]:
        """The human's own words in the cited parts."""
        return [said for ref in refs for part in self.parts(ref) for said in part.said]

    @cached_property
    def _speech(self) -> Mapping[str, Sequence[Sequence[tuple[Entry, str, str]]]]:
        """What the human said in each conversation of each source: the entry, its ref, the words."""
        return {
            source.sha256: [
                [(entry, ref(source.short, entry), said) for entry in transcript.story() for said in _said(entry)]
                for transcript in source.transcripts
            ]
            for source in self.sources
        }

    def said_after(self, refs: Sequence[str]) -> Iterator[tuple[str, str]]:
        """The human's words after the last of these refs, with where: those of later sources too.

        Sources are taken to be in order; one that isn't at hand came before them all. Of a later source that holds
        several conversations nothing is known.
        """
        last = Ref.parse(refs[-1]) if refs else None
        at = next((n for n, s in enumerate(self.sources) if last and s.sha256.startswith(last.source)), -1)
        for number, source in enumerate(self.sources[max(at, 0) :], max(at, 0)):
            told = self._speech[source.sha256]
            if number == at and last:
                place = (last.line, last.nth)
                held = (n for n, t in enumerate(source.transcripts) if any((e.line, e.nth) == place for e in t.entries))
                spoken = told[next(held, 0)]
                yield from ((where, said) for entry, where, said in spoken if (entry.line, entry.nth) > place)
            elif len(told) == 1:
                yield from ((where, said) for _, where, said in told[0])

    def whole_message(self, ref: str) -> tuple[Part, ...]:
        return self.parts(str(Ref.parse(ref).entry))


def _pieces(part: Part) -> Iterator[str]:
    if part.text:
        yield part.text
    if part.kind == "call":
        yield part.name
        yield from strings(part.input)


def _said(entry: Entry) -> Iterator[str]:
    return (said for part in entry.parts for said in part.said)


def normal(text: str) -> str:
    """Text as quotes are compared: white space folded, control characters gone."""
    return " ".join(re.sub(r"[\x00-\x08\x0e-\x1f\x7f]", "", text).split())
