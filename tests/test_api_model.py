"""The library with a model, and awaited."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from answers import update
from talks import garden, openai

from compactor import Ask, ConvState, acompact, amaybe_compact, compact, maybe_compact, render_context
from compactor.errors import ModelError
from compactor.exchange import Reply, Request, Usage

TURNS = openai(garden(8))
BUDGET = 6_000


@dataclass
class Own:
    """A model of the caller's own."""

    answer: Callable[[str], str] = lambda prompt: json.dumps(update(prompt))
    name: str = "own"
    requests: list[Request] = field(default_factory=list)

    def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return Reply(self.answer(request.messages[-1]["content"]), usage=Usage(1, 900, 300, 90, None, 0.1))

    def accepted(self, request: Request) -> None:
        pass


def broken(_: str) -> str:
    message = "the provider is down"
    raise ModelError(message)


class Counts:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def increment(self, name: str, value: int = 1, **tags: str) -> None:
        self.seen.append(name)


def rules(snapshot: Any) -> list[str]:
    return [rule.quote for rule in snapshot.constraints]


def test_a_model_of_ones_own_writes_the_summary(isolated: Path) -> None:
    model = Own()
    result = compact(TURNS, model=model)
    assert result.changed
    assert len(model.requests) == 1
    assert rules(result.snapshot)
    usage = result.usage
    assert (usage["calls"], usage["tokens_in"], usage["cached"], usage["tokens_out"]) == (1, 900, 300, 90)
    assert usage["cost"] is None
    assert usage["before"] > usage["after"]
    assert not [path for path in isolated.rglob("*") if path.is_file()], "nothing is kept unless asked for"


def test_a_model_is_named_as_on_the_command_line(tmp_path: Path) -> None:
    own = Own()
    compact(TURNS, model=own)
    script = tmp_path / "replies.jsonl"
    script.write_text(json.dumps(own.answer(own.requests[0].messages[-1]["content"])) + "\n")
    assert compact(TURNS, model=f"scripted:{script}").changed


def test_how_to_ask_is_said_by_ask() -> None:
    model = Own()
    result = compact(openai(garden(30, 60)), model=model, ask=Ask(window=10_000, log=False))
    assert result.changed
    assert len(model.requests) > 2


def test_a_model_that_fails_raises_unless_another_answers() -> None:
    with pytest.raises(ModelError, match="down"):
        compact(TURNS, model=Own(broken))
    assert compact(TURNS, model=Own(broken), ask=Ask(fallback=("offline",), log=False)).changed


def test_when_it_is_due_the_model_is_asked_and_not_before() -> None:
    model = Own()
    state = ConvState(TURNS)
    assert maybe_compact(state, budget=10**6, model=model) is state
    assert not model.requests
    after = maybe_compact(state, budget=BUDGET, model=model)
    assert len(model.requests) == 1
    assert rules(after.summary)
    grown = replace(after, messages=[*after.messages, *openai(garden(16)[8:], system="")])
    again = maybe_compact(grown, budget=BUDGET, model=model)
    assert len(model.requests) == 2
    assert set(rules(after.summary)) <= set(rules(again.summary))
    assert "# The record so far" in model.requests[1].messages[-1]["content"]
    assert "[compact record]" not in model.requests[1].messages[-1]["content"]


@pytest.mark.parametrize("on_error", ["keep", "offline", "raise"])
def test_what_happens_when_the_model_fails_is_the_callers_choice(on_error: Any) -> None:
    state, counts = ConvState(TURNS), Counts()
    if on_error == "raise":
        with pytest.raises(ModelError):
            maybe_compact(state, budget=BUDGET, model=Own(broken), on_error=on_error, metrics=counts)
        return
    after = maybe_compact(state, budget=BUDGET, model=Own(broken), on_error=on_error, metrics=counts)
    if on_error == "keep":
        assert after.messages is state.messages
        assert "down" in str(after.reason)
        assert counts.seen == ["context.refused"]
    else:
        assert after.summary is not None
        assert "context.compaction" in counts.seen
        assert len(render_context(after)) < len(TURNS)


def test_where_the_kept_part_alone_is_too_much_no_model_is_asked() -> None:
    model = Own()
    after = maybe_compact(ConvState(TURNS), budget=300, keep=20, model=model)
    assert after.told
    assert not model.requests


def test_awaited_calls_give_the_same() -> None:
    async def both() -> tuple[Any, Any]:
        return await asyncio.gather(acompact(TURNS, model=Own()), amaybe_compact(ConvState(TURNS), BUDGET, model=Own()))

    result, state = asyncio.run(both())
    assert result.messages == compact(TURNS, model=Own()).messages
    assert state == maybe_compact(ConvState(TURNS), BUDGET, model=Own())
    assert asyncio.run(amaybe_compact(TURNS, 10**6)) is TURNS


def test_an_error_comes_through_an_await() -> None:
    with pytest.raises(ModelError, match="down"):
        asyncio.run(acompact(TURNS, model=Own(broken)))


def test_the_loop_goes_on_while_the_model_works() -> None:
    release = threading.Event()

    def slow(prompt: str) -> str:
        assert release.wait(10)
        return json.dumps(update(prompt))

    async def run() -> int:
        waiting = asyncio.ensure_future(acompact(TURNS, model=Own(slow)))
        ticks = 0
        while ticks < 5:
            await asyncio.sleep(0.01)
            ticks += 1
        assert not waiting.done()
        release.set()
        assert (await waiting).changed
        return ticks

    assert asyncio.run(run()) == 5


def test_a_call_that_is_cancelled_asks_nothing_further() -> None:
    asked, release = threading.Event(), threading.Event()

    def hanging(prompt: str) -> str:
        asked.set()
        release.wait(10)
        return json.dumps(update(prompt))

    model = Own(hanging)

    async def run() -> None:
        waiting = asyncio.ensure_future(
            acompact(openai(garden(30, 60)), model=model, ask=Ask(window=10_000, log=False))
        )
        while not asked.is_set():
            await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        await asyncio.sleep(0.3)

    asyncio.run(run())
    assert len(model.requests) == 1
