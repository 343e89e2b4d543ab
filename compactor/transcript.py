"""What a transcript is made of.

A `Source` is what was read: raw bytes and one or more conversations. A `Transcript` is one conversation, an ordered
list of `Entry`, each one stored record with its raw bytes. A record that carries a message has `Part`s, each with the
one who really speaks in it. All of it is frozen; format readers make it, everything else only reads it.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from functools import cached_property, wraps
from typing import Any, Literal, TypeVar

Speaker = Literal["human", "assistant", "tool", "harness", "system", "summary"]
Kind = Literal["text", "thinking", "call", "result", "media", "opaque"]

BLOCK_START = "[compact record]"
BLOCK_PREAMBLE = (
    f"{BLOCK_START} This is a compressed record of the earlier conversation, not the user speaking. The decisions, "
    "constraints and authority in it remain binding and are not to be revisited unless the user reopens them; a later "
    "message of the user wins; nothing in it is a new request."
)
"""The first line of every block."""
BLOCK_SOURCES = "Sources: A = "
"""How its second line begins."""
BLOCK_END = "[end of compact record]"
ACKNOWLEDGEMENT = "Understood. I go on from this record."
"""The assistant's one line after a `user` block, where roles must alternate."""

SPEECH_LIMIT = 4_000
PARAGRAPH_LIMIT = 1_000

_Class = TypeVar("_Class", bound=type)


def _quickly_made(cls: _Class) -> _Class:
    """The same frozen dataclass, whose instances take less time to make: a file holds hundreds of thousands of them.

    Python sets each field of a frozen instance by a call; here all are set while it is of an open twin's class.
    """
    told = [(f.name, f.type, field(default=f.default, default_factory=f.default_factory)) for f in fields(cls)]
    twin: Any = make_dataclass(cls.__name__, told, slots=True)
    frozen: Any = cls
    fill, change = twin.__init__, object.__setattr__

    @wraps(frozen.__init__)
    def __init__(self: Any, *values: Any, **named: Any) -> None:
        change(self, "__class__", twin)
        fill(self, *values, **named)
        self.__class__ = frozen

    frozen.__init__ = __init__
    return cls


@_quickly_made
@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message, as the model sees it."""

    kind: Kind
    speaker: Speaker
    text: str = ""
    """What the model reads of it; a call's is its arguments. Lone surrogates are replaced by U+FFFD."""
    said: tuple[str, ...] = ()
    """The human's own words in it, verbatim pieces of `text`: all that may be quoted as the user's."""
    call_id: str = ""
    """Pairs a call with its results."""
    name: str = ""
    """The tool's name, on a call and (where its call is known) on a result; of media what it is, and its size."""
    input: Mapping[str, Any] = field(default_factory=dict)
    """A call's arguments, parsed; empty where they are no object."""
    failed: bool = False
    """A result that the record marks as an error or a refusal."""
    exit_code: int | None = None
    """A result's exit code, where the record tells."""
    verdict: Literal["", "approved", "refused"] = ""
    """What the user decided on the call, where a result records that."""
    answers: tuple[tuple[str, str], ...] = ()
    """(question, answer) for each piece of `said` that answers a known question of the agent's."""


@_quickly_made
@dataclass(frozen=True, slots=True)
class Entry:
    """One stored record."""

    index: int
    """Its place among the transcript's entries, from 0."""
    line: int
    """The line it begins on, from 1."""
    nth: int
    """Which message of that line it is, from 1."""
    raw: bytes
    """Its bytes: a line with its end, or one element of a JSON list."""
    lead: bytes = b""
    """The bytes between the previous element and this one, in a JSON list."""
    role: str = ""
    """The recorded role; empty for bookkeeping and damage."""
    parts: tuple[Part, ...] = ()
    message: str = ""
    """What the pieces of one message have in common, where a format splits messages."""
    id: str = ""
    parent: str = ""
    time: str = ""
    model: str = ""
    usage: int = 0
    """Tokens of context that the provider counted at this message (input, cached and output); 0 where unknown."""
    damage: str = ""
    """Why it couldn't be read; empty when it could."""

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.text)


@dataclass(frozen=True, slots=True)
class Note:
    """Something about the input that its owner should know: damage, an orphan, a guess."""

    line: int
    text: str


@dataclass(frozen=True)
class Transcript:
    """One conversation."""

    entries: tuple[Entry, ...]
    """Every record of it, in file order."""
    live: tuple[int, ...]
    """Indexes of the entries that the model is sent, in that order: fixed part, earlier summary, conversation."""
    fixed: int = 0
    """How many of `live` are the fixed part: leading system and developer messages, opaque compaction items."""
    summarised: int = 0
    """How many of `live`, right after the fixed part, are an earlier summary (and its acknowledgement)."""
    ours: bool = False
    """Whether that summary is a block of ours; if not, it is the client's own prose."""
    past: tuple[int, ...] = ()
    """Indexes of the main line before the last native compaction: read for the ledger, never written."""
    side: frozenset[int] = frozenset()
    """Bookkeeping that belongs to the live conversation: written where it stands in the tail, dropped in the head."""
    session: str = ""
    cwd: str = ""
    version: str = ""
    start: int = 0
    """Where its entries begin and end in the source's bytes."""
    end: int = 0
    notes: tuple[Note, ...] = ()

    @property
    def first(self) -> int:
        """The position in `live` where the conversation proper begins."""
        return self.fixed + self.summarised

    def story(self) -> Iterator[Entry]:
        """The main line from its beginning, earlier than the last native compaction included."""
        for index in (*self.past, *self.live):
            yield self.entries[index]

    @cached_property
    def model(self) -> str:
        """The model that wrote most recently; empty where the record doesn't tell."""
        return next((self.entries[i].model for i in reversed(self.live) if self.entries[i].model), "")

    @cached_property
    def usage(self) -> int:
        """The provider's own count of the context at the last message that has one; 0 where unknown."""
        return next((self.entries[i].usage for i in reversed(self.live) if self.entries[i].usage), 0)


@dataclass(frozen=True)
class Source:
    """What was read."""

    name: str
    raw: bytes
    format: str
    transcripts: tuple[Transcript, ...]
    guesses: tuple[str, ...] = ()
    """What the reader assumed and the bytes don't prove, to be told to the user."""
    redacted: bool = False
    """Whether secrets are masked in what its entries say; the bytes stay as they are."""
    original: bytes = b""
    """The file itself, where `raw` is a list of messages made of it, and the result is such a list; else empty."""

    @cached_property
    def sha256(self) -> str:
        """Of the file."""
        return hashlib.sha256(self.original or self.raw).hexdigest()

    @property
    def short(self) -> str:
        """The name in refs: the first 8 hex digits of the hash."""
        return self.sha256[:8]

    @cached_property
    def lines(self) -> int:
        return self.raw.count(b"\n") + (not self.raw.endswith(b"\n") and bool(self.raw))


def write(source: Source, replaced: Mapping[int, bytes] | None = None) -> bytes:
    """The source's bytes, with the entries of some conversations (by position) replaced.

    With nothing replaced it joins what was read, so `write(read(x)) == x` tests the reader's bookkeeping; a file that
    is only read comes back as it was.
    """
    if source.original and not replaced:
        return source.original
    pieces, at = [], 0
    for position, transcript in enumerate(source.transcripts):
        pieces.append(source.raw[at : transcript.start])
        if replaced and position in replaced:
            pieces.append(replaced[position])
        else:
            pieces.extend(chunk for entry in transcript.entries for chunk in (entry.lead, entry.raw))
        at = transcript.end
    pieces.append(source.raw[at:])
    return b"".join(pieces)


def is_block(text: str) -> bool:
    """Whether a text is a whole block; readers ask in the block's own place only."""
    return text.startswith(f"{BLOCK_PREAMBLE}\n{BLOCK_SOURCES}") and text.endswith(f"\n{BLOCK_END}")


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Where something is: `<source>:<line>[.<nth>][/<part>]`."""

    source: str
    line: int
    nth: int = 1
    part: int = 0
    """The k-th part of the message, from 1; 0 for the whole message."""

    _pattern = re.compile(r"([0-9a-f]{8,64}):([1-9][0-9]{0,11})(?:\.([1-9][0-9]{0,5}))?(?:/([1-9][0-9]{0,5}))?")

    def __str__(self) -> str:
        nth = f".{self.nth}" if self.nth > 1 else ""
        part = f"/{self.part}" if self.part else ""
        return f"{self.source}:{self.line}{nth}{part}"

    @classmethod
    def parse(cls, text: str) -> "Ref":
        """Read a ref; raises ValueError when it is none."""
        match = cls._pattern.fullmatch(text)
        if not match:
            message = f"{text!r} is no ref; one looks like 3f2a9c1d:41"
            raise ValueError(message)
        source, line, nth, part = match.groups()
        return cls(source, int(line), int(nth or 1), int(part or 0))

    @property
    def entry(self) -> "Ref":
        return Ref(self.source, self.line, self.nth)


def ref(source: str, entry: Entry, part: int = 0) -> str:
    """The ref of an entry (or of its part-th part, from 1) in the source with that short name."""
    return str(Ref(source, entry.line, entry.nth, part))


_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|<([A-Za-z][\w-]*)(?:\s[^<>]*)?>.*?</\1>", re.DOTALL)
_OPENS_DOCUMENT = re.compile(r"[{\[<]|```|~~~")


def speech(text: str) -> tuple[str, ...]:
    """The pieces of a human's text that are the human speaking, verbatim, in order.

    Up to 4,000 characters it is all speech, fenced and tagged blocks apart. Of a longer text the first and the last
    paragraph are, each up to 1,000 characters or to the first `{`, `[`, `<` or fence; the rest is a document shown.
    """
    if len(text) <= SPEECH_LIMIT:
        pieces, at = [], 0
        for match in _FENCE.finditer(text):
            pieces.append(text[at : match.start()])
            at = match.end()
        pieces.append(text[at:])
    else:
        paragraphs = [p for p in re.split(r"\n\s*\n", text) if p.strip()]
        chosen = [paragraphs[0], paragraphs[-1]] if len(paragraphs) > 1 else paragraphs
        pieces = [_opening(paragraph) for paragraph in chosen]
    return tuple(piece.strip() for piece in pieces if piece.strip())


def _opening(paragraph: str) -> str:
    match = _OPENS_DOCUMENT.search(paragraph)
    return paragraph[: min(match.start() if match else PARAGRAPH_LIMIT, PARAGRAPH_LIMIT)]
