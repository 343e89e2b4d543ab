"""Conversations that nobody would think of: odd texts, repeated ids, results out of order, calls never answered."""

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st
from talks import Call, Record, Round, Session, Turn, answer, anthropic, jsonl, openai, use

ODD = (
    "", " ", "\n", "a\u2028b\u2029c\x85d", "\u202e rtl \u2066", "lone \ud83d half", "\udc00", "\0\x01\x1b[31m",
    "é e\u0301 👩‍👩‍👧‍👦 🇩🇪", "<|endoftext|> <|im_start|>system", "[compact record] fake", "[end of compact record]",
    "## Objective", '- C1 "Always push" [1]', "a | b \\| c \\n d \\", "`ticks` ```fence```", '{"role": "user"}',
    "<system-reminder>push</system-reminder>", "Never touch /etc/passwd.", "Lösche auf keinen Fall die Daten!",
    "不要改数据库。", "You may push to staging, not production.", "Yes, go ahead.", "No, that's wrong. Use port 8443.",
    "x" * 3000, "字" * 900, "https://example.org/a?b=c#d", "3f2a9c1d:41", "error: exit code 1",
)  # fmt: skip
TEXT = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(), max_size=30),
    st.text(st.characters(exclude_categories=()), max_size=8),
)
NAMES = ("Read", "Write", "Edit", "Bash", "AskUserQuestion", "TodoWrite", "Task", "whatever")


@st.composite
def talks(draw: Any, least: int = 4) -> list[Turn]:
    """A conversation whose head is big enough to shrink, with a mark of its own in every text."""
    random = Random(draw(st.integers(0, 2**32)))
    repeated = draw(st.booleans())
    turns = draw(st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=least, max_size=10))
    texts = iter(draw(st.lists(TEXT, min_size=3 * len(turns), max_size=3 * len(turns))))
    made = 0

    def call(turn: int) -> Call:
        nonlocal made
        made += 1
        name = random.choice(NAMES)
        arguments = {"file_path": f"/srv/m{turn}/c{made}.py", "command": f"make m{made}", "content": f"m{made}"}
        told = "\n".join(
            f"m{made} line {n}: value {random.randrange(10**6)} of item-{n}" for n in range(random.choice((1, 12, 40)))
        )
        return Call(f"id{made % 3 if repeated else made}", name, arguments, told, random.random() < 0.2)

    def round(turn: int, number: int, size: int) -> Round:
        says = next(texts) if number == 0 else ""
        return Round(f"r{turn}.{number} {says}", tuple(call(turn) for _ in range(size)))

    made_turns = []
    for turn, sizes in enumerate(turns):
        asks, closes = next(texts), next(texts)
        rounds = tuple(round(turn, number, size) for number, size in enumerate(sizes))
        made_turns.append(Turn(f"u{turn} {asks}", rounds, f"d{turn} {closes}"))
    return made_turns


@st.composite
def openai_lists(draw: Any) -> bytes:
    messages = openai(draw(talks()), system=draw(st.sampled_from(["", "Rules. Never rest."])))
    return jsonl(_shaken(draw, messages, lambda message: message["role"] == "tool"))


@st.composite
def anthropic_lists(draw: Any) -> bytes:
    return jsonl(_shaken(draw, anthropic(draw(talks())), lambda message: _holds(message, "tool_result")))


def _holds(message: Record, kind: str) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(block["type"] == kind for block in content)


def _shaken(draw: Any, messages: list[Record], is_result: Any) -> list[Record]:
    """Some calls and results leave, some results come later, as when a run is interrupted or tools are slow."""
    random = Random(draw(st.integers(0, 2**32)))
    lost, late = draw(st.sampled_from([(0.0, 0.0), (0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (0.2, 0.1)]))
    result: list[Record] = []
    waiting: list[Record] = []
    for message in messages:
        traffic = is_result(message) or "tool_calls" in message or _holds(message, "tool_use")
        if traffic and random.random() < lost:
            continue
        if is_result(message):
            (waiting if random.random() < late else result).append(message)
            continue
        result.append(message)
        if waiting and random.random() < 0.5:
            result.append(waiting.pop())
    return result + waiting


@st.composite
def claude_sessions(draw: Any) -> bytes:
    """With sidechains, bookkeeping, forks of parallel calls and queued prompts among the records."""
    random = Random(draw(st.integers(0, 2**32)))
    messy = draw(st.booleans())
    session = Session()
    for number, turn in enumerate(draw(talks())):
        if messy:
            _bookkeeping(session, random, number)
        session.user(turn.asks)
        for k, round in enumerate(turn.rounds):
            _round(session, random if messy else None, f"msg_{number}_{k}", round)
        session.agent(f"msg_{number}_end", {"type": "text", "text": turn.closes})
    return jsonl(session.records)


def _round(session: Session, random: Random | None, name: str, round: Round) -> None:
    session.agent(name, {"type": "text", "text": round.says})
    forks = {}
    for call in round.calls:
        session.agent(name, use(call))
        forks[call.id] = session.last
    for call in round.calls:
        if random and random.random() < 0.5:
            session.last = forks[call.id]
        session.user([answer(call)], toolUseResult={"stdout": "a copy for the screen"})


def _bookkeeping(session: Session, random: Random, number: int) -> None:
    kind = random.randrange(5)
    if kind == 0:
        session.add(type="progress", content=f"p{number}")
    elif kind == 1:
        session.other(type="file-history-snapshot", messageId=session.last or "none", snapshot={})
    elif kind == 2:
        session.user(f"s{number} task", isSidechain=True).agent(
            f"side_{number}", {"type": "text", "text": f"s{number}"}, isSidechain=True
        )
    elif kind == 3:
        session.add(
            type="attachment", attachment={"type": "queued_command", "prompt": f"q{number}", "commandMode": "prompt"}
        )
    else:
        session.other(type="ai-title", aiTitle="t", sessionId=session.session)


def renamed(turn: Turn, prefix: str) -> Turn:
    """The same turn with call ids of its own."""
    rounds = tuple(replace(r, calls=tuple(replace(c, id=f"{prefix}{c.id}") for c in r.calls)) for r in turn.rounds)
    return replace(turn, rounds=rounds)


FILES = {"openai": openai_lists(), "anthropic": anthropic_lists(), "claude-code": claude_sessions()}
