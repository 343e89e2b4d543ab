"""A session of every kind of part, compacted, gone on with, and compacted again."""

import json
from typing import Any

from build import Talk, line, records, whole
from langchain_core.load import dumpd
from langchain_core.messages import messages_from_dict
from talks import garden

from compactor import formats, pipeline
from compactor.pipeline import Options
from compactor.split import Keep

THOUGHT = "The table comes first, the plan after it."
TURNS = garden(16)
FIRST = 8


def generations(form: str) -> tuple[bytes, bytes]:
    """What is written of the first turns, and of that with the later turns behind it."""
    told, early = (_records(form, turns) for turns in (TURNS, TURNS[:FIRST]))
    first = _compacted(_stored(form, early))
    return first, _compacted(_grown(form, first, told[len(early) :]))


def _records(form: Any, turns: Any) -> list[dict[str, Any]]:
    if form == "langchain-dumpd":
        return [dumpd(message) for message in messages_from_dict(_records("langchain", turns))]
    talk = Talk() if form == "anthropic" else Talk().system("You keep the greenhouse.")  # it stands outside the list
    talk = talk.told(turns)
    return [_thinking(form, record) for record in records(form, talk)]


def _thinking(form: Any, record: dict[str, Any]) -> dict[str, Any]:
    """The record with the agent's reasoning, and what else its API gives, as the format keeps it."""
    match form:
        case "anthropic" if record["role"] == "assistant" and isinstance(record["content"], list):
            block = {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmVk"}
            return {**record, "content": [block, *record["content"]]}
        case "responses" if record.get("role") == "assistant":
            (text,) = record["content"]
            return {**record, "id": "msg_1", "status": "completed", "content": [{**text, "annotations": []}]}
        case "vercel" if record["role"] == "assistant":
            return {**record, "parts": [{"type": "reasoning", "text": THOUGHT}, *record["parts"]]}
        case "otel" if record["role"] == "assistant":
            return {**record, "parts": [{"type": "reasoning", "content": THOUGHT}, *record["parts"]]}
        case "langchain" if record["type"] == "ai":
            block = {"type": "reasoning", "reasoning": THOUGHT}
            text = {"type": "text", "text": record["data"]["content"]}
            return {**record, "data": {**record["data"], "content": [block, text]}}
        case "atif" if record["source"] == "agent":
            return {**record, "reasoning_content": THOUGHT}
        case "openhands-sdk" if record["kind"] == "ActionEvent":
            return {**record, "reasoning_content": THOUGHT}
    return record


def _stored(form: Any, held: list[dict[str, Any]]) -> bytes:
    value = whole(form, held)
    return b"".join(map(line, held)) if value is None else json.dumps(value, indent=1).encode()


def _grown(form: Any, data: bytes, later: list[dict[str, Any]]) -> bytes:
    if whole(form, []) is None:
        return data + b"".join(map(line, later))
    value = json.loads(data)
    steps = [*value["steps"], *later]
    return json.dumps({**value, "steps": [{**s, "step_id": n} for n, s in enumerate(steps, 1)]}).encode()


def _compacted(raw: bytes) -> bytes:
    done = pipeline.compact(formats.read(raw, "in"), Options(Keep(None, 1)))
    (outcome,) = done.outcomes
    assert outcome.changed, outcome.reason
    return done.data
