"""What is written is loaded by the types that the field loads it with, the second generation too.

Harbor's, OpenHands' and the AI SDK's own code does the same in tests/interop, where it can be installed.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import pytest
import schemas
from generations import THOUGHT, generations
from pydantic import TypeAdapter, ValidationError

from compactor.transcript import ACKNOWLEDGEMENT, BLOCK_START, is_block

both = pytest.mark.parametrize("generation", [0, 1], ids=["first", "second"])


@cache
def written(form: str) -> tuple[bytes, bytes]:
    return generations(form)


def lines(form: str, generation: int) -> list[dict[str, Any]]:
    data = written(form)[generation]
    assert data.count(BLOCK_START.encode()) == 1
    return [json.loads(line) for line in data.splitlines()]


def whole(value: Any) -> Any:
    """The value with every lazy iterable in it read: pydantic checks those only then."""
    if isinstance(value, Mapping):
        return {key: whole(inner) for key, inner in value.items()}
    return value if isinstance(value, str | bytes) or not isinstance(value, Iterable) else [whole(i) for i in value]


def load(type_: Any, value: Any) -> Any:
    adapter = TypeAdapter(type_)  # by name: the iterables that it leaves unread live no longer than it does
    return whole(adapter.validate_python(value))


def paired(calls: Iterable[str], results: Iterable[str]) -> None:
    """There are calls, and each has its one result."""
    called = list(calls)
    assert called
    assert sorted(called) == sorted(results)


@both
def test_openai_chat(generation: int) -> None:
    from openai.types.chat import ChatCompletionMessageParam

    held = load(list[ChatCompletionMessageParam], lines("openai", generation))
    assert [message["role"] for message in held[:2]] == ["system", "system"]
    assert is_block(held[1]["content"])
    made = [call["id"] for message in held for call in message.get("tool_calls", ())]
    paired(made, [message["tool_call_id"] for message in held if message["role"] == "tool"])


@both
def test_openai_responses(generation: int) -> None:
    from openai.types.responses import ResponseInputItemParam

    held = load(list[ResponseInputItemParam], lines("responses", generation))
    assert is_block(held[1]["content"][0]["text"])
    assert (held[2]["role"], held[2]["content"]) == ("assistant", ACKNOWLEDGEMENT)
    assert any(item["type"] == "reasoning" for item in held)
    made = [item["call_id"] for item in held if item["type"] == "function_call"]
    paired(made, [item["call_id"] for item in held if item["type"] == "function_call_output"])


@both
def test_anthropic(generation: int) -> None:
    types = pytest.importorskip("anthropic.types", reason="anthropic isn't installed; the test extra has it")
    held = load(list[types.MessageParam], lines("anthropic", generation))  # type: ignore[name-defined]
    assert is_block(held[0]["content"])
    assert [message["role"] for message in held[:3]] == ["user", "assistant", "user"]
    blocks = [block for message in held if isinstance(message["content"], list) for block in message["content"]]
    assert any(block.get("thinking") == THOUGHT for block in blocks)
    made = [block["id"] for block in blocks if block["type"] == "tool_use"]
    paired(made, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"])


@both
@pytest.mark.filterwarnings("ignore:.*load.*is in beta", "ignore:.*allowed_objects")
@pytest.mark.parametrize("form", ["messages_to_dict", "dumpd"])
def test_langchain(form: str, generation: int) -> None:
    from langchain_core.load import load
    from langchain_core.messages import messages_from_dict

    if form == "dumpd":
        held = load(lines("langchain-dumpd", generation))
    else:
        held = messages_from_dict(lines("langchain", generation))
    assert [message.type for message in held[:2]] == ["system", "system"]
    assert is_block(str(held[1].content))
    assert any(block["type"] == "reasoning" for message in held for block in message.content_blocks)
    made = [call["id"] for message in held for call in getattr(message, "tool_calls", ())]
    paired(made, [message.tool_call_id for message in held if hasattr(message, "tool_call_id")])


@both
def test_harbor_trajectories(generation: int) -> None:
    held = schemas.Trajectory.model_validate_json(written("atif")[generation])
    assert is_block(held.steps[1].message)
    assert any(step.reasoning_content == THOUGHT for step in held.steps)
    made = [call.tool_call_id for step in held.steps for call in step.tool_calls or ()]
    results = [result for step in held.steps if step.observation for result in step.observation.results]
    paired(made, [result.source_call_id or "" for result in results])


@both
def test_openhands_events(generation: int) -> None:
    held = TypeAdapter(list[schemas.OpenHandsEvent]).validate_python(lines("openhands-sdk", generation))
    (mark,) = [event for event in held if isinstance(event, schemas.Condensation)]
    assert mark.summary_offset == held.index(mark)
    assert is_block(mark.summary or "")
    assert any(getattr(event, "reasoning_content", "") == THOUGHT for event in held)
    made = {event.tool_call_id: event.id for event in held if isinstance(event, schemas.ActionEvent)}
    results = {event.tool_call_id: event.action_id for event in held if isinstance(event, schemas.ObservationEvent)}
    assert made
    assert made == results


@both
def test_vercel_ui_messages(generation: int) -> None:
    held = TypeAdapter(list[schemas.UIMessage]).validate_python(lines("vercel", generation))
    assert len({message.id for message in held}) == len(held)
    (said,) = held[1].parts
    assert isinstance(said, schemas.UIText)
    assert is_block(said.text)
    assert any(part.type == "reasoning" for message in held for part in message.parts)
    assert any(isinstance(part, schemas.UITool) for message in held for part in message.parts)


@both
def test_opentelemetry_messages(generation: int) -> None:
    held = TypeAdapter(list[schemas.OTelMessage]).validate_python(lines("otel", generation))
    parts = [part for message in held for part in message.parts]
    (said,) = held[1].parts
    assert isinstance(said, schemas.OTelText)
    assert is_block(said.content)
    assert any(part.type == "reasoning" for part in parts)
    made = [str(part.id) for part in parts if isinstance(part, schemas.OTelCall)]
    paired(made, [str(part.id) for part in parts if isinstance(part, schemas.OTelResponse)])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda steps: steps[2].update(step_id=9),
        lambda steps: steps[0].update(reasoning_content="x"),
        lambda steps: steps[0].update(kind="x"),
        lambda steps: steps[0].update(observation={"results": [{"source_call_id": "gone", "content": ""}]}),
    ],
)
def test_the_rules_of_trajectories_refuse_what_harbor_refuses(spoil: Callable[[list[Any]], None]) -> None:
    value = json.loads(written("atif")[0])
    spoil(value["steps"])
    with pytest.raises(ValidationError):
        schemas.Trajectory.model_validate(value)
