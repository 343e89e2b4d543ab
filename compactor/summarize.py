"""Ask a model: window by window, read, fold, check, ask again for what failed.

The model writes updates; code folds them, makes good what the transcript bears, and adds what the ledger knows and the
model left out. What a model says is foreign input all along.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Event, Lock, Semaphore, Thread
from typing import Any

from compactor import catalog, language, reply, verify
from compactor.desk import LEAST_ROOM, MOST_OUTPUT, Desk, Task
from compactor.errors import CostError, CutOffError, ModelError, TooLongError, UsageError
from compactor.exchange import Model, Reply, Request, Usage
from compactor.fold import fold
from compactor.ground import Ground
from compactor.prompt import Wish
from compactor.render import letters_of
from compactor.snapshot import FIELDS, Added, Item, Snapshot, Update
from compactor.tokens import counter_for
from compactor.windows import Window, narrower

__all__ = ["Asked", "Asking", "Outline", "Task", "ask", "outline"]

REPAIRS = 2
"""How often items that failed the checks are asked for again."""
PARALLEL = 4
SPOKEN = 12
"""So many of the user's last statements tell in which language they write."""
ASKED_AGAIN = frozenset((
    "refs", "evidence", "quotes", "identifiers", "proof", "basis", "artifacts", "authority", "denied", "approval",
    "copied", "claimed", "support", "steers",
))  # fmt: skip
"""The checks whose findings a model can mend."""


class Purse:
    """What may be spent in US dollars, over all calls of a run: each reserves its most before it is made."""

    def __init__(self, most: float) -> None:
        self.most, self.spent = most, 0.0
        self._lock = Lock()

    def reserve(self, price: float) -> None:
        """Take a price out of the purse; raises CostError where it isn't in there any more."""
        with self._lock:
            if self.spent + price > self.most:
                message = (
                    f"the next call could cost ${price:.4f}, which with ${self.spent:.4f} spent passes --max-cost "
                    f"{self.most:g}; raise it, or name a cheaper model"
                )
                raise CostError(message)
            self.spent += price

    def settle(self, reserved: float, cost: float | None) -> None:
        """Put back what a call didn't take; of unknown cost is what was reserved."""
        with self._lock:
            self.spent += (reserved if cost is None else cost) - reserved


@dataclass(frozen=True)
class Asking:
    """Whom to ask, and how."""

    models: tuple[Model, ...]
    """The first is asked; each further one when those before it failed."""
    fallback_offline: bool = False
    window: int = 0
    """Tokens of input and output together; 0 for what is known of the model."""
    parallel: bool = False
    purse: Purse | None = None
    """What may be spent; no call is made that might pass it."""
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
    desk = desk_of(task, asking, asking.models[0].name if asking.models else name)
    prefix = desk.prefixed() if asking.reuse_prefix else None
    parts = [] if prefix else desk.windows()
    told = [desk.request(window, k, len(parts), task.previous) for k, window in enumerate(parts, 1)]
    requests = (prefix,) if prefix else tuple(told)
    out = len(requests) * desk.guess(len(requests))
    cost = desk.known.cost(sum(request.tokens for request in requests), out)
    return Outline(desk.model, desk.window, not desk.assumed, requests, out, cost)


def ask(task: Task, asking: Asking) -> Asked:
    """The snapshot that the first model gives which doesn't fail; raises ModelError where all fail."""
    failures: list[tuple[str, ModelError]] = []
    spent = Usage()
    for model in asking.models:
        exchange = None
        try:
            exchange = _Exchange(task, asking, model, spent)
            asked = exchange.ask()
        except ModelError as error:
            failures.append((model.name, error))
            spent = exchange.usage if exchange else spent
        except UsageError as error:
            if not failures:
                raise
            failures.append((model.name, ModelError(str(error))))  # it can't do what the first one could
        else:
            notes = [f"{name} failed: {str(error).removeprefix(f'{name}: ')}" for name, error in failures]
            return replace(asked, notes=(*notes, *asked.notes))
    told = [str(error) if str(error).startswith(f"{name}:") else f"{name}: {error}" for name, error in failures]
    last = failures[-1][1] if len(failures) == 1 else ModelError("; ".join(told))
    last.paid = spent
    raise last from failures[-1][1].__cause__


def desk_of(task: Task, asking: Asking, name: str) -> Desk:
    """The task before the model of that name; raises UsageError where its price must be known and isn't."""
    known = catalog.lookup(name)
    if asking.purse and known.cost(1, 1) is None:
        message = f"--max-cost: the price of {name} is unknown; leave it out, or name another model"
        raise UsageError(message)
    return Desk(task, name, known, counter_for(name), asking.window, asking.wish, asking.tools)


class _Exchange:
    """One model at work on one task, and what came of it so far."""

    def __init__(self, task: Task, asking: Asking, model: Model, spent: Usage) -> None:
        self.task, self.asking, self.model = task, asking, model
        self.desk = desk_of(task, asking, model.name)
        self.ground = Ground(task.source.short, task.story, task.ledger, self.desk.evidence)
        self.usage, self.again, self.retold = spent, 0, False
        self.notes: dict[str, None] = {}
        self.empty: list[Request] = []
        self.lock = Lock()
        if self.desk.assumed and not model.name.startswith("scripted:"):
            self._note(f"the window of {model.name} is unknown: {self.desk.window:,} tokens assumed (--window)")

    def _note(self, text: str) -> None:
        self.notes[text] = None

    # -- asking

    def ask(self) -> Asked:
        """The snapshot of all windows, checked and mended."""
        snapshot, problems = self.task.previous or Snapshot(), list[str]()
        reads = self._prefixed() or list(self._all(self.desk.windows()))
        if not any(read.update != Update() or read.problems for read in reads):
            reply.nothing()
        for request in self.empty:
            self.model.accepted(request)
        for read in reads:
            snapshot = fold(snapshot, self.ground.update(read.update))
            problems += read.problems
        snapshot = self._mended(snapshot, problems)
        return Asked(snapshot, self.model.name, self.asking.wish.hash, self.usage, len(reads), self.again,
                     tuple(self.notes))  # fmt: skip

    def _prefixed(self) -> list[reply.Read]:
        """What the model says of the original messages, where they are to be sent and fit; else nothing."""
        if not self.asking.reuse_prefix:
            return []
        first = self.model is self.asking.models[0]
        try:
            request = self.desk.prefixed()
            if request:
                return [self._read(request, self.task.previous)]
        except TooLongError:
            request = None
        except UsageError:
            if first:
                raise
        self._note("the original messages don't fit, or aren't this model's: told in parts instead")
        return []

    def _all(self, parts: Sequence[Window]) -> Iterator[reply.Read]:
        if not self.asking.parallel or len(parts) == 1:
            record = self.task.previous
            for number, window in enumerate(parts, 1):
                for read in self._reads(window, number, len(parts), record):
                    record = fold(record, self.ground.update(read.update))
                    yield read
            return
        count, record = len(parts), self.task.previous
        yield from _at_once([partial(self._reads, window, n, count, record) for n, window in enumerate(parts, 1)])

    def _reads(self, window: Window, number: int, count: int, record: Snapshot | None) -> list[reply.Read]:
        """What the model says of a window; of its halves, where it turns out not to fit."""
        request = self.desk.request(window, number, count, record)
        try:
            return [self._in_language(request, record, self._read(request, record, part=count > 1), count > 1)]
        except TooLongError:
            room = window.tokens // 2
            if room < LEAST_ROOM:
                raise
            name = self.model.name
            self._note(f"part {number} of {count} didn't fit into the window of {name}: asked in smaller ones")
            halves = narrower(window, room, self.desk.counter.text)
            return [read for half in halves for read in self._reads(half, number, count, record)]

    def _in_language(self, request: Request, record: Snapshot | None, read: reply.Read, part: bool) -> reply.Read:
        """The reply, or a second one where the first is in a language that the user doesn't write; once per session."""
        theirs, ours = self.language, language.of(_free_text(read.update))
        if not (theirs and ours) or theirs == ours or self.retold:
            return read
        self.retold = True
        first, last = request.messages
        content = f"{last['content']}\n\nThe user writes in {theirs}: write the texts of the record in it as well."
        messages = (first, {**last, "content": content})
        why = ""
        try:
            asked = replace(request, messages=messages, tokens=self.desk.tokens(messages))
            again = self._read(asked, record, part=part)
            if language.of(_free_text(again.update)) == theirs:
                return again
        except ModelError as error:
            why = f", and asking again failed: {error}"
        self._note(f"the summary is in {ours}, and the user writes in {theirs}{why}")
        return read

    @cached_property
    def language(self) -> str:
        """The language of most of what the user said last, pasted lines among it; empty where too little tells."""
        said = [piece for entry in self.task.story for part in entry.parts for piece in part.said][-SPOKEN:]
        known = Counter(found for piece in reversed(said) if (found := language.of(piece)))
        return known.most_common(1)[0][0] if known else language.of("\n".join(said))

    def _read(self, request: Request, record: Snapshot | None, *, part: bool = False) -> reply.Read:
        """The reply to a request, read; one that was cut off is asked for once more where it may be longer."""
        letters = letters_of(record, self.task.source.short) if record else {}
        answer = self._complete(request)
        try:
            read = reply.read(answer, self.task.source.short, letters, part=part)
        except CutOffError:
            longer = min(
                2 * request.max_tokens, self.desk.known.output or MOST_OUTPUT, self.desk.window - request.tokens
            )
            if longer <= request.max_tokens:
                raise
            self._note("a reply was cut off: asked once more with more room for it")
            request = replace(request, max_tokens=longer)
            read = reply.read(self._complete(request), self.task.source.short, letters, part=part)
        if read.update != Update() or read.problems:
            self.model.accepted(request)
        else:
            self.empty.append(request)  # good only if the other parts hold something
        return read

    def _complete(self, request: Request) -> Reply:
        if self.asking.cancel and self.asking.cancel.is_set():
            message = "cancelled: nothing further is asked"
            raise ModelError(message)
        most = self.desk.known.cost(request.tokens, request.max_tokens) or 0.0
        if self.asking.purse:
            self.asking.purse.reserve(most)
        self.asking.tell(f"{self.model.name} reads {request.tokens:,} tokens")
        usage = Usage(cost=0.0)
        try:
            answer = self.model.complete(request)
            usage = self._counted(request, answer)
        finally:
            if self.asking.purse:
                self.asking.purse.settle(most, usage.cost)
        with self.lock:
            self.usage += usage
            self.notes |= dict.fromkeys(answer.notes)
        return answer

    def _counted(self, request: Request, answer: Reply) -> Usage:
        """What a call took; by our own count where the model doesn't say."""
        usage = answer.usage
        if usage.reused or usage.tokens_in or usage.tokens_out:
            return usage
        return replace(usage, tokens_in=request.tokens, tokens_out=self.desk.counter.text(answer.text), about=True)

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
                read = self._read(self.desk.again(snapshot, failed, problems), snapshot)
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
        given = verify.case(snapshot, self.desk.evidence, self.task.previous, self.task.ledger)
        for finding in verify.verify(given).errors:
            if finding.item and finding.check in ASKED_AGAIN:
                found.setdefault(finding.item, []).append(finding)
        return found


def _at_once(calls: Sequence[Callable[[], list[reply.Read]]]) -> Iterator[reply.Read]:
    """What some calls give, in their order, a few of them at a time; after a failure none is begun any more.

    The threads are daemons: neither an interrupt nor the program's end waits for a request that is on its way.
    """
    places, failed = Semaphore(PARALLEL), Event()
    futures = [Future[list[reply.Read]]() for _ in calls]

    def work(call: Callable[[], list[reply.Read]], future: Future[list[reply.Read]]) -> None:
        with places:
            try:
                future.set_result([] if failed.is_set() else call())
            except BaseException as error:  # the caller's to handle, whatever it is
                failed.set()
                future.set_exception(error)

    for call, future in zip(calls, futures, strict=True):
        Thread(target=work, args=(call, future), daemon=True).start()
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in done:
        if error := future.exception():
            raise error
    for future in futures:
        yield from future.result()


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
