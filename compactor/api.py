"""The library: compaction inside an agent's own loop, on lists of messages.

    from compactor import ConvState, maybe_compact, render_context

    state = ConvState(messages)
    while True:
        state = maybe_compact(state, budget=128_000)
        reply = ask(render_context(state))
        state = replace(state, messages=[*state.messages, reply])

Messages are OpenAI chat or Anthropic messages, as dicts or as objects with `model_dump()`. Nothing is mutated, kept
messages are the same objects, nothing is written unless asked for.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from threading import Event
from typing import Any, Literal, Protocol, overload

import orjson

from compactor import formats, pipeline, split
from compactor.asking import OFFLINE, Ask, asking
from compactor.errors import CompactError, RefusedError, UsageError
from compactor.exchange import Model
from compactor.pipeline import Options, Outcome, Plan, Sizes
from compactor.render import render
from compactor.snapshot import Snapshot
from compactor.transcript import ACKNOWLEDGEMENT, Source, Transcript
from compactor.trigger import DEFAULT_AT, LEAST_GROWTH, due
from compactor.verify import Verdict

Message = Any
QUIETLY = Ask(log=False)
"""How a model is asked by default: with nothing kept on disk."""
log = logging.getLogger("compactor")


class Metrics(Protocol):
    """Where counts go: `context.compaction`, `.skipped`, `.refused`, `.tokens_saved`."""

    def increment(self, name: str, value: int = 1, **tags: str) -> None: ...


class _LogMetrics:
    def increment(self, name: str, value: int = 1, **tags: str) -> None:
        log.info("%s %d %s", name, value, tags)


@dataclass(frozen=True)
class Result:
    """What came of compacting a list."""

    messages: list[Message]
    """The list with the block in it; the same messages where nothing changed."""
    snapshot: Snapshot | None
    verdict: Verdict
    changed: bool
    reason: str
    """Why nothing changed; empty when something did."""
    usage: Mapping[str, Any]
    """Tokens `before`, `after` and of the `block`; where a model was asked, what that took, as in `exchange.Usage`."""


@dataclass(frozen=True)
class ConvState:
    """A conversation in a loop: the messages without any block, and the snapshot of what went before them."""

    messages: Sequence[Message]
    summary: Snapshot | None = None
    reason: str | None = None
    """What the last call did, or why it changed nothing; None where it had nothing to say."""
    last_tokens: int | None = None
    """Tokens to send right after the last compaction."""
    told: bool = False
    """Whether it has been said that the kept part alone exceeds the threshold."""
    block_role: str = ""
    """The role of the block: as given, else as the first compaction chooses it."""


def compact(
    messages: Sequence[Message],
    model: str | Model | None = None,
    keep: int = split.DEFAULT_KEEP,
    max_summary: int | None = None,
    *,
    focus: str = "",
    pins: Sequence[str] = (),
    block_role: str = "",
    previous: Snapshot | None = None,
    ask: Ask = QUIETLY,
    cancel: Event | None = None,
    redact: bool = True,
    allow_findings: bool = False,
) -> Result:
    """Compact a list of messages now, keeping at least `keep` of them verbatim.

    `model` is asked for the summary: a name as LiteLLM has it, or an object with `complete(request)`; without one the
    summary is code's alone. `ask` says how: fall-backs, window, time-out, most cost; no reply is kept unless it says
    so. `max_summary` bounds the block in tokens (a tenth of what is summarised, 600 to 8,000). `previous` is the
    snapshot behind a block that the list holds already; without it the block itself is read. Secrets are masked in
    what the model is sent and in the snapshot, unless `redact` is false. `allow_findings` takes a summary that the
    checks find wrong; the verdict says what. Setting `cancel` ends what is waited for. Raises RefusedError where the
    checks refuse the result, ModelError where the model fails,
    UsageError for wrong arguments, InputError for messages of no known shape.
    """
    source = _source(messages)
    options = Options(split.Keep(keep), max_summary=max_summary, focus=focus, pins=tuple(pins), block_role=block_role,
                      redact=redact, allow_findings=allow_findings)  # fmt: skip
    asked = asking(replace(ask, model=model or ask.model), focus, cancel=cancel)
    compacted = pipeline.compact(source, options, (), lambda *_: previous, asked)
    if not compacted.outcomes:
        return Result(
            list(messages), None, Verdict(), False, "it holds no messages", {"before": 0, "after": 0, "block": 0}
        )
    outcome = compacted.outcomes[0]
    if outcome.refused:
        raise RefusedError(outcome.reason)
    usage = _usage(outcome)
    if not outcome.changed:
        return Result(list(messages), None, outcome.verdict, False, outcome.reason, usage)
    return Result(_rebuilt(messages, outcome, compacted.data), outcome.snapshot, outcome.verdict, True, "", usage)


def _usage(outcome: Outcome) -> dict[str, Any]:
    block = outcome.plan.counter.text(outcome.block) if outcome.changed else 0
    sizes = {"before": outcome.plan.sizes.total, "after": outcome.tokens_after, "block": block}
    return {**sizes, **(asdict(outcome.asked.usage) if outcome.asked else {})}


def _source(messages: Sequence[Message]) -> Source:
    raw = b"".join(_line(message, position) for position, message in enumerate(messages))
    source = formats.read(raw, "messages")
    entries = sum(len(transcript.entries) for transcript in source.transcripts)
    if source.transcripts and (source.format not in ("openai", "anthropic") or entries != len(messages)):
        message = "messages: each must be one OpenAI or Anthropic message; records and rows go through `compact run`"
        raise UsageError(message)
    return source


def _line(message: Message, position: int) -> bytes:
    value = message.model_dump() if hasattr(message, "model_dump") else message
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        return _line_of_any_text(value, position)


def _line_of_any_text(value: Any, position: int) -> bytes:
    """A message as JSON where its text holds lone surrogates, which orjson refuses."""
    import json

    try:
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"
    except (TypeError, ValueError) as error:
        message = f"message {position + 1} can't be written as JSON ({error}); give dicts, or objects with model_dump()"
        raise UsageError(message) from error


def _rebuilt(messages: Sequence[Message], outcome: Outcome, data: bytes) -> list[Message]:
    """The new list: the same objects but for the block and for messages that lost an orphan result."""
    before, after = outcome.plan.transcript, formats.read(data, "messages", outcome.plan.source.format).transcripts[0]
    assert outcome.plan.cut
    tail = before.live[outcome.plan.cut.at :]
    kept = [*before.live[: before.fixed], *(range(tail[0], len(before.entries)) if tail else ())]
    left = iter([index for index in kept if index not in outcome.gone])
    block = after.live[after.fixed : after.first]
    result = []
    for entry in after.entries:
        index = -1 if entry.index in block else next(left)
        result.append(orjson.loads(entry.raw) if index in (-1, *outcome.repaired) else messages[index])
    return result


def safe_split_point(messages: Sequence[Message], keep: int = split.DEFAULT_KEEP) -> int:
    """The index of the first message of a tail of at least `keep` messages that parts no call from its result.

    0 when no safe cut leaves anything before it. Leading system messages count as before it.
    """
    planned = _plan(messages, keep)
    if not (planned and planned.cut):
        return 0
    transcript, at = planned.transcript, planned.cut.at
    return _place(transcript, at) if at < len(transcript.live) else len(messages)


def _plan(messages: Sequence[Message], keep: int) -> Plan | None:
    """What a compaction would do with the list; None for a list that holds no messages."""
    source = _source(messages)
    return pipeline.plan(source, 0, Options(split.Keep(keep))) if source.transcripts else None


def _place(transcript: Transcript, position: int) -> int:
    """The index in the list of the message at a position of the live conversation, or just behind its last one."""
    if position < len(transcript.live):
        return transcript.live[position]
    return transcript.live[-1] + 1 if transcript.live else 0


def render_context(state: ConvState, block_role: str = "") -> list[Message]:
    """The list to send: leading system messages, the block of `state.summary`, the messages.

    The block has the role asked for here or in the state, else the usual one: `system` in OpenAI lists, `user` in
    Anthropic's.
    """
    if state.summary is None:
        return list(state.messages)
    source = _source(state.messages)
    transcript = source.transcripts[0] if source.transcripts else None
    fixed = _place(transcript, transcript.fixed) if transcript else 0
    role = block_role or state.block_role or formats.FORMATS[source.format if transcript else "openai"].block_role
    refs = [ref for _, item in state.summary.items() for ref in item.evidence]
    newest = refs[-1].split(":")[0] if refs else source.short
    block = [{"role": role, "content": render(state.summary, newest)}]
    rest = list(state.messages[fixed:])
    if role == "user" and rest and _role(rest[0]) == "user":
        block.append({"role": "assistant", "content": ACKNOWLEDGEMENT})
    return [*state.messages[:fixed], *block, *rest]


def _role(message: Message) -> str:
    value = message.get("role") if isinstance(message, Mapping) else getattr(message, "role", "")
    return str(value)


OnError = Literal["keep", "offline", "raise"]


@overload
def maybe_compact(state: ConvState, budget: int = ..., at: float = ..., keep: int = ...,
                  model: str | Model | None = ..., metrics: Metrics | None = ..., used_tokens: int | None = ...,
                  on_error: OnError = ..., max_summary: int | None = ..., ask: Ask = ...,
                  cancel: Event | None = ...) -> ConvState: ...  # fmt: skip
@overload
def maybe_compact(state: Sequence[Message], budget: int = ..., at: float = ..., keep: int = ...,
                  model: str | Model | None = ..., metrics: Metrics | None = ..., used_tokens: int | None = ...,
                  on_error: OnError = ..., max_summary: int | None = ..., ask: Ask = ...,
                  cancel: Event | None = ...) -> list[Message]: ...  # fmt: skip
def maybe_compact(
    state: ConvState | Sequence[Message],
    budget: int = 128_000,
    at: float = DEFAULT_AT,
    keep: int = split.DEFAULT_KEEP,
    model: str | Model | None = None,
    metrics: Metrics | None = None,
    used_tokens: int | None = None,
    on_error: OnError = "keep",
    max_summary: int | None = None,
    ask: Ask = QUIETLY,
    cancel: Event | None = None,
) -> ConvState | list[Message]:
    """Compact when the conversation has reached `at` of the budget; below that the same state comes back.

    `used_tokens` is the provider's own count of what was last sent, where it's known. A call that is due gives a new
    state, whose `reason` says what was done, or why not; then messages and summary are the same. `on_error`: `keep`
    (that, also where the checks refuse), `offline` (a summary by code alone where the model fails), `raise`. `model`,
    `ask` and `cancel` as in `compact`. A bare list
    gives a list with the block in it; then the reason goes to the log, and every call decides anew.
    """
    counts = metrics or _LogMetrics()
    in_list = not isinstance(state, ConvState)
    before = state if isinstance(state, ConvState) else ConvState(state)
    last = (OFFLINE,) if on_error == "offline" and OFFLINE not in ask.fallback else ()
    ask = replace(ask, model=model or ask.model, fallback=(*ask.fallback, *last))
    how = {"max_summary": max_summary, "ask": ask, "cancel": cancel}
    try:
        new = _compact_when_due(before, budget, at, keep, counts, used_tokens, how, bare=in_list)
    except CompactError as error:
        counts.increment("context.refused")
        if on_error == "raise":
            raise
        new = replace(before, reason=str(error))
    return _as_list(before, new) if in_list else new


def _as_list(before: ConvState, new: ConvState) -> list[Message]:
    """A bare list's outcome: the list itself where nothing changed, else with the block in it."""
    if new.summary is not None:
        return render_context(new)
    if new.reason:
        log.warning("not compacted: %s", new.reason)
    return before.messages if isinstance(before.messages, list) else list(before.messages)


def _compact_when_due(state: ConvState, budget: int, at: float, keep: int, counts: Metrics, used_tokens: int | None,
                      how: Mapping[str, Any], *, bare: bool) -> ConvState:  # fmt: skip
    sending = render_context(state)
    sizes = _sizes(sending, keep) if used_tokens is None else None
    tokens = sizes.total if sizes else used_tokens or 0
    early = due(tokens, budget, at)
    if early:
        log.debug("not compacted: %s", early)
        return state
    if state.last_tokens is not None and tokens - state.last_tokens < budget * LEAST_GROWTH:
        counts.increment("context.skipped", reason="growth")
        new_tokens = tokens - state.last_tokens
        return replace(state, reason=f"only {new_tokens:,} new tokens since the last compaction of {tokens:,}")
    too_much = "" if bare else _kept_alone(sizes or _sizes(sending, keep), budget, at)
    if too_much:
        counts.increment("context.skipped", reason="kept")
        return state if state.told else replace(state, reason=too_much, told=True)
    return _compact_state(state, sending, keep, counts, how)


def _compact_state(state: ConvState, sending: list[Message], keep: int, counts: Metrics,
                   how: Mapping[str, Any]) -> ConvState:  # fmt: skip
    result = compact(sending, keep=keep, previous=state.summary, block_role=state.block_role, **how)
    if not result.changed:
        counts.increment("context.skipped", reason="unchanged")
        return replace(state, reason=result.reason)
    before, after = result.usage["before"], result.usage["after"]
    counts.increment("context.compaction")
    counts.increment("context.tokens_saved", before - after)
    done = f"compacted: {before:,} -> {after:,} tokens"
    rest, role = _without_block(result.messages)
    return ConvState(rest, result.snapshot, done, after, False, role)


def _without_block(messages: list[Message]) -> tuple[list[Message], str]:
    """A list without the block in it, and the block's role."""
    transcript = _source(messages).transcripts[0]
    block = transcript.live[transcript.fixed : transcript.first]
    rest = [message for index, message in enumerate(messages) if index not in block]
    return rest, transcript.entries[block[0]].role


def _sizes(messages: Sequence[Message], keep: int) -> Sizes:
    planned = _plan(messages, keep)
    return planned.sizes if planned else Sizes()


def _kept_alone(sizes: Sizes, budget: int, at: float) -> str:
    """Why compacting can't help: fixed part and tail alone reach the threshold; empty where it can."""
    kept = sizes.fixed + sizes.tail
    if sizes.head and not due(kept, budget, at):
        alone = f"fixed part ({sizes.fixed:,}) and tail ({sizes.tail:,} tokens) alone exceed {int(budget * at):,}"
        return f"{alone}; keep fewer messages"
    return ""
