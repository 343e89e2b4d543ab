"""What fits into a request to a model, and what is in it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from compactor import head, hints, prompt, redact, verify
from compactor.catalog import Entry as Known
from compactor.errors import UsageError
from compactor.evidence import Evidence
from compactor.exchange import Request
from compactor.identifiers import exact, plain_words
from compactor.ledger import Ledger
from compactor.prompt import Place, Wish
from compactor.render import letters_of, line_of
from compactor.shorten import shorten
from compactor.snapshot import Snapshot
from compactor.tokens import MESSAGE_TOKENS, Counter
from compactor.transcript import Entry, Ref, Source
from compactor.windows import Window, windows

USUAL_WINDOW = 128_000
"""Of a model that LiteLLM's table doesn't know."""
LEAST_OUTPUT, MOST_OUTPUT, OUTPUT_PER_TOKEN = 2_000, 16_000, 4
OUTPUT_SHARE = 0.25
"""Tokens a reply may take: so many per token of the block, since it is JSON and some models reason first; of the
window at most this share."""
MARGIN = 0.08
"""The share of the window left free where our count is an estimate."""
LEAST_ROOM = 500
"""With less room than this for the transcript, no window makes sense."""
RECORD_SHARE = 0.2
"""The share of the window that the earlier record may take."""
HINTS_PER_TOKEN, MOST_HINTS = 0.6, 2_500
"""Tokens of hints per token of the block."""
CITED = 8_000
"""Characters of each cited entry, when it is told again."""
SPARE = 64
"""Tokens left free in every request, for what joining texts may cost."""

Messages = tuple[Mapping[str, str], ...]
Failed = Mapping[str, Sequence[verify.Finding]]


@dataclass(frozen=True)
class Task:
    """What is to be summarised."""

    source: Source
    story: Sequence[Entry]
    ledger: Ledger
    previous: Snapshot | None
    limit: int
    """Tokens that the block may take."""
    following: Sequence[str] = ()
    """What stays behind it, each message in a word or two."""
    prefix: Sequence[Entry] = ()
    """All that the agent was sent up to the cut, in order."""
    written_by: str = ""
    """The model that wrote the session; empty where unknown."""


@dataclass(frozen=True)
class Desk:
    """One task before one model: everything about its requests that needs no asking."""

    task: Task
    model: str
    known: Known
    """What is known of the model."""
    counter: Counter
    given_window: int = 0
    """Tokens of input and output together, as the user says; 0 for what is known."""
    wish: Wish = field(default_factory=Wish)
    tools: tuple[Mapping[str, Any], ...] = ()

    @property
    def window(self) -> int:
        return self.given_window or self.known.window or USUAL_WINDOW

    @property
    def assumed(self) -> bool:
        """Whether nobody says how large the window is."""
        return not (self.given_window or self.known.window)

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence([self.task.source])

    # -- sizes, in tokens

    @cached_property
    def output(self) -> int:
        """What a reply may take."""
        wanted = min(max(OUTPUT_PER_TOKEN * self.task.limit, LEAST_OUTPUT), MOST_OUTPUT)
        return max(min(wanted, self.known.output or wanted, int(OUTPUT_SHARE * self.window)), 1)

    def guess(self, count: int) -> int:
        """What each of so many replies will take, as a guess: its share of the model's part of the block, as JSON."""
        return min(int(2 * prompt.SHARE * self.task.limit / count) + 200, self.output)

    @property
    def room_in(self) -> int:
        """What a request may take."""
        margin = 0 if self.counter.exact else int(self.window * MARGIN)
        return self.window - self.output - margin

    def record_room(self, many: bool) -> int:
        """What the record so far may take: with many windows it grows."""
        now = self.counter.text(prompt.told(self.task.previous, self.task.source.short)) if self.task.previous else 0
        most = int(RECORD_SHARE * self.window)
        return min(max(now, self.task.limit) if many else now, most)

    @cached_property
    def hints_room(self) -> int:
        return min(int(HINTS_PER_TOKEN * self.task.limit), MOST_HINTS, self.window // 16)

    def tokens(self, messages: Messages) -> int:
        return sum(self.counter.text(message["content"]) + MESSAGE_TOKENS for message in messages)

    # -- what is asked

    @cached_property
    def told(self) -> head.Told:
        return head.tell(self.task.source.short, self.task.story, self.task.ledger, thinking=self.wish.thinking)

    @cached_property
    def told_apart(self) -> head.Told:
        """The same, where no window may refer to what another tells."""
        given = self.task
        return head.tell(given.source.short, given.story, given.ledger, fold=False, thinking=self.wish.thinking)

    def windows(self) -> list[Window]:
        """The head in windows that leave room for everything else that a request holds."""
        for many in (False, True):
            room = self._room(many)
            if room < LEAST_ROOM:
                message = (
                    f"a window of {self.window:,} tokens leaves too little for the transcript; "
                    f"give a --window of at least {self._enough():,}, or a model that has one"
                )
                raise UsageError(message)
            told = self.told_apart if many else self.told
            parts = windows(told.passages, self.task.story, room, self.counter.text)
            if len(parts) == 1:
                break
        return parts

    def _enough(self) -> int:
        """A window that leaves room for the transcript, in steps of 1,000 tokens."""
        return next(
            window for window in range(self.window // 1_000 * 1_000 + 1_000, 1_000_000, 1_000)
            if replace(self, given_window=window)._room(many=True) >= LEAST_ROOM
        )  # fmt: skip

    def _room(self, many: bool) -> int:
        place = Place(1, 99 if many else 1, self.told.ending, self.task.following)
        empty = self.tokens(self._messages("", place, Snapshot() if many or self.task.previous else None, "x"))
        return self.room_in - empty - self.record_room(many) - self.hints_room - SPARE

    def _messages(self, text: str, place: Place, record: Snapshot | None, found: str) -> Messages:
        source, room = self.task.source.short, self.record_room(place.count > 1)
        told = prompt.told(record, source, room, self.counter.text) if record else ""
        return prompt.messages(text, place, source, told, found, self.task.limit, self.wish, merge=bool(record))

    def request(self, window: Window, number: int, count: int, record: Snapshot | None) -> Request:
        """The request for one window, with what is recorded already."""
        found = hints.hints(self.task.ledger, window.labels, self.hints_room, self.counter.text)
        place = Place(number, count, self.told.ending, self.task.following)
        messages = self._messages(window.text, place, record, found)
        tokens = self.tokens(messages)
        if tokens > self.room_in:  # words that bind took more than the room for what code found
            messages = self._messages(window.text, place, record, "")
            tokens = self.tokens(messages)
        return Request(messages, self.output, prompt.schema(), tokens=tokens)

    def prefixed(self) -> Request | None:
        """The request that sends the original messages, with the instruction behind them; None where it doesn't fit.

        Raises UsageError where there is no such prefix, or another model wrote it.
        """
        given, short = self.task, self.task.source.short
        if reason := self._no_prefix():
            message = f"--reuse-prefix: {reason}; leave it out"
            raise UsageError(message)
        place = Place(1, 1, self.told.ending, given.following)
        labels = frozenset(passage.label for passage in self.told.passages)
        found = hints.hints(given.ledger, labels, self.hints_room, self.counter.text)
        record = prompt.told(given.previous, short) if given.previous else ""
        last = prompt.behind(head.index(short, given.story), place, record, found, given.limit, self.wish,
                             merge=bool(record))  # fmt: skip
        tokens = self.counter.entries(given.prefix) + self.tokens((last,)) + self.counter.text(str(list(self.tools)))
        if tokens > self.room_in:
            return None
        messages = tuple(json.loads(entry.raw.strip().rstrip(b",")) for entry in given.prefix)
        return Request((*messages, last), self.output, prompt.schema(), self.tools, tokens=tokens)

    def _no_prefix(self) -> str:
        """Why the provider can't hold the session's messages, or mustn't get them again; empty where it may."""
        if masked := redact.lines(self.task.prefix):
            return f"its messages hold secrets (line {masked[0]}), which no model is sent without --no-redact"
        form, writer = self.task.source.format, self.task.written_by
        if form != "openai":
            return f"a {form} session doesn't hold what its prefix begins with (system prompt, tools)"
        if writer and writer.rsplit("/", 1)[-1] != self.model.rsplit("/", 1)[-1]:
            return f"{writer} wrote the session, and {self.model} is asked"
        return ""

    # -- asked again

    def again(self, snapshot: Snapshot, failed: Failed, problems: Sequence[str]) -> Request:
        """The request for items that failed the checks, and for those that couldn't be read, with what they cite."""
        letters = letters_of(snapshot, self.task.source.short)
        listed = list(problems)
        refs: list[str] = []
        for name, item in snapshot.items():
            if item.id in failed:
                why = "; ".join(f"{finding.message}: {finding.cure}" for finding in failed[item.id])
                listed.append(f"{name}: {line_of(name, item, letters).removeprefix('- ')} FAILED: {why}")
                refs += verify.refs_of(item)
        listed = self._bounded(listed)
        room = self.room_in - self.tokens(prompt.again(listed, "", self.task.source.short)) - SPARE
        said = "\n".join(listed)
        wanted = {**dict.fromkeys(plain_words(said), 0.1), **dict.fromkeys(exact(said), 1.0)}
        messages = prompt.again(listed, self._cited(refs, wanted, room), self.task.source.short)
        return Request(messages, self.output, prompt.schema(), tokens=self.tokens(messages))

    def _bounded(self, listed: Sequence[str]) -> list[str]:
        """As many of the items as half a request holds; the others are left to code."""
        left, kept = self.room_in // 2, list[str]()
        for line in listed:
            left -= self.counter.text(line) + 1
            if left < 0:
                break
            kept.append(line)
        return kept

    def _cited(self, refs: Sequence[str], wanted: Mapping[str, float], room: int) -> str:
        """The entries that some items cite, told again in `room` tokens: of long ones what has the wanted words."""
        told: list[str] = []
        for ref in dict.fromkeys(str(Ref.parse(ref).entry) for ref in refs):
            parts = self.evidence.parts(ref)
            text = "\n".join(f"{part.speaker}, {part.kind}: {part.text}" for part in parts if part.text)
            text = f"[{ref.partition(':')[2]}] {shorten(text, CITED, wanted)}"
            room -= self.counter.text(text) + 2
            if room < 0:
                break
            told.append(text)
        return "\n\n".join(told)
