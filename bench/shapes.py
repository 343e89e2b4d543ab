"""Sessions that nobody's agent writes so, each of any number of records: what could make reading slower than linear."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

Record = dict[str, Any]


def codex_rolled_back(count: int) -> Iterator[Record]:
    yield _codex("session_meta", id="s", cwd="/w", timestamp="t")
    for number in range(count // 2):
        yield _codex_said("user", f"Prompt {number}")
        yield _codex("event_msg", type="thread_rolled_back", num_turns=number % 3)


def codex_nothing_to_roll_back(count: int) -> Iterator[Record]:
    yield _codex("session_meta", id="s", cwd="/w", timestamp="t")
    for number in range(count // 2):
        yield _codex_said("assistant", f"Answer {number}")
        yield _codex("event_msg", type="thread_rolled_back", num_turns=1)


def codex_much_context(count: int) -> Iterator[Record]:
    yield _codex("session_meta", id="s", cwd="/w", timestamp="t")
    yield from (_codex_said("developer", f"Rule {number}") for number in range(count // 2))
    yield from (_codex_said("user", f"Prompt {number}") for number in range(count // 2))


def codex_compacted(count: int) -> Iterator[Record]:
    yield from codex_much_context(count // 2)
    for number in range(count // 4):
        yield _codex_said("user", f"Prompt {number}")
        yield _codex("compacted", message="", replacement_history=[])


def _codex(kind: str, **payload: Any) -> Record:
    return {"timestamp": "t", "type": kind, "payload": payload}


def _codex_said(role: str, text: str) -> Record:
    return _codex("response_item", type="message", role=role, content=[{"type": "input_text", "text": text}])


def gemini_rewound(count: int) -> Iterator[Record]:
    yield {"sessionId": "s", "projectHash": "h", "startTime": "t"}
    for number in range(count // 2):
        yield _gemini(number)
        yield {"$rewindTo": f"m{number}"} if number % 3 == 2 else _gemini(number)


def gemini_set(count: int) -> Iterator[Record]:
    yield {"sessionId": "s", "projectHash": "h", "startTime": "t"}
    for number in range(count // 8):
        yield from (_gemini(5 * number + k) for k in range(3))
        yield {"$set": {"messages": [_gemini(5 * number + k) for k in range(5)]}}


def _gemini(number: int) -> Record:
    return {"id": f"m{number}", "timestamp": "t", "type": "user", "content": [{"text": f"Prompt {number}"}]}


def claude_long_chain(count: int) -> Iterator[Record]:
    return (_claude(number, number - 1) for number in range(count))


def claude_sidechains(count: int) -> Iterator[Record]:
    for number in range(count):
        yield _claude(number, number - 1 if number % 10 else number - 10, isSidechain=bool(number % 10))


def claude_branches(count: int) -> Iterator[Record]:
    return (_claude(number, number // 2) for number in range(count))


def claude_in_a_circle(count: int) -> Iterator[Record]:
    return (_claude(number, (number + 1) % count) for number in range(count))


def claude_circles(count: int) -> Iterator[Record]:
    """Circles of three, which are bridged by the order of the file."""
    return (_claude(number, number + 2 if number % 3 == 0 else number - 1) for number in range(count))


def claude_backwards(count: int) -> Iterator[Record]:
    """Each names the record behind it, so that the climb ends where all before it is taken."""
    yield _claude(0, -2)
    yield from (_claude(number, number + 1 if number < count - 2 else -2) for number in range(1, count - 1))
    yield _claude(count, 1)


def claude_no_parents(count: int) -> Iterator[Record]:
    yield _claude(0, -1)
    yield from (_claude(number, 0 if number == 1 else count + number) for number in range(1, count))


def claude_torn(count: int) -> Iterator[Record]:
    """A third without parents, from each of which only what stands before the second third is left to go on to."""
    third = count // 3
    yield from (_claude(number, 3 * third - number - 1) for number in range(third))
    yield _claude(third, 2 * third)
    yield from (_claude(number, number - 1) for number in range(third + 1, 2 * third))
    yield from (_claude(number, 4 * count) for number in range(2 * third, 3 * third))
    yield _claude(3 * third, 2 * third - 1)


def claude_one_id(count: int) -> Iterator[Record]:
    return (_claude(number // 1000, number // 1000 - 1) for number in range(count))


def claude_queued(count: int) -> Iterator[Record]:
    yield _claude(0, -1)
    for number in range(count // 2):
        yield _queue("enqueue", number)
    for number in reversed(range(count // 2)):
        yield _queue("remove", number)


def claude_compacted(count: int) -> Iterator[Record]:
    for number in range(count):
        if number % 10 == 5:
            yield {**_claude(number, -1), "type": "system", "subtype": "compact_boundary"}
        else:
            yield _claude(number, number - 1, isCompactSummary=number % 10 == 6)


def _claude(number: int, parent: int, **fields: Any) -> Record:
    kind = "assistant" if number % 2 else "user"
    message = {"role": kind, "content": [{"type": "text", "text": f"Message {number}"}]}
    return {"parentUuid": f"u{parent}" if parent != -1 else None, "sessionId": "s", "type": kind, "message": message,
            "uuid": f"u{number}", "timestamp": "t", "isSidechain": False, **fields}  # fmt: skip


def _queue(operation: str, number: int) -> Record:
    return {"type": "queue-operation", "operation": operation, "content": f"Do {number}", "sessionId": "s"}


def pi_branches(count: int) -> Iterator[Record]:
    yield {"type": "session", "version": 3, "id": "s", "cwd": "/w", "timestamp": "t"}
    yield from (_pi(number, number - 1 if number % 3 else max(number - 9, -1)) for number in range(count))


def pi_settings(count: int) -> Iterator[Record]:
    yield {"type": "session", "version": 3, "id": "s", "cwd": "/w", "timestamp": "t"}
    for number in range(count):
        entry = _pi(number, number - 1)
        yield {**entry, "type": "model_change", "modelId": "m"} if number % 2 else entry


def _pi(number: int, parent: int) -> Record:
    message = {"role": "user", "content": f"Prompt {number}"}
    return {"type": "message", "id": f"e{number}", "parentId": f"e{parent}" if parent >= 0 else None, "timestamp": "t",
            "message": message}  # fmt: skip


def openhands_condensed(count: int) -> Iterator[Record]:
    for number in range(count // 2):
        message = {"role": "user", "content": [{"type": "text", "text": f"Prompt {number}"}]}
        yield {"id": f"e{number}", "timestamp": "t", "source": "user", "kind": "MessageEvent", "llm_message": message}
        if number % 2:
            yield {"id": f"c{number}", "timestamp": "t", "source": "environment", "kind": "Condensation",
                   "summary": "So far.", "forgotten_event_ids": [f"e{number // 2}"]}  # fmt: skip


def openhands_nameless(count: int) -> Iterator[Record]:
    """Actions that nothing answers, and observations of another kind that name no cause."""
    for number in range(count // 2):
        yield {"id": number, "source": "agent", "action": f"do_{number}", "args": {}}
    for number in range(count // 2):
        yield {"id": count + number, "source": "agent", "observation": "run", "content": "Result", "extras": {}}


def opencode_unfinished(count: int) -> bytes:
    """Summaries that the client never finished, each asked for by a message that isn't there."""
    held = []
    for number in range(count):
        info: Record = {"id": f"m{number}", "role": "assistant" if number % 2 else "user", "sessionID": "s"}
        info |= {"summary": True, "parentID": f"gone{number}"} if number % 2 else {}
        held.append({"info": info, "parts": [{"type": "text", "text": f"Text {number}"}]})
    return json.dumps({"info": {"id": "s"}, "messages": held}).encode()


def openai_small(count: int) -> Iterator[Record]:
    for number in range(count):
        yield {"role": "assistant" if number % 2 else "user", "content": f"Message {number} of many small ones"}


def openai_nameless_calls(count: int) -> Iterator[Record]:
    """Calls without ids, all made before the first result comes."""
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    yield from ({"role": "assistant", "content": None, "tool_calls": [call]} for _ in range(count // 2))
    yield from ({"role": "tool", "content": f"Result {number}"} for number in range(count // 2))


def openai_unanswered_calls(count: int) -> Iterator[Record]:
    """Calls without ids, and results of a tool that was called last."""
    for number in range(count // 2):
        function = {"name": f"tool_{number}", "arguments": "{}"}
        yield {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}
    for _ in range(count // 2):
        yield {"role": "tool", "name": "tool_x", "content": "Result"}


def openai_large(count: int) -> Iterator[Record]:
    return ({"role": "assistant" if n % 2 else "user", "content": "Word. \n" * 20_000} for n in range(count // 100))


def openai_spread(count: int) -> bytes:
    """Objects over several lines, one after another."""
    return b"\n".join(json.dumps(record, indent=2).encode() for record in openai_small(count))


def openai_never_closed(count: int) -> bytes:
    """Lines that open an object each, far before they are closed."""
    begun = _lines({"role": "user", "content": f"Message {number}"} for number in range(10))
    return begun + b'{"a": \n' * (count // 2) + b"}\n" * (count // 2)


def anthropic_rows(count: int) -> Iterator[Record]:
    for number in range(count // 10):
        use = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
        told = [{"role": "assistant" if n % 2 else "user", "content": f"Message {n}"} for n in range(9)]
        yield {"messages": [*told, {"role": "assistant", "content": [use]}]}


_BY_LINE: tuple[Callable[[int], Iterable[Record]], ...] = (
    codex_rolled_back, codex_nothing_to_roll_back, codex_much_context, codex_compacted, gemini_rewound, gemini_set,
    claude_long_chain, claude_sidechains, claude_branches, claude_in_a_circle, claude_circles, claude_backwards,
    claude_no_parents, claude_torn, claude_one_id, claude_queued, claude_compacted, pi_branches, pi_settings,
    openhands_condensed, openhands_nameless, openai_small, openai_nameless_calls, openai_unanswered_calls, openai_large,
    anthropic_rows,
)  # fmt: skip
_WHOLE = (opencode_unfinished, openai_spread, openai_never_closed)
SHAPES = tuple(shape.__name__ for shape in chain(_BY_LINE, _WHOLE))


def made(name: str, count: int) -> bytes:
    """A session of that shape and about that many records."""
    for shape in _WHOLE:
        if shape.__name__ == name:
            return shape(count)
    return _lines(next(shape for shape in _BY_LINE if shape.__name__ == name)(count))


def _lines(records: Iterable[Record]) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def form_of(name: str) -> str:
    """The format that a shape is in."""
    made_of = name.split("_", 1)[0]
    named = {"claude": "claude-code", "openhands_condensed": "openhands-sdk"}
    return named.get(name) or named.get(made_of, made_of)
