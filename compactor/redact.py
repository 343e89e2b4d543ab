"""Secrets out: a source as a model, a snapshot, a log or a report may see it.

Each secret becomes a placeholder with the ref of the entry where it first stands. The bytes stay as they are: the tail
is the user's file, and the placeholder's ref leads back to the value in the original.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compactor.leaks import NAMES, Leak, is_secret, leaks
from compactor.snapshot import Item, Snapshot
from compactor.tools import strings
from compactor.transcript import Entry, Part, Source, ref

PLACEHOLDER = re.compile(r"\[secret (?:password|key|token|secret|private key) [0-9a-f]{8}:\d+(?:\.\d+)?(?: #\d+)?\]")
"""What stands for a secret: `[secret password 3f2a9c1d:41]`; with `#2` for the entry's second."""


DEEPEST = 50
"""How deep in a call's arguments a masked value is still given; nobody reads deeper."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that must not be told."""

    value: str
    placeholder: str
    sure: bool
    """Whether it is masked wherever it stands, not only where its name stands beside it."""


def redacted(source: Source) -> Source:
    """The source with its secrets masked in all that entries say; its bytes, and the refs into it, are the same."""
    mask = Mask({}) if source.redacted else mask_of(source)
    if not mask.secrets:
        return replace(source, redacted=True)
    transcripts = tuple(
        replace(transcript, entries=tuple(_entry(entry, mask) for entry in transcript.entries))
        for transcript in source.transcripts
    )
    return replace(source, transcripts=transcripts, redacted=True)


def mask_of(source: Source) -> "Mask":
    """What masks the secrets that a source holds, in any text."""
    return Mask({secret.value: secret for secret in _found(source)})


class Mask:
    """Puts placeholders where known secrets stand."""

    def __init__(self, secrets: Mapping[str, Secret]) -> None:
        self.secrets = secrets
        sure = sorted((s.value for s in secrets.values() if s.sure), key=len, reverse=True)
        forms = {form: secrets[value].placeholder for value in sure for form in (value, json.dumps(value)[1:-1])}
        self._sure = forms
        self._pattern = re.compile("|".join(map(re.escape, forms))) if forms else None

    def text(self, text: str) -> str:
        """The text with its secrets masked: those known wherever they stand, weak ones beside their names."""
        for leak in reversed(leaks(text)):
            known = self.secrets.get(text[leak.start : leak.end])
            if known:
                text = text[: leak.start] + known.placeholder + text[leak.end :]
        if self._pattern and any(value in text for value in self._sure):
            text = self._pattern.sub(lambda match: self._sure[match[0]], text)
        return text

    def value(self, value: Any, name: str = "", depth: int = 0) -> Any:
        """A JSON value with its secrets masked; `name` is the key it stands under. What lies deep is left out."""
        if isinstance(value, str):
            known = self.secrets.get(value)
            return known.placeholder if known and _names(name) else self.text(value)
        if not isinstance(value, Mapping | list):
            return value
        if depth == DEEPEST:
            return None
        if isinstance(value, Mapping):
            return {self.text(key): self.value(inner, key, depth + 1) for key, inner in value.items()}
        return [self.value(inner, name, depth + 1) for inner in value]


def masked(text: str) -> bool:
    """Whether some secret was masked in a text."""
    return "[secret " in text and PLACEHOLDER.search(text) is not None


def _names(name: str) -> bool:
    return any(known in name.lower() for known in NAMES)


def _found(source: Source) -> Iterator[Secret]:
    """The secrets of a source in file order, each value once."""
    seen: set[str] = set()
    for entry in (entry for transcript in source.transcripts for entry in transcript.entries):
        here = 0
        for value, leak in _leaks_of(entry):
            if value not in seen:
                seen.add(value)
                here += 1
                number = f" #{here}" if here > 1 else ""
                yield Secret(value, f"[secret {leak.kind} {ref(source.short, entry)}{number}]", leak.sure)


def _leaks_of(entry: Entry) -> Iterator[tuple[str, Leak]]:
    for part in entry.parts:
        for text in _texts(part):
            yield from ((text[leak.start : leak.end], leak) for leak in leaks(text))
        for name, value in _named(part.input):
            if is_secret(value, next(known for known in NAMES if known in name.lower()), quoted=True):
                yield value, Leak(0, len(value), "password", sure=len(value) >= 8)


def _texts(part: Part) -> Iterator[str]:
    if part.text:
        yield part.text
    yield from strings(part.input)


def _named(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The strings of a call's arguments that stand under a telling name."""
    waiting = list(given.items())
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str) and _names(name) and not _names(value):
            yield name, value
        elif isinstance(value, Mapping):
            waiting.extend(value.items())
        elif isinstance(value, list):
            waiting.extend((name, inner) for inner in value)


def _entry(entry: Entry, mask: Mask) -> Entry:
    parts = tuple(_part(part, mask) for part in entry.parts)
    return entry if parts == entry.parts else replace(entry, parts=parts)


def _part(part: Part, mask: Mask) -> Part:
    text = mask.text(part.text)
    said = tuple(mask.text(piece) for piece in part.said)
    given = mask.value(part.input) if part.input else part.input
    answers = tuple((mask.text(question), mask.text(answer)) for question, answer in part.answers)
    if (text, said, given, answers) == (part.text, part.said, part.input, part.answers):
        return part
    return replace(part, text=text, said=said, input=given, answers=answers)


def cleaned(snapshot: Snapshot) -> Snapshot:
    """A snapshot that was written without masking, with what its items tell masked; the same object where nothing is.

    A placeholder there bears the ref of the item's evidence.
    """
    return snapshot.map(lambda _, item: _cleaned(item))


def _cleaned(item: Item) -> Item:
    where = item.evidence[0].partition("/")[0] if item.evidence else ""
    changed = {
        name: _without_leaks(value, where)
        for name, value in item
        if isinstance(value, str) and name not in ("id", "by", "proof") and leaks(value)
    }
    return item.model_copy(update=changed) if changed else item


def _without_leaks(text: str, where: str) -> str:
    for leak in reversed(leaks(text)):
        text = f"{text[: leak.start]}[secret {leak.kind} {where}]{text[leak.end :]}"
    return text


def lines(entries: Iterable[Entry]) -> list[int]:
    """The lines of a redacted source's entries in which something was masked."""
    return sorted({entry.line for entry in entries if any(masked(part.text) for part in entry.parts)})
