"""Which pieces of a told head go into one request: windows that end at safe places."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compactor.head import Passage
from compactor.split import pair, seams
from compactor.transcript import Entry

Size = Callable[[str], int]
SEPARATOR = "\n\n"
LABEL = 64
"""Tokens that the label of a part may take, and saying that it goes on."""
_HEAD = re.compile(r"^\[(\d[\d./]*)\] [A-Z]", re.MULTILINE)
"""How a told part begins."""
BESIDE = 2
"""Tokens that a chunk may take beside its text's own, where it meets the next."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """What hangs together, or a part of it that says which part it is."""

    text: str
    tokens: int
    labels: frozenset[str]
    """The entries that it tells."""


@dataclass(frozen=True, slots=True)
class Window:
    """What one request tells of the head."""

    chunks: tuple[Chunk, ...]

    @property
    def text(self) -> str:
        return SEPARATOR.join(chunk.text for chunk in self.chunks)

    @property
    def tokens(self) -> int:
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def labels(self) -> frozenset[str]:
        return frozenset[str]().union(*(chunk.labels for chunk in self.chunks))


def windows(passages: Sequence[Passage], story: Sequence[Entry], room: int, size: Size) -> list[Window]:
    """The passages, in order, in as few windows of at most `room` tokens as they fit, about equally full.

    A window ends where a transcript may be cut. What hangs together and is larger than a window is spread over
    several, and each of its parts says which it is.
    """
    return _packed([chunk for unit in _units(passages, story) for chunk in _chunks(unit, room, size)], room)


def narrower(window: Window, room: int, size: Size) -> list[Window]:
    """What a window tells, in windows of at most `room` tokens."""
    chunks = [part for chunk in window.chunks for part in _parts(chunk.text, chunk.labels, "this", room, size)]
    return _packed(chunks, room)


def _units(passages: Sequence[Passage], story: Sequence[Entry]) -> Iterator[list[Passage]]:
    """The passages between two safe places, together."""
    ends = iter(seams(story, pair(story)))
    end, unit = 0, list[Passage]()
    for passage in passages:
        if passage.position >= end and unit:
            yield unit
            unit = []
        while end <= passage.position:
            end = next(ends)
        unit.append(passage)
    if unit:
        yield unit


def _chunks(unit: Sequence[Passage], room: int, size: Size) -> Iterator[Chunk]:
    labels = [passage.label for passage in unit]
    what = f"[{labels[0]}]" if len(unit) == 1 else f"what hangs together from [{labels[0]}] to [{labels[-1]}]"
    yield from _parts(SEPARATOR.join(passage.text for passage in unit), frozenset(labels), what, room, size)


def _parts(text: str, labels: frozenset[str], what: str, room: int, size: Size) -> Iterator[Chunk]:
    """A text whole where it fits, else in parts that say so."""
    tokens = size(text) + BESIDE
    if tokens <= room:
        yield Chunk(text, tokens, labels)
        return
    pieces, inside = list(_pieces(text, room - LABEL, size)), ""
    for number, piece in enumerate(pieces, 1):
        goes_on = f", inside [{inside}]" if inside and not _HEAD.match(piece) else ""
        more = "\n(It goes on in the next part: what comes of it isn't known here.)" if number < len(pieces) else ""
        told = f"({number} of {len(pieces)} parts of {what}{goes_on})\n{piece}{more}"
        heads = _HEAD.findall(piece)
        here = frozenset(str(head).partition("/")[0] for head in (*heads, inside) if head) & labels
        inside = heads[-1] if heads else inside
        yield Chunk(told, size(told) + BESIDE, here or labels)


def _pieces(text: str, room: int, size: Size) -> Iterator[str]:
    """A text in pieces of at most so many tokens, cut between passages or lines where they are short enough."""
    while text:
        length = _fitting(text, room, size)
        if length < len(text):
            breaks = (text.rfind(separator, length // 2, length) for separator in (SEPARATOR, "\n", " "))
            length = next((at + 1 for at in breaks if at > 0), length)
        yield text[:length]
        text = text[length:]


def _fitting(text: str, room: int, size: Size) -> int:
    """How many characters from the start take at most so many tokens; at least one."""
    if len(text) <= room or size(text) <= room:
        return len(text)
    low, high = 1, min(len(text), room * 16)
    while low < high - max(low // 50, 1):
        middle = (low + high) // 2
        low, high = (middle, high) if size(text[:middle]) <= room else (low, middle)
    return low


def _packed(chunks: Sequence[Chunk], room: int) -> list[Window]:
    total = sum(chunk.tokens for chunk in chunks)
    aim = total / max(-(-total // room), 1)
    full: list[Window] = []
    held, used = list[Chunk](), 0
    for chunk in chunks:
        if held and (used + chunk.tokens > room or used >= aim):
            full.append(Window(tuple(held)))
            held, used = [], 0
        held.append(chunk)
        used += chunk.tokens
    return [*full, Window(tuple(held))] if held else full
