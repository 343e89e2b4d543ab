"""Where a transcript may be cut, and where we cut it."""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compactor.transcript import Entry, Transcript

DEFAULT_KEEP = 8
SLACK = 0.5


@dataclass(frozen=True, slots=True)
class Size:
    """How long a tail is."""

    messages: int = 0
    """As the model sees them: the pieces of one split message once, each tool result once."""
    turns: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Keep:
    """How long a tail must be at least, by any of three measures; the largest wins."""

    messages: int | None = None
    turns: int | None = None
    tokens: int | None = None

    def met_by(self, size: Size) -> bool:
        messages = DEFAULT_KEEP if self == Keep() else self.messages or 0
        return size.messages >= messages and size.turns >= (self.turns or 0) and size.tokens >= (self.tokens or 0)

    @property
    def nothing(self) -> bool:
        return not (self == Keep() or self.messages or self.turns or self.tokens)

    def within_slack(self, size: Size) -> bool:
        """Whether a tail is at most half as much again as asked, by some measure that was asked for."""
        asked = [
            (DEFAULT_KEEP if self == Keep() else self.messages, size.messages),
            (self.turns, size.turns),
            (self.tokens, size.tokens),
        ]
        return any(want and have <= want * (1 + SLACK) for want, have in asked)


@dataclass(frozen=True, slots=True)
class Cut:
    """A place between two entries of the live conversation."""

    at: int
    """The tail is `live[at:]`."""
    tail: Size
    starts_turn: bool
    note: str = ""
    """Why the tail is shorter than asked, where it is."""


def starts_turn(entry: Entry) -> bool:
    """Whether the human speaks here of their own accord, not inside a tool's result."""
    return any(part.speaker == "human" and part.kind in ("text", "media") for part in entry.parts)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which calls and results of a conversation belong together, by position in it."""

    links: tuple[tuple[int, int], ...]
    """(call, result) for each result that answers a call."""
    unanswered: frozenset[int]
    """Positions that make a call which nothing answers."""
    orphans: tuple[tuple[int, int], ...]
    """(position, k-th part from 1) of each result that answers no call."""


def pair(live: Sequence[Entry]) -> Pairs:
    """Pair results with calls by id over the whole conversation, in any order of arrival.

    Where an id repeats, a result answers the latest call before it that has none yet, else the first one after it;
    further results of an answered call are tied to its latest one.
    """
    waiting: dict[str, list[int]] = defaultdict(list)
    early: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
    latest: dict[str, int] = {}
    links: list[tuple[int, int]] = []
    for position, entry in enumerate(live):
        for number, part in enumerate(entry.parts, 1):
            if part.kind == "call" and part.call_id:
                latest[part.call_id] = position
                if early[part.call_id]:
                    links.append((position, early[part.call_id].popleft()[0]))
                else:
                    waiting[part.call_id].append(position)
            elif part.kind == "result":
                if waiting[part.call_id]:
                    links.append((waiting[part.call_id].pop(), position))
                elif part.call_id in latest:
                    links.append((latest[part.call_id], position))
                else:
                    early[part.call_id].append((position, number))
    unanswered = frozenset(position for positions in waiting.values() for position in positions)
    return Pairs(tuple(links), unanswered, tuple(sorted(o for orphans in early.values() for o in orphans)))


def units(live: Sequence[Entry], pairs: Pairs) -> Iterator[tuple[int, int]]:
    """The first and last position of each unit: what one split message spans, and each call with its results."""
    pieces: dict[str, list[int]] = defaultdict(list)
    for position, entry in enumerate(live):
        if entry.message:
            pieces[entry.message].append(position)
    for positions in pieces.values():
        yield positions[0], positions[-1]
    for call, result in pairs.links:
        yield min(call, result), max(call, result)


def open_from(live: Sequence[Entry], pairs: Pairs) -> int:
    """The position of the first call that is still open; `len(live)` when none is.

    A call is open when nothing answers it and nothing but results and bookkeeping follows its message.
    """
    found, message = len(live), None
    for position in range(len(live) - 1, -1, -1):
        entry = live[position]
        if not any(part.kind != "result" for part in entry.parts):
            continue
        if message is not None and (not entry.message or entry.message != message):
            break
        message = entry.message
        if position in pairs.unanswered:
            found = position
    return found


def safe_positions(transcript: Transcript) -> list[int]:
    """Every position of `live` where it may be cut, from the start of the conversation proper to its end."""
    live = [transcript.entries[i] for i in transcript.live]
    pairs = pair(live)
    still_open = open_from(live, pairs)
    return [at for at in seams(live, pairs) if transcript.first <= at <= still_open]


def seams(live: Sequence[Entry], pairs: Pairs) -> list[int]:
    """Every position, both ends among them, that lies inside no unit."""
    torn = [0] * (len(live) + 2)
    for first, last in units(live, pairs):
        torn[first + 1] += 1
        torn[last + 1] -= 1
    whole, depth = [], 0
    for position in range(len(live) + 1):
        depth += torn[position]
        if depth == 0:
            whole.append(position)
    return whole


def cuts(transcript: Transcript, tokens: Sequence[int]) -> list[Cut]:
    """Every safe cut with the size of its tail; `tokens` are those of each live entry."""
    sizes = _tail_sizes(transcript, tokens)
    entries, live = transcript.entries, transcript.live
    return [Cut(at, sizes[at], at == len(live) or starts_turn(entries[live[at]])) for at in safe_positions(transcript)]


def _tail_sizes(transcript: Transcript, tokens: Sequence[int]) -> list[Size]:
    sizes, size, seen = [Size()], Size(), set[str]()
    for position in range(len(transcript.live) - 1, -1, -1):
        entry = transcript.entries[transcript.live[position]]
        results = sum(part.kind == "result" for part in entry.parts)
        other = results < len(entry.parts) and (not entry.message or entry.message not in seen)
        seen.add(entry.message)
        size = Size(
            size.messages + results + (other or not entry.parts),
            size.turns + starts_turn(entry),
            size.tokens + tokens[position],
        )
        sizes.append(size)
    return sizes[::-1]


def choose(transcript: Transcript, tokens: Sequence[int], keep: Keep) -> Cut | None:
    """The cut whose tail is at least as long as asked, at the start of a turn if one starts near.

    Where the asked tail would leave no head and no block stands before it yet, the nearest shorter safe cut is taken
    and says so. None: nothing can be summarised, or the block stands before the asked tail already.
    """
    safe = cuts(transcript, tokens)
    usable = [cut for cut in safe if cut.at > transcript.first]
    if not usable:
        return None
    if keep.nothing:
        return usable[-1]
    fitting = [cut for cut in (safe if transcript.ours else usable) if keep.met_by(cut.tail)]
    if not fitting:
        return None if transcript.ours else _shorter(usable)
    near = [cut for cut in fitting if cut.starts_turn and keep.within_slack(cut.tail)]
    cut = (near or fitting)[-1]
    return cut if cut.at > transcript.first else None


def _shorter(usable: Sequence[Cut]) -> Cut | None:
    cut = usable[0]
    if cut.tail.messages == 0:
        return None
    note = f"the tail asked for would leave no head; kept {cut.tail.messages} messages instead"
    return Cut(cut.at, cut.tail, cut.starts_turn, note)
