"""Ask a model: window by window, read, fold, check, ask again for what failed.

The model writes updates; code folds them, makes good what the transcript bears, and adds what the ledger knows and the
model left out. What a model says is foreign input all along.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event, Lock
from typing import Any

import orjson

from compactor import catalog, head, hints, language, prompt, reply, verify
from compactor.errors import CutOffError, ModelError, TooLongError, UsageError
from compactor.evidence import Evidence
from compactor.exchange import Model, Reply, Request, Usage
from compactor.fold import fold
from compactor.ground import Ground
from compactor.identifiers import exact, plain_words
from compactor.ledger import Ledger
from compactor.prompt import Place, Wish
from compactor.render import letters_of, line_of
from compactor.shorten import shorten
from compactor.snapshot import FIELDS, Added, Item, Snapshot, Update
from compactor.tokens import MESSAGE_TOKENS, Counter, counter_for
from compactor.transcript import Entry, Ref, Source
from compactor.windows import Window, narrower, windows

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
REPAIRS = 2
"""How often items that failed the checks are asked for again."""
CITED = 8_000
"""Characters of each cited entry, when it is told again."""
PARALLEL = 4
SPOKEN = 12
"""So many of the user's last statements tell in which language they write."""
SPARE = 64
"""Tokens left free in every request, for what joining texts may cost."""
ASKED_AGAIN = frozenset((
    "refs", "evidence", "quotes", "identifiers", "proof", "basis", "artifacts", "authority", "denied", "approval",
    "copied",
))  # fmt: skip
"""The checks whose findings a model can mend."""

Messages = tuple[Mapping[str, str], ...]
Failed = Mapping[str, Sequence[verify.Finding]]


@dataclass(frozen=True)
class Asking:
    """Whom to ask, and how."""

    models: tuple[Model, ...]
    """The first is asked; each further one when those before it failed."""
    fallback_offline: bool = False
    window: int = 0
    """Tokens of input and output together; 0 for what is known of the model."""
    parallel: bool = False
    max_cost: float | None = None
    """US dollars; no call is made that may pass it."""
    wish: Wish = Wish()
    reuse_prefix: bool = False
    """Whether to send the original messages as they are, with the instruction behind them: where the same model wrote
    the session, the provider may still hold them in its cache."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools that the session was written with: they are part of such a prefix."""
    tell: Callable[[str], None] = lambda _: None
    """Is told what is being waited for."""
    cancel: Event | None = None
    """Once it is set nothing further is asked."""


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
class Asked:
    """What came of asking."""

    snapshot: Snapshot
    model: str
    prompt_hash: str
    usage: Usage
    windows: int
    asked_again: int = 0
    """Items that failed the checks and were asked for again."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outline:
    """What asking a model would take, before anything is spent."""

    model: str
    window: int
    known: bool
    """Whether the window is, or only assumed."""
    requests: tuple[Request, ...]
    tokens_out: int
    """Tokens of all replies together, as a guess."""
    cost: float | None

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def tokens_in(self) -> int:
        return sum(request.tokens for request in self.requests)


def outline(task: Task, asking: Asking, name: str = "") -> Outline:
    """The calls that the first model would get, or the one named, with the price; nothing is asked.

    Later windows tell the record as it stands now: what earlier replies would add to it isn't known.
    """
    desk = _Desk(task, asking, asking.models[0] if asking.models else _Nobody(name), Usage())
    prefix = desk.prefixed() if asking.reuse_prefix else None
    parts = [] if prefix else desk.windows()
    requests = (prefix,) if prefix else tuple(
        desk.request(w, k, len(parts), task.previous) for k, w in enumerate(parts, 1))  # fmt: skip
    out = len(requests) * desk.guess(len(requests))
    cost = desk.entry.cost(sum(request.tokens for request in requests), out)
    return Outline(desk.model.name, desk.window, desk.known, requests, out, cost)


@dataclass(frozen=True)
class _Nobody:
    """A model that is looked up and never asked."""

    name: str

    def complete(self, request: Request) -> Reply:
        message = "no model is named; -m MODEL names one"
        raise UsageError(message)

    def accepted(self, request: Request) -> None:
        """Nothing was asked."""


def ask(task: Task, asking: Asking) -> Asked:
    """The snapshot that the first model gives which doesn't fail; raises ModelError where all fail."""
    failures: list[tuple[str, ModelError]] = []
    spent = Usage()
    for model in asking.models:
        desk = _Desk(task, asking, model, spent)
        try:
            asked = desk.ask()
        except ModelError as error:
            failures.append((model.name, error))
            spent = desk.usage
            continue
        notes = [f"{name} failed: {error}" for name, error in failures]
        return replace(asked, notes=(*notes, *asked.notes))
    if len(failures) == 1:
        raise failures[0][1]
    message = "; ".join(f"{name}: {error}" for name, error in failures)
    raise ModelError(message) from failures[-1][1]


class _Desk:
    """One model at work on one task: what fits into a request, and what came of it so far."""

    def __init__(self, task: Task, asking: Asking, model: Model, spent: Usage) -> None:
        self.task, self.asking, self.model = task, asking, model
        self.entry = catalog.lookup(model.name)
        self.window = asking.window or self.entry.window or USUAL_WINDOW
        self.counter: Counter = counter_for(model.name)
        self.evidence = Evidence([task.source])
        self.ground = Ground(task.source.short, task.story, task.ledger, self.evidence)
        self.usage, self.again, self.retold = spent, 0, False
        self.notes: dict[str, None] = {}
        self.lock = Lock()
        if asking.max_cost is not None and self.entry.cost(1, 1) is None:
            message = f"--max-cost: the price of {model.name} is unknown; leave it out, or name another model"
            raise UsageError(message)
        if not self.known and not model.name.startswith("scripted:"):
            self._note(f"the window of {model.name} is unknown: {self.window:,} tokens assumed (--window)")

    @property
    def known(self) -> bool:
        return bool(self.asking.window or self.entry.window)

    def _note(self, text: str) -> None:
        self.notes[text] = None

    # -- sizes, in tokens

    @cached_property
    def output(self) -> int:
        """What a reply may take."""
        wanted = min(max(OUTPUT_PER_TOKEN * self.task.limit, LEAST_OUTPUT), MOST_OUTPUT)
        return max(min(wanted, self.entry.output or wanted, int(OUTPUT_SHARE * self.window)), 1)

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
        return head.tell(self.task.source.short, self.task.story, self.task.ledger)

    def windows(self) -> list[Window]:
        """The head in windows that leave room for everything else that a request holds."""
        for many in (False, True):
            room = self._room(many)
            if room < LEAST_ROOM:
                message = (
                    f"a window of {self.window:,} tokens leaves {max(room, 0):,} for the transcript; "
                    "give a larger --window, or a model that has one"
                )
                raise UsageError(message)
            parts = windows(self.told.passages, self.task.story, room, self.counter.text)
            if len(parts) == 1:
                break
        return parts

    def _room(self, many: bool) -> int:
        place = Place(1, 99 if many else 1, self.told.ending, self.task.following)
        empty = self.tokens(self._messages("", place, Snapshot() if many or self.task.previous else None, "x"))
        return self.room_in - empty - self.record_room(many) - self.hints_room - SPARE

    def _messages(self, text: str, place: Place, record: Snapshot | None, found: str) -> Messages:
        source, room = self.task.source.short, self.record_room(place.count > 1)
        told = prompt.told(record, source, room, self.counter.text) if record else ""
        return prompt.messages(text, place, source, told, found, self.task.limit, self.asking.wish, merge=bool(record))

    def request(self, window: Window, number: int, count: int, record: Snapshot | None) -> Request:
        """The request for one window, with what is recorded already."""
        found = hints.hints(self.task.ledger, window.labels, self.hints_room, self.counter.text)
        place = Place(number, count, self.told.ending, self.task.following)
        messages = self._messages(window.text, place, record, found)
        return Request(messages, self.output, prompt.schema(), tokens=self.tokens(messages))

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
        last = prompt.behind(head.index(short, given.story), place, record, found, given.limit, self.asking.wish,
                             merge=bool(record))  # fmt: skip
        tokens = self.counter.entries(given.prefix) + self.tokens((last,))
        if tokens > self.room_in:
            self._note("the original messages don't fit into the model's window: told in parts instead")
            return None
        messages = tuple(orjson.loads(entry.raw.strip().rstrip(b",")) for entry in given.prefix)
        return Request((*messages, last), self.output, prompt.schema(), self.asking.tools, tokens=tokens)

    def _no_prefix(self) -> str:
        """Why the provider can't hold the session's messages; empty where it may."""
        form, writer = self.task.source.format, self.task.written_by
        if form != "openai":
            return f"a {form} session doesn't hold what its prefix begins with (system prompt, tools)"
        if writer and writer.rsplit("/", 1)[-1] != self.model.name.rsplit("/", 1)[-1]:
            return f"{writer} wrote the session, and {self.model.name} is asked"
        return ""

    # -- asking

    def ask(self) -> Asked:
        """The snapshot of all windows, checked and mended."""
        prefix = self.prefixed() if self.asking.reuse_prefix else None
        parts = [] if prefix else self.windows()
        snapshot, problems = self.task.previous or Snapshot(), list[str]()
        reads = [self._read(prefix, self.task.previous)] if prefix else list(self._all(parts))
        if not any(read.update != Update() or read.problems for read in reads):
            reply.nothing()
        for read in reads:
            snapshot = fold(snapshot, self.ground.update(read.update))
            problems += read.problems
        snapshot = self._mended(snapshot, problems)
        return Asked(snapshot, self.model.name, self.asking.wish.hash, self.usage, len(reads), self.again,
                     tuple(self.notes))  # fmt: skip

    def _all(self, parts: Sequence[Window]) -> Iterator[reply.Read]:
        if not self.asking.parallel or len(parts) == 1:
            record = self.task.previous
            for number, window in enumerate(parts, 1):
                for read in self._reads(window, number, len(parts), record):
                    record = fold(record, self.ground.update(read.update))
                    yield read
            return
        pool = ThreadPoolExecutor(PARALLEL)
        asked = [pool.submit(self._reads, window, number, len(parts), self.task.previous)
                 for number, window in enumerate(parts, 1)]  # fmt: skip
        try:
            for future in asked:
                yield from future.result()
        finally:  # one that failed, or an interrupt, waits for none of the others
            pool.shutdown(wait=False, cancel_futures=True)

    def _reads(self, window: Window, number: int, count: int, record: Snapshot | None) -> list[reply.Read]:
        """What the model says of a window; of its halves, where it turns out not to fit."""
        request = self.request(window, number, count, record)
        try:
            return [self._in_language(request, record, self._read(request, record, part=count > 1), count > 1)]
        except TooLongError:
            room = window.tokens // 2
            if room < LEAST_ROOM:
                raise
            self.notes[
                f"part {number} of {count} didn't fit into {self.model.name}'s window: asked in smaller ones"
            ] = None
            halves = narrower(window, room, self.counter.text)
            return [read for half in halves for read in self._reads(half, number, count, record)]

    def _in_language(self, request: Request, record: Snapshot | None, read: reply.Read, part: bool) -> reply.Read:
        """The reply, or a second one where the first is in a language that the user doesn't write; once per session."""
        wrong = language.differ(self.spoken, _free_text(read.update))
        if not wrong or self.retold:
            return read
        self.retold = True
        first, last = request.messages
        content = f"{last['content']}\n\nThe user writes in {wrong[0]}: write the texts of the record in it as well."
        messages = (first, {**last, "content": content})
        again = self._read(replace(request, messages=messages, tokens=self.tokens(messages)), record, part=part)
        if language.differ(self.spoken, _free_text(again.update)):
            self._note(f"the summary is in {wrong[1]}, and the user writes in {wrong[0]}")
        return again

    @cached_property
    def spoken(self) -> str:
        """What the user said last, in their own words."""
        said = [piece for entry in self.task.story for part in entry.parts for piece in part.said]
        return "\n".join(said[-SPOKEN:])

    def _read(self, request: Request, record: Snapshot | None, *, part: bool = False) -> reply.Read:
        """The reply to a request, read; one that was cut off is asked for once more where it may be longer."""
        letters = letters_of(record, self.task.source.short) if record else {}
        answer = self._complete(request)
        try:
            read = reply.read(answer, self.task.source.short, letters, part=part)
        except CutOffError:
            longer = min(2 * request.max_tokens, self.entry.output or MOST_OUTPUT, self.window - request.tokens)
            if longer <= request.max_tokens:
                raise
            self._note("a reply was cut off: asked once more with more room for it")
            request = replace(request, max_tokens=longer)
            read = reply.read(self._complete(request), self.task.source.short, letters, part=part)
        self.model.accepted(request)
        return read

    def _complete(self, request: Request) -> Reply:
        if self.asking.cancel and self.asking.cancel.is_set():
            message = "cancelled: nothing further is asked"
            raise ModelError(message)
        with self.lock:
            self._afford(request)
        self.asking.tell(f"{self.model.name} reads {request.tokens:,} tokens")
        answer = self.model.complete(request)
        with self.lock:
            self.usage += answer.usage
            self.notes |= dict.fromkeys(answer.notes)
        return answer

    def _afford(self, request: Request) -> None:
        if self.asking.max_cost is None:
            return
        price = self.entry.cost(request.tokens, self.guess(1)) or 0.0
        spent = self.usage.cost or 0.0
        if spent + price > self.asking.max_cost:
            message = (
                f"the next call would cost about ${price:.4f}, which with ${spent:.4f} spent passes --max-cost "
                f"{self.asking.max_cost:g}; raise it, or name a cheaper model"
            )
            raise UsageError(message)

    # -- mending

    def _mended(self, snapshot: Snapshot, problems: Sequence[str]) -> Snapshot:
        """The snapshot after the model was asked again for the items that failed the checks, at most twice."""
        given_up = {item.id for _, item in (self.task.previous or Snapshot()).items()}
        for _ in range(REPAIRS):
            failed = {key: found for key, found in self._failed(snapshot).items() if key not in given_up}
            if not failed and not problems:
                break
            self.again += len(failed) + len(problems)
            try:
                read = self._read(self._again(snapshot, failed, problems), snapshot)
            except ModelError as error:
                self._note(f"asking again failed, code mended instead: {error}")
                break
            given_up |= set(failed) - {item.id for name, item in Snapshot(**dict(read.update.add)).items()}
            snapshot = _replaced(snapshot, self.ground.update(read.update), failed, new=bool(problems))
            problems = ()
        return snapshot

    def _failed(self, snapshot: Snapshot) -> dict[str, list[verify.Finding]]:
        """What the checks found that a model can mend, by item."""
        found: dict[str, list[verify.Finding]] = {}
        for finding in verify.verify(verify.case(snapshot, self.evidence, self.task.previous)).errors:
            if finding.item and finding.check in ASKED_AGAIN:
                found.setdefault(finding.item, []).append(finding)
        return found

    def _again(self, snapshot: Snapshot, failed: Failed, problems: Sequence[str]) -> Request:
        letters = letters_of(snapshot, self.task.source.short)
        listed = list(problems)
        refs: list[str] = []
        for name, item in snapshot.items():
            if item.id in failed:
                why = "; ".join(f"{finding.message}: {finding.cure}" for finding in failed[item.id])
                listed.append(f"{name}: {line_of(name, item, letters).removeprefix('- ')} FAILED: {why}")
                refs += verify.refs_of(item)
        room = self.room_in - self.tokens(prompt.again(listed, "", self.task.source.short)) - SPARE
        said = "\n".join(listed)
        wanted = {**dict.fromkeys(plain_words(said), 0.1), **dict.fromkeys(exact(said), 1.0)}
        messages = prompt.again(listed, self._cited(refs, wanted, room), self.task.source.short)
        return Request(messages, self.output, prompt.schema(), tokens=self.tokens(messages))

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


def _free_text(update: Update) -> str:
    """What an update says in its author's words, quotes apart."""
    items = [item for _, item in Snapshot(**dict(update.add)).items() if not getattr(item, "quote", "")]
    return "\n".join(f"{item.text} {getattr(item, 'why', '')} {getattr(item, 'next', '')}" for item in items)


def _replaced(snapshot: Snapshot, update: Update, failed: Collection[str], *, new: bool) -> Snapshot:
    """The snapshot with mended items in place of those that failed; one that moved to another field leaves its own."""
    given = {item.id: (name, item) for name, item in Snapshot(**dict(update.add)).items() if item.id in failed}

    def mend(name: str, item: Item) -> Item | None:
        if item.id not in given:
            return item
        field, mended = given[item.id]
        kept = {"status": item.status, "by": item.by, "change": item.change}
        return mended.model_copy(update=kept) if field == name else None

    held = {item.id: name for name, item in snapshot.items()}
    moved = {name: tuple(item.model_copy(update={"id": ""}) for item in getattr(update.add, name)
                         if _is_new(held, name, item, new)) for name in FIELDS}  # fmt: skip
    return fold(snapshot.map(mend), Update(add=Added.model_validate(moved)))


def _is_new(held: Mapping[str, str], name: str, item: Item, new: bool) -> bool:
    """Whether a mended item comes in anew: it had no place yet, or another."""
    return held[item.id] != name if item.id in held else new
