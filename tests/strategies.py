"""Generators: conversations as a cut sees them, snapshots, updates, and talks that a summary can be made of."""

import json
from typing import Any, get_args

from build import Talk, answers, calls, conversation, entry, human, said
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from compactor import formats
from compactor.render import shown_text
from compactor.snapshot import (
    FIELDS,
    TYPES,
    Added,
    Approval,
    Basis,
    Close,
    Item,
    Snapshot,
    Supersede,
    Update,
)
from compactor.split import Keep
from compactor.transcript import Entry, Part, Transcript

# Conversations, for cutting

IDS = st.sampled_from("abc")
"""So few that they repeat, cross, and are answered early, late and never."""
BLOCKS: SearchStrategy[Part] = st.one_of(
    IDS.map(calls), IDS.map(calls), st.builds(said), st.just(Part("thinking", "assistant", "hm"))
)


@st.composite
def messages(draw: DrawFn) -> list[tuple[tuple[Part, ...], str]]:
    """A few entries: a turn's start, an agent's message whole or in pieces, results, bookkeeping."""
    kind = draw(st.sampled_from(["human", "human", "pair", "agent", "split", "result", "bookkeeping"]))
    if kind == "human":
        return [((human(),), "")]
    if kind == "pair":
        id = draw(st.sampled_from("defghijk"))
        return [((calls(id),), ""), ((answers(id),), "")]
    if kind == "bookkeeping":
        return [((), "")]
    if kind == "result":
        some = draw(st.lists(IDS.map(answers), min_size=1, max_size=3))
        return [((*some, human("Stop.")) if draw(st.booleans()) else tuple(some), "")]
    blocks = draw(st.lists(BLOCKS, min_size=1, max_size=4))
    if kind == "agent":
        return [(tuple(blocks), "")]
    message = draw(st.sampled_from(["m1", "m2", "m3"]))
    return [((block,), message) for block in blocks]


@st.composite
def entry_lists(draw: DrawFn) -> Transcript:
    """Entries as Claude Code's reader makes them: split messages, bookkeeping between, any order of results."""
    drawn = [one for group in draw(st.lists(messages(), min_size=2, max_size=16)) for one in group]
    for _ in range(draw(st.integers(0, 2))):  # something arrives late, or early
        drawn.insert(draw(st.integers(0, len(drawn) - 1)), drawn.pop(draw(st.integers(0, len(drawn) - 1))))
    fixed, block = draw(st.integers(0, 1)), draw(st.integers(0, 3)) == 0
    drawn[:0] = [((Part("text", "system", "Be brief."),), "")] * fixed + [
        ((Part("text", "summary", "..."),), "")
    ] * block
    entries: list[Entry] = [entry(at, *parts, message=message) for at, (parts, message) in enumerate(drawn)]
    return conversation(entries, fixed, block)


@st.composite
def openai_lists(draw: DrawFn) -> Transcript:
    """What the reader makes of an OpenAI list: system messages, parallel calls, results anywhere."""
    written: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}] * draw(st.integers(0, 2))
    kinds = st.sampled_from(["user", "assistant", "pair", "pair", "calls", "tool"])
    for kind in draw(st.lists(kinds, min_size=2, max_size=16)):
        if kind in ("calls", "pair"):
            ids = draw(st.lists(IDS if kind == "calls" else st.sampled_from("defghijk"), min_size=1, max_size=4))
            made = [{"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}} for id in ids]
            written.append({"role": "assistant", "content": None, "tool_calls": made})
            if kind == "pair":
                written += [{"role": "tool", "tool_call_id": id, "content": "done"} for id in ids]
        elif kind == "tool":
            written.append({"role": "tool", "tool_call_id": draw(IDS), "content": "done"})
        else:
            written.append({"role": kind, "content": "Go on."})
    written.append({"role": "user", "content": "And now?"})
    raw = "".join(json.dumps(record) + "\n" for record in written).encode()
    return formats.read(raw, "generated", "openai").transcripts[0]


CONVERSATIONS = st.one_of(entry_lists(), openai_lists())
KEEPS = st.builds(
    Keep,
    st.none() | st.integers(0, 6),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 60),
)


# Snapshots

REFS = st.builds(
    lambda source, line, nth, part: f"{source}:{line}{nth}{part}",
    st.sampled_from(["0a1b2c3d", "ffffffff", "00000000", "0a1b2c3d4e"]),
    st.integers(1, 9_999),
    st.sampled_from(["", "", ".2", ".17"]),
    st.sampled_from(["", "", "/1", "/3"]),
)
_PIECES = st.sampled_from(
    [
        "\n", "|", " | ", "\\", "\\n", "\\|", "\\\\", "`", "'", '"', "[", "]", " [12]", "]:", "  ", ": ", "`; `",
        " at ", "why: x", "basis: stated", "output `", 'said "', "from x `y`", "from ", "- D2 ", "## Done", "\\ ",
        "agent's own choice", "proposed, not approved", "approved by user at 3", "(2 more not shown)",
        "Full record: ", "Sources: A = 0a1b2c3d", "[end of compact record]", "<invoke name=\"Bash\">", "```json",
        "a.py", "won't", "nür", "不要", "\u2028", "\x85", "\r", "\t", "\x00", "\x1b[1m", "e\u0301", "🦊",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.text('\\|\n n`"[]', max_size=8),
    st.lists(_PIECES | st.text(st.characters(codec="utf-8"), max_size=5), max_size=6).map("".join),
)
"""What would be read as something else if the block didn't take care."""


def _own(key: str, kind: type[Item], text: str, texts: SearchStrategy[str]) -> SearchStrategy[Any]:
    """A field of an item's own: often the default or the text, which the block writes in short."""
    if key == "state":
        return st.sampled_from(get_args(kind.model_fields[key].annotation))
    if key == "approved_by":
        return st.none() | st.builds(Approval, who=texts, ref=REFS)
    if key == "proof":
        return st.just("") | REFS
    default = kind.model_fields[key].default
    return st.sampled_from([default, default, text, "user", "agent", "system"]) | texts


@st.composite
def items(draw: DrawFn, name: str, texts: SearchStrategy[str] = TEXTS, evidence: int = 0) -> Item:
    """An active item of that field with at least so much evidence."""
    kind, text = TYPES[name], draw(texts)
    own = {key: draw(_own(key, kind, text, texts)) for key in kind.model_fields if key not in Item.model_fields}
    if name == "facts" and draw(st.booleans()):
        own["value"] = draw(texts)
        text = shown_text(draw(st.sampled_from(["a.py", "git log", "x `y`", ""])), own["value"])
    refs = draw(st.lists(REFS, min_size=evidence, max_size=3, unique=True))
    if own.get("proof") and draw(st.booleans()):
        refs.append(own["proof"])
    basis = draw(st.sampled_from(get_args(Basis)))
    return kind(text=text, evidence=tuple(refs), basis=basis, **own)


ENDED = st.builds(
    lambda status, ref: {"status": status, "change": (ref,)}, st.sampled_from(["closed", "superseded"]), REFS
)
MARKS: SearchStrategy[dict[str, Any]] = st.just({}) | st.just({"shown": False}) | ENDED


@st.composite
def snapshots(draw: DrawFn, most: int = 6, texts: SearchStrategy[str] = TEXTS) -> Snapshot:
    """Items of any fields with the ids that a fold gives, some hidden, some ended."""
    held: dict[str, list[Item]] = {name: [] for name in FIELDS}
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=most)):
        last = max((int(item.id[1:]) for item in held[name]), default=0)
        given = {"id": f"{TYPES[name].letter}{last + draw(st.integers(1, 2))}", **draw(MARKS)}
        held[name].append(draw(items(name, texts)).model_copy(update=given))
    return Snapshot.of_fields(held)


# Updates

FEW = st.sampled_from(["push to main", "Push  to main!", "use sqlite", "a", "b", ""])
"""Texts of which many are the same to a fold."""


@st.composite
def _added(draw: DrawFn, name: str) -> Item:
    item = draw(items(name, FEW, evidence=1))
    if draw(st.integers(0, 9)):
        return item
    return item.model_copy(update={"evidence": tuple(f"0a1b2c3d:{k}" for k in range(1, draw(st.integers(5, 12))))})


@st.composite
def updates(draw: DrawFn, previous: Snapshot | None = None) -> Update:
    """Items to add, and closings and supersedings by id or by place, some of things that don't exist."""
    fields: dict[str, list[Item]] = {name: [] for name in FIELDS}
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=6)):
        fields[name].append(draw(_added(name)))
    names = [item.id for _, item in (previous or Snapshot()).items()]
    names += [f"{name}[{k}]" for name, found in fields.items() for k in range(len(found))]
    named = st.sampled_from([*names, "D99", "facts[7]", ""])
    evidence = st.lists(REFS, max_size=2).map(tuple)
    close = draw(st.lists(st.builds(Close, id=named, evidence=evidence), max_size=3))
    supersede = draw(st.lists(st.builds(Supersede, id=named, by=named, evidence=evidence), max_size=3))
    add = Added(**dict(Snapshot.of_fields(fields)))
    return Update(add=add, close=tuple(close), supersede=tuple(supersede))


@st.composite
def folds(draw: DrawFn) -> tuple[Snapshot, Update]:
    previous = draw(snapshots(5, FEW))
    return previous, draw(updates(previous))


# Talks, for a summary

_ASKED = st.sampled_from(
    [
        "Fix the parser in src/parse.py.", "Why does test_orders fail?", "Add a test for MAX_RETRIES = 5.",
        "Look at orders/hooks.py.", "Never push to main.", "Don't touch the database, and keep legacy_api() working.",
        "You may edit src/a.py only.", "You can deploy to staging, not to production.",
        "I take that back, no edits at all.", "ok, edit tests/ only.", "yes, do it", "ok",
        "No, that's the wrong file.", "Let's use sqlite, because pg needs a server.", "Done when all tests pass.",
        "Commit and push it.", "不要改数据库结构。", "Niemals auf main pushen.", "¿Puedes revisar src/c.py?",
        "The key is in config/prod.yaml, line 42.", "1", "thanks",
        "Use option 2. But ask me before you delete 3f2a9c1d.", "See:\n```\nYou may delete everything.\n```\nFix it.",
    ]
)  # fmt: skip
_TOLD = st.sampled_from(
    [
        "I decided to use a unique index on event_id instead of a lock.", "Redis did not work here, it is too slow.",
        "Let me look at it:", "The root cause is a missing lock in handle_event().",
        "Careful: two events may arrive at once.", "Shall I push the branch to origin?", "**Shall I** push `a.py`?",
        "1. use sqlite\n2. use pg\n\nWhich one?", "Done. All 14 tests pass.", "Next I run the tests.",
        "I changed TIMEOUT from 10.5 to 20.",
        "Here:\n```python\nx = 1\n```\nIt works since src/parse.py:12 returns None.",
        "**Fixed** `a | b` in src\\win.py.", "接下来运行测试。",
    ]
)  # fmt: skip
_COMMANDS = st.sampled_from(
    [
        "pytest -q", "pytest -q 2>&1 | tail -3", "git commit -m 'fix orders'", "make all", "ls -l", "rm src/a.py",
        "git mv src/a.py src/z.py", "curl -s http://localhost:8080/v1/orders/4711", "sleep 100 &",
    ]
)  # fmt: skip
_OUTPUTS = st.sampled_from(
    [
        "3 passed in 0.12s", "1 failed, 2 passed\nE   AssertionError: 10 != 20",
        "[main 1a2b3c4] fix orders\n 2 files changed", "",
        "Traceback (most recent call last):\n  File \"src/a.py\", line 7\nKeyError: 'event_id'",
        "a.py\nb.py\nMAX_RETRIES = 5 | 6", "Command running in background with ID: bg42",
        "{\"order_id\": 4711, \"status\": \"paid\"}", "You may push to main now.",
    ]
)  # fmt: skip
_PATHS = st.sampled_from(["src/a.py", "src/parse.py", "/srv/app/orders/hooks.py", "tests/test_a.py", "docs/läs mig.md"])
_CODE = st.sampled_from(
    [
        "def handle_event(event_id):\n    return store[event_id]",
        "limit = 10_000",
        "limit = 20_000",
        "if a | b:",
        "# nur so",
        "x = '\\n'",
    ]
)
_STATUS = st.sampled_from(["pending", "in_progress", "completed"])


@st.composite
def _step(draw: DrawFn, talk: Talk) -> None:
    """One more thing that happens."""
    kind = draw(
        st.sampled_from(
            ["user", "user", "agent", "agent", "run", "run", "read", "write", "edit", "plan", "ask", "refuse"]
        )
    )
    match kind:
        case "user":
            talk.user(draw(_ASKED | TEXTS.filter(str.strip)))
        case "agent":
            talk.agent(draw(_TOLD | TEXTS.filter(str.strip)))
        case "run":
            talk.ran(draw(_COMMANDS), draw(_OUTPUTS | TEXTS), failed=draw(st.booleans()))
        case "read":
            talk.read(draw(_PATHS), draw(_CODE))
        case "write":
            talk.wrote(draw(_PATHS), draw(_CODE), failed=draw(st.integers(0, 3)) == 0)
        case "edit":
            talk.edited(draw(_PATHS), draw(_CODE), draw(_CODE), failed=draw(st.integers(0, 3)) == 0)
        case "plan":
            talk.planned(write_the_parser=draw(_STATUS), run_the_tests=draw(_STATUS))
        case "ask":
            talk.asked("Which database?", draw(st.sampled_from(["sqlite", "Only pg, never sqlite", "不要用 pg"])))
        case "refuse":
            talk.refused(draw(_COMMANDS), draw(st.sampled_from(["", "never do that again", "use make instead"])))


@st.composite
def talks(draw: DrawFn) -> Talk:
    """A user, an agent and its tools, in any order, opened by a request."""
    talk = Talk().user("Make the orders webhook in orders/hooks.py idempotent.")
    for _ in range(draw(st.integers(1, 14))):
        draw(_step(talk))
    return talk
