"""plan() and compact(): the way of the data, with no disk, network or clock of their own."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compactor import formats, split, verify
from compactor.budget import Fitted, fit
from compactor.catalog import window_of
from compactor.errors import InputError, ModelError, UsageError
from compactor.evidence import Evidence
from compactor.exchange import Usage
from compactor.fold import fold
from compactor.formats.base import Embedded, Format
from compactor.identifiers import identifiers
from compactor.ledger import Ledger, extract
from compactor.offline import left_out, offline, supplement
from compactor.redact import cleaned, redacted
from compactor.render import parse, render, shown
from compactor.repair import settle
from compactor.snapshot import Added, Constraint, Fact, Item, OpenLoop, Snapshot, Update
from compactor.spoken import force
from compactor.tokens import MESSAGE_TOKENS, Counter, counter_for
from compactor.transcript import ACKNOWLEDGEMENT, Entry, Note, Source, Transcript, ref, write
from compactor.trigger import DEFAULT_AT, due

if TYPE_CHECKING:  # what only a model needs is loaded when one is asked
    from compactor.summarize import Asked, Asking, Task

FOCUS = 60.0
"""What an identifier weighs more when the user asked to look at it."""
LEAST_SUMMARY, MOST_SUMMARY, SHARE = 600, 8_000, 10
"""The block's budget by default: a tenth of what it stands for, between these."""
MOST_OF_IT = 0.75
"""Of what a block replaces, the share that code's own summary fills at most: beyond it nothing is gained."""
GROWTH = 25
"""With each fold an earlier block may grow by one part in so many: in ten folds by less than half."""


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    keep: split.Keep = split.Keep()
    budget: int | None = None
    """Compact only when the conversation has reached `at` of so many tokens; 0 is the recorded model's window."""
    at: float = DEFAULT_AT
    max_summary: int | None = None
    focus: str = ""
    pins: tuple[str, ...] = ()
    """Refs, or regular expressions: entries whose words stay in the summary whole."""
    block_role: str = ""
    session: str = ""
    """A session id for the result, where its format has one."""
    record: str = ""
    """Where the full record is, as the block says it."""
    recall: str = ""
    """The command that shows what the block doesn't."""
    redact: bool = True
    """Whether secrets are masked in all but the transcript's own bytes."""
    allow_findings: bool = False
    """Whether a summary is written that the checks find wrong; an output that isn't whole never is."""


@dataclass(frozen=True)
class Sizes:
    """Tokens before, by what becomes of them."""

    total: int = 0
    fixed: int = 0
    earlier: int = 0
    """The earlier summary, ours or the client's."""
    head: int = 0
    """What is summarised now, without the earlier summary."""
    tail: int = 0


@dataclass(frozen=True)
class Plan:
    """What would be done with one conversation, and why."""

    source: Source
    position: int
    transcript: Transcript
    counter: Counter
    sizes: Sizes
    cut: split.Cut | None
    reason: str = ""
    """Why nothing is to be done; empty when something is."""
    previous: Snapshot | None = None
    limit: int = 0
    """Tokens the block may take."""
    findings: tuple[verify.Finding, ...] = ()
    """What of the earlier block couldn't be taken over."""

    @property
    def head(self) -> list[Entry]:
        """The entries to be summarised now: what the ledger hasn't seen in an earlier block."""
        end = self.cut.at if self.cut else self.transcript.first
        live = [self.transcript.entries[i] for i in self.transcript.live[:end]]
        past = [self.transcript.entries[i] for i in self.transcript.past]
        return [*past, *live[self.transcript.fixed + (self.transcript.summarised if self.transcript.ours else 0) :]]


@dataclass(frozen=True)
class Outcome:
    """What came of one conversation."""

    plan: Plan
    changed: bool
    reason: str = ""
    """Why nothing changed, or why the result was refused."""
    refused: bool = False
    snapshot: Snapshot | None = None
    block: str = ""
    verdict: verify.Verdict = verify.Verdict()
    asked: "Asked | None" = None
    """What asking a model took; None where none was asked, or all failed."""
    added: int = 0
    """Items that code added to what the model wrote."""
    wasted: Usage = Usage()
    """What was spent on models that failed, where the summary is code's alone."""
    tokens_after: int = 0
    edits: tuple[Note, ...] = ()
    repaired: frozenset[int] = frozenset()
    """Indexes of kept entries that lost an orphan result."""
    gone: frozenset[int] = frozenset()
    """Those of them that held nothing else, and aren't written."""
    data: bytes = b""
    """The conversation's new bytes, where it changed."""


@dataclass(frozen=True)
class Compacted:
    """What came of a source."""

    source: Source
    outcomes: tuple[Outcome, ...]
    data: bytes
    """The new transcript; the source's own bytes where nothing changed or something was refused."""

    @property
    def refused(self) -> bool:
        return any(outcome.refused for outcome in self.outcomes)

    @property
    def changed(self) -> bool:
        return not self.refused and any(outcome.changed for outcome in self.outcomes)


FindPrevious = Callable[[Source, Transcript], Snapshot | None]


def plan(source: Source, position: int, options: Options, find: FindPrevious | None = None) -> Plan:
    """What would be done with the conversation at that position; `find` looks for the snapshot behind its block."""
    if not 0 <= position < len(source.transcripts):
        message = f"{source.name}: no conversation {position + 1}; it holds {len(source.transcripts)}"
        raise UsageError(message)
    _check_role(source, options.block_role)
    transcript = source.transcripts[position]
    counter = counter_for(transcript.model)
    tokens = [counter.entry(transcript.entries[i]) for i in transcript.live]
    cut = split.choose(transcript, tokens, options.keep)
    sizes = _sizes(transcript, tokens, cut)
    reason = _not_due(transcript, sizes, options) or ("" if cut else _no_head(transcript, sizes))
    previous, findings = _previous(source, transcript, find) if cut and not reason else (None, ())
    previous = cleaned(previous) if previous and options.redact else previous
    limit = options.max_summary or _default_limit(transcript, sizes)
    return Plan(source, position, transcript, counter, sizes, cut, reason, previous, limit, findings)


def _check_role(source: Source, role: str) -> None:
    usual = _format(source.format).block_role
    known = ("system", "developer", "user") if usual == "system" else (usual,)
    if role and role not in known:
        message = f"{source.name}: no block role {role!r} in {source.format}; it takes {', '.join(known)}"
        raise UsageError(message)


def _default_limit(transcript: Transcript, sizes: Sizes) -> int:
    """A tenth of the head; an earlier block of ours keeps its size, and grows but a little with each fold."""
    head, earlier = sizes.head // SHARE, sizes.earlier if transcript.ours else 0
    head += 0 if transcript.ours else sizes.earlier // SHARE
    limit = max(head, earlier) + min(head, earlier) // GROWTH
    return min(max(limit, LEAST_SUMMARY), MOST_SUMMARY)


def _sizes(transcript: Transcript, tokens: Sequence[int], cut: split.Cut | None) -> Sizes:
    at = cut.at if cut else transcript.first
    return Sizes(
        total=sum(tokens),
        fixed=sum(tokens[: transcript.fixed]),
        earlier=sum(tokens[transcript.fixed : transcript.first]),
        head=sum(tokens[transcript.first : at]),
        tail=sum(tokens[at:]),
    )


def _not_due(transcript: Transcript, sizes: Sizes, options: Options) -> str:
    if options.budget is None:
        return ""
    budget = options.budget or window_of(transcript.model)
    if not budget:
        known = f"model {transcript.model!r} is not in the price table" if transcript.model else "it names no model"
        message = f"the session's context window is unknown ({known}); give --budget TOKENS"
        raise UsageError(message)
    return due(max(sizes.total, transcript.usage), budget, options.at)


def _no_head(transcript: Transcript, sizes: Sizes) -> str:
    if not transcript.live:
        return "it holds no messages"
    if transcript.ours:
        return f"nothing was added before the tail asked for ({sizes.total:,} tokens in all)"
    return f"no safe cut leaves anything to summarise ({sizes.total:,} tokens in all)"


def _previous(
    source: Source, transcript: Transcript, find: FindPrevious | None
) -> tuple[Snapshot | None, tuple[verify.Finding, ...]]:
    """The snapshot behind the conversation's block, and what of it isn't known."""
    block = block_of(transcript)
    if not block:
        return None, ()
    found = find(source, transcript) if find else None
    if found:
        return found, ()
    parsed = parse(block)
    return parsed.snapshot, tuple(_lost(sum(parsed.hidden.values()), len(parsed.unread)))


def block_of(transcript: Transcript) -> str:
    """The text of the block of ours that the conversation begins with; empty where there is none."""
    return transcript.entries[transcript.live[transcript.fixed]].text if transcript.ours else ""


def _lost(hidden: int, unread: int) -> Iterator[verify.Finding]:
    if hidden:
        message = f"{hidden} items of the earlier block weren't found: no summary file of it beside the transcript"
        yield verify.Finding("earlier", "warning", message, "put it there, or name it with --summary")
    if unread:
        message = f"the earlier block was edited: {unread} lines not understood"
        yield verify.Finding("earlier", "warning", message, "their words are left out of the new one")


def unmatched_pins(plans: Sequence[Plan], pins: Sequence[str]) -> list[str]:
    """The pins that match nothing in any of these conversations."""
    return [pin for pin in pins if not any(_pins_something(planned, pin) for planned in plans)]


def _pins_something(planned: Plan, pin: str) -> bool:
    story = planned.transcript.story()
    return any(next(_pinned(entry, planned.source.short, [pin]), None) for entry in story)


def compact(
    source: Source,
    options: Options,
    select: Sequence[int] = (),
    find: FindPrevious | None = None,
    asking: "Asking | None" = None,
) -> Compacted:
    """Compact the conversations of a source (those at the selected positions, by default all).

    `asking` says which models to ask; without it the summary is code's alone. Raises ModelError where they fail.
    """
    source = redacted(source) if options.redact else source
    chosen = list(select) or range(len(source.transcripts))
    plans = [plan(source, position, options, find) for position in chosen]
    outcomes = tuple(_compact_one(planned, options, asking) for planned in plans)
    replaced = {o.plan.position: o.data for o in outcomes if o.changed and not o.refused}
    if not replaced or any(outcome.refused for outcome in outcomes):
        return Compacted(source, outcomes, source.raw)
    data = write(source, replaced)
    checked = _check_output(source, outcomes, data)
    refused = any(outcome.refused for outcome in checked)
    return Compacted(source, checked, source.raw if refused else data)


def _compact_one(planned: Plan, options: Options, asking: "Asking | None") -> Outcome:
    if planned.reason or not planned.cut:
        return Outcome(planned, False, planned.reason, tokens_after=planned.sizes.total)
    if asking and (reason := _too_little(planned, options)):
        return Outcome(planned, False, reason, tokens_after=planned.sizes.total)
    ledger = extract(planned.source.short, planned.head)
    written = _written(planned, ledger, options, asking)
    fitted = _fitted(planned, written.snapshot, ledger, options)
    block = render(
        fitted.snapshot, planned.source.short, record=options.record, recall=options.recall, short=fitted.short
    )
    findings = [
        *written.verdict.findings,
        *planned.findings,
        *verify.block_stands(fitted.snapshot, block, fitted.short),
        *verify.within_budget(fitted.tokens, planned.limit, fitted.over),
    ]
    missing = tuple(verify.coverage(fitted.snapshot, ledger))
    verdict = replace(written.verdict, findings=tuple(findings), missing=missing)
    outcome = Outcome(planned, False, snapshot=fitted.snapshot, block=block, verdict=verdict, asked=written.asked,
                      added=written.added, wasted=written.wasted)  # fmt: skip
    bars = [error for error in verdict.errors if not options.allow_findings or error.check in verify.NEVER_ALLOWED]
    if bars:
        cure = (
            "" if {bar.check for bar in bars} & verify.NEVER_ALLOWED else " (--allow-findings writes it all the same)"
        )
        return replace(outcome, reason=f"{verify.words_of(bars)}{cure}", refused=True)
    embedded = _embed(planned, block, options)
    outcome = replace(
        outcome, changed=True, edits=embedded.edits, repaired=embedded.repaired, gone=embedded.gone, data=embedded.data
    )
    return _unless_smaller(outcome, (block, ACKNOWLEDGEMENT) if embedded.acknowledged else (block,))


def _too_little(planned: Plan, options: Options) -> str:
    """Why no summary could be smaller than what it replaces: that is known before a model is paid; else empty."""
    least = _framed(planned, Snapshot(), options)
    before = planned.sizes.earlier + planned.sizes.head
    return f"not smaller: {before:,} tokens would become {least:,} at least" if before <= least else ""


@dataclass(frozen=True)
class _Written:
    """A snapshot, checked and mended, and how it came about."""

    snapshot: Snapshot
    verdict: verify.Verdict
    asked: "Asked | None" = None
    added: int = 0
    wasted: Usage = Usage()


def _written(planned: Plan, ledger: Ledger, options: Options, asking: "Asking | None") -> _Written:
    if not asking:
        return _offline(planned, ledger, options)
    from compactor import summarize

    try:
        asked = summarize.ask(task(planned, ledger), asking)
    except ModelError as error:
        if not asking.fallback_offline:
            raise
        written = _offline(planned, ledger, options)
        failed = verify.Finding("model", "warning", str(error), "the summary is code's alone (--fallback offline)")
        verdict = replace(written.verdict, findings=(*written.verdict.findings, failed))
        return replace(written, verdict=verdict, wasted=error.paid or Usage())
    snapshot, verdict = _settled(planned, _pinned_too(asked.snapshot, planned, options), ledger)
    return _supplemented(planned, _Written(snapshot, verdict, asked), ledger, options)


def _offline(planned: Plan, ledger: Ledger, options: Options) -> _Written:
    folded = fold(planned.previous, offline_update(planned, ledger, options))
    return _Written(*_settled(planned, _pinned_too(folded, planned, options), ledger))


def task(planned: Plan, ledger: Ledger) -> "Task":
    """What a model is to summarise."""
    from compactor.summarize import Task

    assert planned.cut
    transcript, at = planned.transcript, planned.cut.at
    live = [transcript.entries[i] for i in transcript.live]
    following = [words for entry in live[at:] for words in _in_words(entry)]
    return Task(planned.source, planned.head, ledger, planned.previous, planned.limit, following, live[:at],
                transcript.model)  # fmt: skip


def _in_words(entry: Entry) -> Iterator[str]:
    """What a kept message is, in a word or two."""
    for part in entry.parts:
        if part.kind in ("call", "result"):
            yield f"{part.kind} {part.name}".strip()
        elif part.kind == "text":
            yield {"human": "the user", "assistant": "the agent"}.get(part.speaker, part.speaker)


def _supplemented(planned: Plan, written: _Written, ledger: Ledger, options: Options) -> _Written:
    """With what the ledger knows and the model left out: the user's rules, then as much as the budget has room for."""
    before = len(list(written.snapshot.items()))
    bound = fold(written.snapshot, left_out(ledger, written.snapshot))
    frame = _framed(planned, Snapshot(), options) - planned.counter.text(render(Snapshot(), planned.source.short))
    budget = planned.limit - frame - planned.counter.text("\n")
    more = supplement(_focused(ledger, options.focus), bound, budget, planned.counter.text, planned.source.short)
    snapshot, verdict = _settled(planned, fold(bound, more), ledger)
    verdict = replace(verdict, repaired=(*written.verdict.repaired, *verdict.repaired))
    return replace(written, snapshot=snapshot, verdict=verdict, added=len(list(snapshot.items())) - before)


def _framed(planned: Plan, snapshot: Snapshot, options: Options) -> int:
    """The tokens of a snapshot's block."""
    block = render(shown(snapshot), planned.source.short, record=options.record, recall=options.recall)
    return planned.counter.text(block)


def _unless_smaller(outcome: Outcome, added: Sequence[str]) -> Outcome:
    """The outcome, unchanged where it isn't smaller than what it replaces (law 8)."""
    sizes, transcript = outcome.plan.sizes, outcome.plan.transcript
    new = sum(outcome.plan.counter.text(text) + MESSAGE_TOKENS for text in added)
    tokens = sizes.fixed + new + sizes.tail
    before, after = transcript.end - transcript.start, len(outcome.data)
    if tokens < sizes.total and after < before:
        return replace(outcome, tokens_after=tokens)
    reason = f"not smaller: {sizes.total:,} tokens would become {tokens:,}, {before:,} bytes {after:,}"
    return replace(outcome, changed=False, reason=reason, data=b"", tokens_after=sizes.total)


def offline_update(planned: Plan, ledger: Ledger, options: Options) -> Update:
    """The update that needs no model."""
    frame = planned.counter.text(render(Snapshot(), planned.source.short, record=options.record, recall=options.recall))
    bare = planned.counter.text(render(Snapshot(), planned.source.short))
    replaced = planned.sizes.earlier + planned.sizes.head
    budget = min(planned.limit, int(replaced * MOST_OF_IT)) - (frame - bare) - planned.counter.text("\n")
    return offline(
        _focused(ledger, options.focus), planned.previous, budget, planned.counter.text, planned.source.short
    )


def _focused(ledger: Ledger, focus: str) -> Ledger:
    """The ledger with more weight on what the user asked to look at."""
    wanted = {word.casefold() for word in re.findall(r"[\w./-]{3,}", focus)}
    if not wanted:
        return ledger
    weight = {k: v + (FOCUS if any(word in k.casefold() for word in wanted) else 0) for k, v in ledger.weight.items()}
    return replace(ledger, weight=weight)


def _pinned_too(snapshot: Snapshot, planned: Plan, options: Options) -> Snapshot:
    """The snapshot with what the user pinned folded in."""
    if not options.pins:
        return snapshot
    fields: dict[str, list[Item]] = {}
    for entry in planned.head:
        for name, item in _pinned(entry, planned.source.short, options.pins):
            fields.setdefault(name, []).append(item)
    return fold(snapshot, Update(add=Added.model_validate(fields)))


def _pinned(entry: Entry, source: str, pins: Sequence[str]) -> Iterator[tuple[str, Item]]:
    for number, part in enumerate(entry.parts, 1):
        here = ref(source, entry, number if len(entry.parts) > 1 else 0)
        if not part.text or not any(_matches(pin, part.text, here, ref(source, entry)) for pin in pins):
            continue
        if part.said:
            for said in part.said:
                yield "constraints", Constraint(text=said, quote=said, said_by="user", evidence=(here,), basis="stated")
        else:
            loop = OpenLoop(text=f"pinned: {part.text.strip()}", owner="user", next="keep in view", evidence=(here,))
            yield "open_loops", loop


def _matches(pin: str, text: str, here: str, entry: str) -> bool:
    if re.fullmatch(r"[0-9a-f]{8,64}:\d+(?:\.\d+)?(?:/\d+)?", pin):
        return pin in (here, entry)
    try:
        return bool(re.search(pin, text))
    except re.error as error:
        message = f"--pin {pin!r} is no ref and no regular expression: {error}"
        raise UsageError(message) from error


def _settled(planned: Plan, snapshot: Snapshot, ledger: Ledger) -> tuple[Snapshot, verify.Verdict]:
    given = verify.case(snapshot, Evidence([planned.source]), planned.previous, ledger)
    return settle(given, ref(planned.source.short, planned.head[-1]))


def _fitted(planned: Plan, snapshot: Snapshot, ledger: Ledger, options: Options) -> Fitted:
    def worth(item: Item) -> float:
        text = f"{item.text} {getattr(item, 'path', '')}"
        spoken = 0.0
        if (
            isinstance(item, Fact) and item.basis == "stated"
        ):  # of equal force the later goes: the earlier was relied on
            spoken = 1e9 * force(item.text) - int(item.id[1:])
        return spoken + sum(ledger.weight.get(found, 0.0) for found in set(identifiers(text)))

    size = planned.counter.text
    return fit(snapshot, planned.limit, size, worth, planned.source.short, options.record, options.recall)


def _format(name: str) -> Format:
    return formats.FORMATS[name] if name in formats.FORMATS else formats.formats()[name]


def _embed(planned: Plan, block: str, options: Options) -> Embedded:
    """The new bytes; a block that replaces another has its role, unless one is asked for."""
    writer, transcript = _format(planned.source.format), planned.transcript
    assert planned.cut
    role = options.block_role or (transcript.entries[transcript.live[transcript.fixed]].role if transcript.ours else "")
    return writer.embed(planned.source, transcript, planned.cut.at, block, role=role, session=options.session)


def _check_output(source: Source, outcomes: Sequence[Outcome], data: bytes) -> tuple[Outcome, ...]:
    """Read the output again and hold it to the promises; what isn't smaller than what it replaces is left as it was."""
    try:
        again = formats.read(data, source.name, source.format)
    except InputError as error:
        finding = verify.Finding("output", "error", f"it can't be read again: {error}", "report this as a bug")
        return tuple(_refuse(outcome, [finding]) for outcome in outcomes)
    if len(again.transcripts) != len(source.transcripts):
        finding = verify.Finding("output", "error", "it holds another number of conversations", "report this as a bug")
        return tuple(_refuse(outcome, [finding]) for outcome in outcomes)
    return tuple(_checked(o, again.transcripts[o.plan.position]) if o.changed else o for o in outcomes)


def _refuse(outcome: Outcome, findings: Sequence[verify.Finding]) -> Outcome:
    verdict = replace(outcome.verdict, findings=(*outcome.verdict.findings, *findings))
    return replace(outcome, changed=False, refused=True, reason=verify.words_of(verdict.errors), verdict=verdict)


def _checked(outcome: Outcome, after: Transcript) -> Outcome:
    tokens_after = sum(outcome.plan.counter.entry(after.entries[i]) for i in after.live)
    findings = list(output_stands(outcome, after))
    if findings:
        return _refuse(outcome, findings)
    return replace(outcome, tokens_after=tokens_after)


def output_stands(outcome: Outcome, after: Transcript) -> Iterator[verify.Finding]:
    """The output holds the fixed part, one block with the text it was given, and the tail, pairs whole."""
    planned, before = outcome.plan, outcome.plan.transcript
    assert planned.cut
    report = "report this as a bug"
    if not after.ours or after.entries[after.live[after.fixed]].text != outcome.block:
        yield verify.Finding("output", "error", "its block isn't found where it was put", report)
        return
    writer = _format(planned.source.format)
    for what, old, new in (
        ("fixed part", before.live[: before.fixed], after.live[: after.fixed]),
        ("tail", before.live[planned.cut.at :], after.live[after.first :]),
    ):
        if not _same(writer, [before.entries[i] for i in old], [after.entries[i] for i in new], outcome):
            yield verify.Finding("output", "error", f"its {what} isn't the one it had", report)
    live_before = [before.entries[i] for i in before.live[planned.cut.at :]]
    orphans = len(split.pair([after.entries[i] for i in after.live]).orphans)
    if orphans > len(split.pair(live_before).orphans):
        yield verify.Finding("output", "error", "a result lost its call", report)


def _same(writer: Format, old: Sequence[Entry], new: Sequence[Entry], outcome: Outcome) -> bool:
    """Whether the new entries are the old ones, but for those that lost an orphan result."""
    kept = [entry for entry in old if entry.index not in outcome.gone]
    return len(kept) == len(new) and all(
        entry.index in outcome.repaired or writer.same(entry, other) for entry, other in zip(kept, new, strict=True)
    )
