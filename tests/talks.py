"""Conversations told once, and stored in each format."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

Record = dict[str, Any]
SESSION = str(uuid5(NAMESPACE_URL, "a session of the tests"))
CWD = "/srv/green house"
MODEL = "claude-sonnet-4-5"


@dataclass(frozen=True)
class Call:
    """A tool call and what came of it."""

    id: str
    name: str
    arguments: Record
    result: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Round:
    """What the agent says, and the calls it makes at once."""

    says: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Turn:
    asks: str
    rounds: tuple[Round, ...] = ()
    closes: str = "Done."


def garden(turns: int, lines: int = 30) -> list[Turn]:
    """A conversation of so many turns; each reads a file of so many lines and writes one, every fifth brings a rule."""
    return [_garden_turn(n, lines) for n in range(1, turns + 1)]


def _garden_turn(n: int, lines: int) -> Turn:
    path = f"/srv/green/beds/bed_{n:03}.csv"
    rows = "\n".join(
        f"{n:03}-{row:02};fern {row * n % 97};{row * 7 % 31}.{n % 10} cm;{row * n} ml" for row in range(lines)
    )
    read = Call(f"read_{n}", "Read", {"file_path": path}, rows)
    write = Call(
        f"write_{n}",
        "Write",
        {"file_path": f"/srv/green/plans/plan_{n:03}.md", "content": f"# Plan {n}\nWater {n * 11} ml.\n"},
        "written",
    )
    test = Call(f"test_{n}", "Bash", {"command": f"check-plan --bed {n}"}, f"plan {n} ok, {n * 11} ml a day")
    return Turn(
        f"Plan the water of bed {n}." + f" Never give bed {n} more than {n * 13} ml." * (n % 5 == 1),
        (Round(f"I read the table of bed {n} first.", (read,)), Round(f"Now the plan of bed {n}.", (write, test))),
        f"Bed {n} gets {n * 11} ml a day; its plan is checked.",
    )


def openai(turns: Iterable[Turn], system: str = "You keep the greenhouse.") -> list[Record]:
    messages: list[Record] = [{"role": "system", "content": system}] if system else []
    for turn in turns:
        messages.append({"role": "user", "content": turn.asks})
        for round in turn.rounds:
            calls = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.arguments)}}
                for c in round.calls
            ]
            messages.append(
                {"role": "assistant", "content": round.says or None, **({"tool_calls": calls} if calls else {})}
            )
            messages += [{"role": "tool", "tool_call_id": c.id, "content": _told(c)} for c in round.calls]
        messages.append({"role": "assistant", "content": turn.closes})
    return messages


def _told(call: Call) -> str:
    return f"Error: {call.result}" if call.failed else call.result


def anthropic(turns: Iterable[Turn]) -> list[Record]:
    messages: list[Record] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.asks})
        for round in turn.rounds:
            messages.append({"role": "assistant", "content": [*_text(round.says), *map(use, round.calls)]})
            if round.calls:
                messages.append({"role": "user", "content": [answer(call) for call in round.calls]})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": turn.closes}]})
    return messages


def _text(words: str) -> list[Record]:
    return [{"type": "text", "text": words}] if words else []


def use(call: Call) -> Record:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def answer(call: Call) -> Record:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": call.result}
    return {**block, "is_error": True} if call.failed else block


class Session:
    """Writes records as Claude Code does: one block per line, each the child of the one before."""

    def __init__(self, session: str = SESSION, last: str | None = None, start: int = 0) -> None:
        self.records: list[Record] = []
        self.session, self.last, self.start = session, last, start

    def add(self, **fields: Any) -> "Session":
        number = self.start + len(self.records)
        self.records.append({
            "parentUuid": self.last, "isSidechain": False, "userType": "external", "cwd": CWD,
            "sessionId": self.session, "version": "2.1.0", "gitBranch": "main",
            "uuid": str(uuid5(NAMESPACE_URL, f"{self.session} {number}")),
            "timestamp": f"2026-03-04T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z", **fields,
        })  # fmt: skip
        if "uuid" in self.records[-1] and not self.records[-1]["isSidechain"]:
            self.last = self.records[-1]["uuid"]
        return self

    def user(self, content: Any, **fields: Any) -> "Session":
        return self.add(type="user", message={"role": "user", "content": content}, **fields)

    def agent(self, id: str, *blocks: Record, **fields: Any) -> "Session":
        """One message, a line for each of its blocks."""
        usage = {
            "input_tokens": 7,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": 5,
        }
        for block in blocks:
            message = {"id": id, "role": "assistant", "model": MODEL, "content": [block], "usage": usage}
            self.add(type="assistant", message=message, **fields)
        return self

    def other(self, **fields: Any) -> "Session":
        self.records.append(fields)
        return self

    def turns(self, turns: Iterable[Turn]) -> "Session":
        for turn in turns:
            self.user(turn.asks)
            for round in turn.rounds:
                self.agent(f"msg_{len(self.records)}_{self.start}", *_text(round.says), *map(use, round.calls))
                for call in round.calls:
                    self.user([answer(call)], toolUseResult={"stdout": call.result})
            self.agent(f"msg_{len(self.records)}_{self.start}", {"type": "text", "text": turn.closes})
        return self


def claude(turns: Iterable[Turn]) -> list[Record]:
    return Session().turns(turns).records


def jsonl(records: Sequence[Any], end: str = "\n") -> bytes:
    return b"".join(_dump(record) + end.encode() for record in records)


def _dump(record: Any) -> bytes:
    try:
        return json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
        return json.dumps(record).encode()


WRITERS = {"openai": openai, "anthropic": anthropic, "claude-code": claude}


def stored(format: str, turns: Iterable[Turn]) -> bytes:
    """A conversation as a file of that format."""
    return jsonl(WRITERS[format](turns))
