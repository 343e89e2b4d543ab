"""The library: each sentence of DESIGN §8, for lists and with no model."""

import copy
import json
import logging
from dataclasses import FrozenInstanceError, replace
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from generated import talks
from hypothesis import given, settings
from hypothesis import strategies as st
from talks import Call, Record, Round, Turn, anthropic, claude, garden, jsonl, openai

import compactor
from compactor import (
    ConvState,
    Result,
    Snapshot,
    compact,
    formats,
    maybe_compact,
    pipeline,
    render_context,
    safe_split_point,
)
from compactor.errors import InputError, RefusedError, UsageError
from compactor.transcript import ACKNOWLEDGEMENT, BLOCK_START
from compactor.verify import Finding, Verdict

TURNS = garden(8)
OPENAI, ANTHROPIC = openai(TURNS), anthropic(TURNS)
PLAIN = [
    {"role": role, "content": f"{n} {text} " + "word " * 60}
    for n in range(20)
    for role, text in (("user", "Look at"), ("assistant", "Seen"))
]
LISTS = {"openai": OPENAI, "anthropic": ANTHROPIC, "plain": PLAIN}
BUDGET = 6_000


class Counts:
    """Metrics that remember."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, dict[str, str]]] = []

    def increment(self, name: str, value: int = 1, **tags: str) -> None:
        self.seen.append((name, value, tags))

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.seen]


class Object:
    """A message as the clients of the providers give it."""

    def __init__(self, value: Record) -> None:
        self.value, self.role = value, value["role"]

    def model_dump(self) -> Record:
        return {"refusal": None, **self.value} if self.role == "assistant" else self.value


def is_block(message: Any) -> bool:
    value = message.model_dump() if hasattr(message, "model_dump") else message
    return isinstance(value.get("content"), str) and value["content"].startswith(BLOCK_START)


def compacted(messages: list[Any] = OPENAI, **options: Any) -> ConvState:
    state = maybe_compact(ConvState(messages, **options), budget=BUDGET)
    assert state.summary is not None
    return state


# compact


def test_the_signatures_are_the_promised_ones() -> None:
    assert list(signature(compact).parameters)[:4] == ["messages", "model", "keep", "max_summary"]
    assert [signature(compact).parameters[name].default for name in ("model", "keep", "max_summary")] == [None, 8, None]
    promised = {
        "budget": 128_000,
        "at": 0.65,
        "keep": 8,
        "model": None,
        "metrics": None,
        "used_tokens": None,
        "on_error": "keep",
    }
    assert {name: p.default for name, p in signature(maybe_compact).parameters.items() if name in promised} == promised
    state = ConvState([])
    assert (state.messages, state.summary, state.reason, state.last_tokens, state.told) == ([], None, None, None, False)
    assert ConvState([], None, "why", 7, True).last_tokens == 7
    assert list(Result.__dataclass_fields__) == ["messages", "snapshot", "verdict", "changed", "reason", "usage"]
    assert {"compact", "maybe_compact", "ConvState", "Snapshot", "safe_split_point", "render_context"} <= set(
        compactor.__all__
    )


@pytest.mark.parametrize("name", LISTS)
def test_compact_gives_a_list_with_the_block_in_it(name: str) -> None:
    messages = LISTS[name]
    result = compact(messages)
    assert (result.changed, result.reason) == (True, "")
    assert isinstance(result.snapshot, Snapshot)
    assert isinstance(result.verdict, Verdict)
    assert result.verdict.ok
    assert [is_block(m) for m in result.messages].index(True) == (1 if name == "openai" else 0)
    assert sum(map(is_block, result.messages)) == 1
    assert 0 < result.usage["block"] < result.usage["after"] < result.usage["before"]


@pytest.mark.parametrize("keep", [0, 1, 5, 8, 20])
@pytest.mark.parametrize("name", LISTS)
def test_kept_messages_are_the_same_objects_and_nothing_is_mutated(name: str, keep: int) -> None:
    messages = LISTS[name]
    before = copy.deepcopy(messages)
    result = compact(messages, keep=keep)
    assert messages == before
    kept = [m for m in result.messages if any(m is old for old in messages)]
    new = [m for m in result.messages if not any(m is old for old in messages)]
    assert len(new) - 1 == sum(m.get("content") == ACKNOWLEDGEMENT for m in new)
    tail = kept[1:] if name == "openai" else kept
    assert all(one is other for one, other in zip(tail, messages[len(messages) - len(tail) :], strict=True))
    assert result.messages is not messages


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: Path) -> None:
    monkeypatch.chdir(tmp_path)
    compact(OPENAI)
    compacted()
    assert not list(tmp_path.iterdir())
    assert not list(isolated.iterdir())


def test_nothing_to_do_gives_the_same_messages_and_why() -> None:
    for messages in ([], OPENAI[:3], [OPENAI[0]]):
        result = compact(messages)
        assert (result.messages, result.changed, result.snapshot) == (messages, False, None)
        assert result.reason
    again = compact(compact(OPENAI).messages)
    assert not again.changed
    assert "nothing was added" in again.reason


def test_max_summary_focus_pins_and_role() -> None:
    assert compact(OPENAI, max_summary=3_000).usage["block"] > 2 * compact(OPENAI, max_summary=650).usage["block"]
    pinned = compact(OPENAI, pins=["check-plan --bed 2"]).messages[1]["content"]
    assert "pinned: " in pinned
    assert "bed_002.csv" in compact(OPENAI, max_summary=700, focus="bed_002.csv").messages[1]["content"]
    assert [m["role"] for m in compact(OPENAI, block_role="user").messages[:2]] == ["system", "user"]


def test_the_previous_snapshot_may_be_given_or_is_read_from_the_block() -> None:
    first = compact(OPENAI)
    assert first.snapshot
    grown = [*first.messages, *openai(garden(14)[8:], system="")]
    for previous in (first.snapshot, None):
        second = compact(grown, previous=previous)
        assert second.snapshot
        assert sum(map(is_block, second.messages)) == 1
        ids = {item.id for _, item in second.snapshot.items()}
        assert ids >= {item.id for _, item in first.snapshot.items() if item.shown or previous}


@pytest.mark.parametrize("name", LISTS)
def test_objects_with_model_dump_are_messages_too(name: str) -> None:
    objects = [Object(message) for message in LISTS[name]]
    result = compact(objects)
    plain = compact(LISTS[name])
    assert result.changed
    assert len(result.messages) == len(plain.messages)
    assert [isinstance(m, Object) for m in result.messages] == [
        any(m is old for old in LISTS[name]) for m in plain.messages
    ]
    assert sum(isinstance(m, dict) for m in result.messages) in (1, 2)
    context = render_context(maybe_compact(ConvState(objects), budget=3_000))
    assert [is_block(m) for m in context].count(True) == 1


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": object()}],
        [{"role": "user", "content": b"x"}],
        claude(TURNS),
        [{"messages": OPENAI}],
        [{"messages": OPENAI}] * 2,
    ],
)
def test_what_cannot_be_messages_is_a_usage_error(messages: list[Any]) -> None:
    with pytest.raises(UsageError):
        compact(messages)


@pytest.mark.parametrize("messages", [[1, 2], ["hi"], [{"nothing": 1}], [{"role": "user", "parts": []}]])
def test_messages_of_no_known_shape_are_an_input_error(messages: list[Any]) -> None:
    with pytest.raises(InputError) as error:
        compact(messages)
    assert "\n" not in str(error.value)


def test_orphan_results_leave_and_their_neighbours_stay_the_same() -> None:
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "x"}
    messages = [*OPENAI[:-2], orphan, *OPENAI[-2:]]
    result = compact(messages)
    assert orphan not in result.messages
    assert result.messages[-1] is messages[-1]
    lost = {"type": "tool_result", "tool_use_id": "gone", "content": "x"}
    mixed = {"role": "user", "content": [lost, {"type": "text", "text": "Go on."}]}
    before = copy.deepcopy(mixed)
    result = compact([*ANTHROPIC, mixed, {"role": "assistant", "content": "Yes."}])
    assert result.messages[-2] == {"role": "user", "content": [{"type": "text", "text": "Go on."}]}
    assert mixed == before
    two = copy.deepcopy(ANTHROPIC)
    two[-4]["content"].append(lost)
    assert compact(two).messages[-4:] == ANTHROPIC[-4:]


def test_records_among_the_messages_stay_where_they_are() -> None:
    mark = {"mark": 1}
    messages = [{"title": "t"}, *OPENAI[:-2], mark, *OPENAI[-2:]]
    result = compact(messages)
    assert result.messages[:2] == messages[:2]
    assert is_block(result.messages[2])
    assert result.messages[-3] is mark
    state = maybe_compact(ConvState(messages), budget=BUDGET)
    assert list(state.messages) == [m for m in result.messages if not is_block(m)]
    assert [is_block(m) for m in render_context(state)].index(True) == 2


def test_lone_surrogates() -> None:
    odd = {"role": "user", "content": "never \ud83d print \udc00"}
    assert compact([odd, *OPENAI[1:], odd]).messages[-1] is odd


# maybe_compact with a ConvState


def test_a_state_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        ConvState([]).told = True  # type: ignore[misc]


def test_below_the_threshold_the_same_object_comes_back() -> None:
    state = ConvState(OPENAI)
    counts = Counts()
    assert maybe_compact(state, metrics=counts) is state
    assert maybe_compact(state, budget=5_450, at=1.0) is state
    assert maybe_compact(state, budget=10_000, at=0.55) is state
    assert maybe_compact(ConvState([])).messages == []
    assert counts.seen == []


@pytest.mark.parametrize("name", LISTS)
def test_at_the_threshold_a_new_state_comes_without_the_block(name: str) -> None:
    messages = LISTS[name]
    before = ConvState(messages)
    state = maybe_compact(before, budget=3_000)
    assert state is not before
    assert isinstance(state.summary, Snapshot)
    assert not any(map(is_block, state.messages))
    assert ACKNOWLEDGEMENT not in [m.get("content") for m in state.messages]
    assert all(any(m is old for old in messages) for m in state.messages)
    assert state.reason
    assert state.reason.startswith("compacted: ")
    assert state.last_tokens
    assert state.told is False
    assert before == ConvState(messages)


def test_render_context_puts_the_block_behind_the_leading_system_messages() -> None:
    context = render_context(compacted())
    assert context[0] is OPENAI[0]
    assert (context[1]["role"], is_block(context[1])) == ("system", True)
    assert context[2:] == OPENAI[-8:]
    rules = {"role": "developer", "content": "More rules."}
    context = render_context(compacted([OPENAI[0], rules, *OPENAI[1:]]))
    assert context[:2] == [OPENAI[0], rules]
    assert is_block(context[2])


def test_render_context_without_a_summary_is_a_copy() -> None:
    state = ConvState(OPENAI)
    context = render_context(state)
    assert context == OPENAI
    assert context is not OPENAI
    assert render_context(ConvState([])) == []


def test_an_acknowledgement_stands_where_roles_must_alternate() -> None:
    state = maybe_compact(ConvState(ANTHROPIC), budget=BUDGET, keep=9)
    for number in range(4):
        context = render_context(replace(state, messages=ANTHROPIC[len(ANTHROPIC) - 8 + number :]))
        roles = [m["role"] for m in context]
        assert roles[0] == "user"
        assert all(one != other for one, other in pairwise(roles))
        assert (context[1]["content"] == ACKNOWLEDGEMENT) == (ANTHROPIC[len(ANTHROPIC) - 8 + number]["role"] == "user")


def test_the_blocks_role_stays_what_it_was() -> None:
    talk = [
        {"role": role, "content": f"{n} {text} " + "word " * 60}
        for n in range(10)
        for role, text in (("user", "Look"), ("assistant", "Seen"))
    ]
    state = compacted([*ANTHROPIC, *talk])
    assert [m["role"] for m in render_context(state)][:2] in (["user", "assistant"],)
    bare = maybe_compact([*ANTHROPIC, *talk], budget=BUDGET)
    again = maybe_compact([*bare, *talk, *talk, *talk, *talk], budget=BUDGET)
    assert [is_block(m) for m in again].index(True) == 0
    assert again[0]["role"] == "user"
    plain = compacted([*PLAIN, *PLAIN, *PLAIN], block_role="user")
    assert render_context(plain)[0]["role"] == "user"
    assert render_context(plain, block_role="system")[0]["role"] == "system"


def test_a_loop_keeps_one_summary_and_every_item() -> None:
    state = ConvState(openai(garden(1)))
    held: set[str] = set()
    for turn in openai(garden(20)[1:], system=""):
        state = replace(state, messages=[*state.messages, turn])
        state = maybe_compact(state, budget=4_000)
        if state.summary:
            ids = {item.id for _, item in state.summary.items()}
            assert ids >= held
            held = ids
        assert sum(map(is_block, render_context(state))) == (state.summary is not None)
        result = turn.get("tool_call_id")
        assert result is None or any(call["id"] == result for m in state.messages for call in m.get("tool_calls", ()))
    assert held


def test_used_tokens_takes_the_providers_count() -> None:
    state = ConvState(OPENAI)
    assert maybe_compact(state, budget=10_000, used_tokens=7_000).summary
    assert maybe_compact(state, budget=BUDGET, used_tokens=100) is state


def test_after_a_compaction_the_next_needs_a_tenth_of_the_budget_in_new_tokens() -> None:
    state = replace(compacted(), last_tokens=4_000)
    grown = replace(state, messages=[*state.messages, *openai(garden(16)[8:], system="")])
    counts = Counts()
    kept = maybe_compact(grown, budget=BUDGET, used_tokens=4_599, metrics=counts)
    assert (kept.messages, kept.summary, kept.last_tokens) == (grown.messages, grown.summary, 4_000)
    assert kept.reason
    assert "only 599 new tokens" in kept.reason
    new = maybe_compact(grown, budget=BUDGET, used_tokens=4_600)
    assert new.summary != grown.summary
    assert new.last_tokens != 4_000
    assert counts.seen[0] == ("context.skipped", 1, {"reason": "growth"})


def test_a_tail_that_is_too_long_is_said_once() -> None:
    long = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 1_000} for n in range(8)]
    counts = Counts()
    first = maybe_compact(ConvState([*OPENAI, *long]), budget=BUDGET, metrics=counts)
    assert first.told
    assert first.reason
    assert "alone exceed 3,900" in first.reason
    assert (first.summary, first.messages) == (None, [*OPENAI, *long])
    assert maybe_compact(first, budget=BUDGET, metrics=counts) is first
    assert counts.names == ["context.skipped"] * 2
    shorter = maybe_compact(first, budget=BUDGET, keep=2)
    assert shorter.summary
    assert not shorter.told


@pytest.mark.parametrize(
    "broken", [[{"role": "user", "parts": []}, *OPENAI], [*OPENAI, {"role": "user", "content": object()}]]
)
def test_on_error(broken: list[Any]) -> None:
    counts = Counts()
    for on_error in ("keep", "offline"):
        state = ConvState(broken, None, None, 5)
        kept = maybe_compact(state, budget=100, on_error=on_error, metrics=counts)
        assert (kept.messages, kept.summary, kept.last_tokens) == (broken, None, 5)
        assert kept.reason
    assert counts.names == ["context.refused"] * 2
    with pytest.raises((InputError, UsageError)):
        maybe_compact(ConvState(broken), budget=100, on_error="raise")


def test_what_the_checks_refuse_is_kept_or_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = Finding("output", "error", "its tail isn't the one it had", "report this as a bug")
    monkeypatch.setattr(pipeline, "output_stands", lambda *_: iter([finding]))
    counts = Counts()
    kept = maybe_compact(ConvState(OPENAI), budget=BUDGET, metrics=counts)
    assert (kept.messages, kept.summary) == (OPENAI, None)
    assert kept.reason == str(finding)
    assert counts.names == ["context.refused"]
    assert maybe_compact(OPENAI, budget=BUDGET) is OPENAI
    for state in (ConvState(OPENAI), OPENAI):
        with pytest.raises(RefusedError, match="its tail isn't"):
            maybe_compact(state, budget=BUDGET, on_error="raise")
    with pytest.raises(RefusedError):
        compact(OPENAI)


def test_metrics_count_compactions_and_what_they_saved(caplog: pytest.LogCaptureFixture) -> None:
    counts = Counts()
    maybe_compact(ConvState(OPENAI), budget=BUDGET, metrics=counts)
    assert counts.names == ["context.compaction", "context.tokens_saved"]
    result = compact(OPENAI)
    assert counts.seen[1][1] == result.usage["before"] - result.usage["after"]
    caplog.set_level(logging.INFO, "compactor")
    compacted()
    assert "context.compaction 1" in caplog.text
    assert "context.tokens_saved" in caplog.text


def test_a_state_that_cannot_shrink_says_why() -> None:
    short = ConvState(PLAIN[:2])
    counts = Counts()
    new = maybe_compact(short, budget=100, metrics=counts)
    assert (new.messages, new.summary) == (short.messages, None)
    assert new.reason
    assert counts.names == ["context.skipped"]


# maybe_compact with a bare list


@pytest.mark.parametrize("name", LISTS)
def test_a_bare_list_gives_a_list_with_the_block_in_it(name: str) -> None:
    messages = LISTS[name]
    before = copy.deepcopy(messages)
    new = maybe_compact(messages, budget=3_000)
    assert isinstance(new, list)
    assert sum(map(is_block, new)) == 1
    assert messages == before
    assert all(any(m is old for old in messages) or is_block(m) or m["content"] == ACKNOWLEDGEMENT for m in new)
    assert maybe_compact(messages) is messages
    assert maybe_compact(tuple(messages)) == messages


def test_the_two_rules_do_not_apply_to_a_bare_list(caplog: pytest.LogCaptureFixture) -> None:
    long = [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "word " * 1_000} for n in range(8)]
    new = maybe_compact([*OPENAI, *long], budget=BUDGET)
    assert sum(map(is_block, new)) == 1
    again = maybe_compact(new, budget=BUDGET)
    assert again is new
    assert "not compacted: nothing was added" in caplog.text
    grown = maybe_compact([*new, *openai(garden(10)[8:], system="")], budget=BUDGET, keep=2)
    assert sum(map(is_block, grown)) == 1


# safe_split_point


def test_the_split_point_is_where_compact_would_cut() -> None:
    for name, messages in LISTS.items():
        for keep in (1, 3, 8, 12):
            at = safe_split_point(messages, keep)
            tail = [m for m in compact(messages, keep=keep).messages if any(m is old for old in messages)]
            assert messages[at:] == (tail[1:] if name == "openai" else tail)
    assert safe_split_point([]) == 0
    assert safe_split_point(OPENAI[:1]) == 0
    assert safe_split_point(OPENAI, keep=0) == len(OPENAI)


@given(talks(), st.integers(0, 20), st.sampled_from([openai, anthropic]))
@settings(max_examples=30)
def test_the_split_point_parts_no_call_from_its_result(turns: list[Turn], keep: int, write: Any) -> None:
    messages = write(turns)
    at = safe_split_point(messages, keep)
    sides = [
        formats.read(jsonl(part), "in", "openai" if write is openai else "anthropic")
        for part in (messages[:at], messages[at:])
        if part
    ]
    for side in sides:
        notes = [note.text for note in side.transcripts[0].notes]
        assert not [note for note in notes if "answers no call" in note]
    assert at == 0 or len(messages) - at >= 0
    unsplit = maybe_compact(messages, budget=10**9)
    assert unsplit is messages


def test_an_open_call_is_not_parted_from_what_will_answer_it() -> None:
    open_call = openai([*TURNS, Turn("Water.", (Round("", (Call("last", "Bash", {}),)),))])[:-2]
    assert safe_split_point(open_call, 0) == len(open_call) - 1
    assert json.dumps(compact(open_call, keep=0).messages[-1]).count("last") == 1
