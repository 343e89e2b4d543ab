"""The laws of DESIGN §3 over whole compactions; law 1 is in test_formats.py, law 4 in test_split.py."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from build import FORMS, LISTED, Form, Talk, records
from command import compact, environment, names
from generated import FILES, openai_lists
from generated import talks as odd_talks
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from talks import Call, Round, Session, Turn, anthropic, garden, jsonl, openai, stored

from compactor import formats, pipeline
from compactor.errors import InputError
from compactor.pipeline import Compacted, Options, Outcome
from compactor.split import Keep
from compactor.tokens import counter_for
from compactor.transcript import ACKNOWLEDGEMENT, BLOCK_START, Entry, Source, Transcript, write

KEEP = st.one_of(
    st.just(Keep()),
    st.builds(Keep, st.integers(0, 12)),
    st.builds(Keep, st.none(), st.integers(1, 3)),
    st.builds(Keep, st.none(), st.none(), st.integers(1, 2000)),
)
LIMIT = st.sampled_from([None, None, 700, 3000])
thorough = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Compaction:
    """A compaction that changed something."""

    format: str
    raw: bytes
    options: Options
    done: Compacted

    @property
    def outcome(self) -> Outcome:
        return self.done.outcomes[0]

    @property
    def before(self) -> Transcript:
        return self.outcome.plan.transcript

    @property
    def after(self) -> Transcript:
        return read(self.format, self.done.data).transcripts[0]

    @property
    def cut(self) -> int:
        assert self.outcome.plan.cut
        return self.outcome.plan.cut.at

    @property
    def head(self) -> list[Entry]:
        return [self.before.entries[i] for i in self.before.live[self.before.fixed : self.cut]]

    @property
    def tail(self) -> list[Entry]:
        return [self.before.entries[i] for i in self.before.live[self.cut :]]


def read(format: str, raw: bytes) -> Source:
    return formats.read(raw, "in", format)


def run(format: str, raw: bytes, options: Options) -> Compacted:
    done = pipeline.compact(read(format, raw), options)
    assert not done.refused, done.outcomes[0].reason
    return done


@pytest.mark.parametrize("format", sorted(FILES))
def test_the_laws_hold(format: str) -> None:
    @given(FILES[format], KEEP, LIMIT)
    @thorough
    def holds(raw: bytes, keep: Keep, limit: int | None) -> None:
        options = Options(keep, max_summary=limit)
        made = Compaction(format, raw, options, run(format, raw, options))
        event("changed" if made.done.changed else "unchanged")
        law_8(made)
        if made.done.changed:
            (law_2_and_3_of_sessions if format == "claude-code" else law_2_and_3_of_lists)(made)
            law_3(made)
            law_7(made)
            law_10(made)

    holds()


OPERATIONS = st.lists(st.tuples(st.sampled_from("dsrc"), st.integers(0, 99), st.integers(0, 99)), max_size=12)


@given(st.sampled_from(sorted(FILES)), KEEP, OPERATIONS)
@thorough
def test_lines_lost_doubled_and_out_of_order_are_compacted_all_the_same(
    format: str, keep: Keep, operations: list[tuple[str, int, int]]
) -> None:
    lines = disturbed(stored(format, garden(7)).splitlines(keepends=True), operations)
    options = Options(keep)
    made = Compaction(format, b"".join(lines), options, run(format, b"".join(lines), options))
    law_8(made)
    if made.done.changed:
        law_3(made)
        law_7(made)


@given(st.sampled_from(sorted({*FORMS, *LISTED} - set(FILES))), st.integers(1, 14), KEEP, LIMIT, OPERATIONS)
@thorough
def test_the_laws_hold_of_what_clients_write(
    form: Form, turns: int, keep: Keep, limit: int | None, operations: list[tuple[str, int, int]]
) -> None:
    raw = b"".join(disturbed(Talk().told(garden(turns)).raw(form).splitlines(keepends=True), operations))
    assume(form in detected(raw))
    options = Options(keep, max_summary=limit)
    made = Compaction(form, raw, options, run(form, raw, options))
    event(f"{form} {'changed' if made.done.changed else 'unchanged'}")
    law_8(made)
    if made.done.changed:
        law_2(made)
        law_3(made)
        law_7(made)
        law_10(made)


def _aider(turns: list[Turn]) -> bytes:
    """A history as aider keeps it: the user's lines and those of tools are marked, all others are the agent's."""
    marks = {"user": "#### ", "tool": "> "}
    told = ["", "# aider chat started at 2026-01-01 10:00:00", ""]
    for step in Talk().told(turns).steps:
        told += [f"{marks.get(step.role, '')}{line}" for line in (step.text or "on it").split("\n")] + [""]
    return "\n".join(told).encode("utf-8", "replace")


def _inspect(turns: list[Turn]) -> bytes:
    held = records("openai", Talk().told(turns))
    for message in held:
        message["tool_calls"] = [{"id": c["id"], **c["function"], "function": c["function"]["name"], "type": "function",
                                  "arguments": json.loads(c["function"]["arguments"])}
                                 for c in message.get("tool_calls", ())]  # fmt: skip
        message |= {"source": "input"} if message["role"] == "user" else {}
    about = {"version": 2, "status": "success", "eval": {"task": "t"}}
    return json.dumps({**about, "samples": [{"id": 1, "epoch": 1, "messages": held}]}).encode()


STORED: dict[str, Callable[[list[Turn]], bytes]] = {
    "aider": _aider,
    "inspect": _inspect,
    **{form: partial(lambda form, turns: Talk().told(turns).raw(form), form) for form in (*FORMS, *LISTED)},
}


def test_every_format_is_held_to_the_laws() -> None:
    assert set(STORED) == set(formats.FORMATS)


@pytest.mark.parametrize("form", sorted(set(STORED) - set(FILES)))
def test_the_laws_hold_in_every_format_whatever_is_said(form: str) -> None:
    """Odd texts, ids that repeat, parallel calls, some that failed: laws 1 to 4, 7, 8 and 10."""

    @given(odd_talks(), KEEP, LIMIT)
    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    def holds(turns: list[Turn], keep: Keep, limit: int | None) -> None:
        raw = STORED[form](turns)
        assert write(read(form, raw)) == raw
        options = Options(keep, max_summary=limit)
        made = Compaction(form, raw, options, run(form, raw, options))
        event("changed" if made.done.changed else "unchanged")
        law_8(made)
        if made.done.changed:
            law_2(made)
            law_3(made)
            law_4(made)
            law_7(made)
            law_10(made)

    holds()


def law_2(made: Compaction) -> None:
    """The kept entries are what they were, but for the fields that their format names."""
    kept = [made.after.entries[i] for i in made.after.live[made.after.first :]]
    tail = [entry for entry in made.tail if entry.index not in made.outcome.gone]
    same = formats.FORMATS[made.format].same
    assert all(e.index in made.outcome.repaired or same(e, other) for e, other in zip(tail, kept, strict=True))


def law_4(made: Compaction) -> None:
    """No call stands before the cut and its result behind it, or the other way round; ids that repeat apart."""
    calls = Counter(p.call_id for e in (*made.head, *made.tail) for p in e.parts if p.kind == "call")
    for one, other in ((made.head, made.tail), (made.tail, made.head)):
        called = {part.call_id for entry in one for part in entry.parts if part.kind == "call"}
        answered = {part.call_id for entry in other for part in entry.parts if part.kind == "result"}
        assert not {name for name in called & answered if calls[name] == 1}


def detected(raw: bytes) -> str:
    try:
        return formats.read(raw, "in").format
    except InputError:
        return ""


def disturbed(lines: list[bytes], operations: list[tuple[str, int, int]]) -> list[bytes]:
    """The lines with some lost, swapped, doubled or cut off."""
    for operation, one, other in operations:
        one, other = one % len(lines), other % len(lines)
        match operation:
            case "d" if len(lines) > 1:
                del lines[one]
            case "s":
                lines[one], lines[other] = lines[other], lines[one]
            case "r":
                lines.insert(other, lines[one])
            case "c":
                lines[one] = lines[one][: other + 1] + b"\n"
    return lines


# Laws 2 and 3: told from lines and parsed JSON, apart from the reader's own work


def law_2_and_3_of_lists(made: Compaction) -> None:
    """The output is the system message, the block, and the tail's lines; the head's are gone."""
    lines, out = made.raw.splitlines(keepends=True), made.done.data.splitlines(keepends=True)
    fixed = 1 if json.loads(lines[0])["role"] == "system" else 0
    assert out[:fixed] == lines[:fixed]
    assert json.loads(out[fixed])["content"] == made.outcome.block
    new = out[fixed + 1 :]
    if new and json.loads(new[0])["content"] == ACKNOWLEDGEMENT:
        assert made.format == "anthropic"
        assert json.loads(new[1])["role"] == "user"
        new = new[1:]
    tail = lines[made.tail[0].line - 1 :] if made.tail else []
    event("lost results" if made.outcome.repaired else "whole tail")
    if made.outcome.repaired:
        assert [json.loads(line) for line in new] == less_lost_results(tail, made)
    else:
        assert new == tail
    assert not {line for line in lines[fixed : len(lines) - len(tail)] if line not in tail} & set(out)


def less_lost_results(tail: list[bytes], made: Compaction) -> list[Any]:
    """The tail as parsed JSON, less each result whose call doesn't stand in it; each must be reported."""
    kept, lost = [], 0
    called = {call for line in tail for call in calls_of(json.loads(line))}
    for line in tail:
        message = json.loads(line)
        if message["role"] == "tool" and message["tool_call_id"] not in called:
            lost += 1
            continue
        if isinstance(message["content"], list):
            blocks = [b for b in message["content"] if b["type"] != "tool_result" or b["tool_use_id"] in called]
            lost += len(blocks) < len(message["content"])
            if not blocks and message["content"]:
                continue
            message["content"] = blocks
        kept.append(message)
    assert len(made.outcome.edits) == lost == len(made.outcome.repaired)
    return kept


def calls_of(message: Any) -> set[str]:
    blocks = message["content"] if isinstance(message["content"], list) else ()
    called = {call["id"] for call in message.get("tool_calls", ())}
    return called | {block["id"] for block in blocks if block["type"] == "tool_use"}


CHANGED = ("parentUuid", "sessionId")
COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def law_2_and_3_of_sessions(made: Compaction) -> None:
    """The output is a boundary, the block as its summary, and the tail's records, linked to it and to each other."""
    out = made.done.data.splitlines()
    boundary, summary, *kept = (json.loads(line) for line in out)
    assert (boundary["subtype"], boundary["parentUuid"]) == ("compact_boundary", None)
    assert (summary["isCompactSummary"], summary["parentUuid"]) == (True, boundary["uuid"])
    assert summary["message"]["content"] == made.outcome.block
    left = iter(made.raw.splitlines())
    for line, record in zip(out[2:], kept, strict=True):
        original = next(old for old in left if comparable(json.loads(old)) == comparable(record))
        assert line == original or json.loads(original) != record
    written = [record["uuid"] for record in kept if "uuid" in record]
    assert not {entry.id for entry in made.head} & set(written)
    tail = [entry.id for entry in made.tail]
    assert [uuid for uuid in written if uuid in tail] == tail
    known = {summary["uuid"]}
    for record in kept:
        assert not record.get("isSidechain")
        assert not any(record.get("message", {}).get("usage", {}).get(name) for name in COUNTS)
        if "uuid" in record:
            assert record["parentUuid"] in known
            known.add(record["uuid"])


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """A record without the fields that its client needs changed."""
    record = {key: value for key, value in record.items() if key not in CHANGED}
    if isinstance(record.get("message"), dict) and "usage" in record["message"]:
        usage = {key: value for key, value in record["message"]["usage"].items() if key not in COUNTS}
        record["message"] = record["message"] | {"usage": usage}
    return record


def law_3(made: Compaction) -> None:
    """Fixed part, head and tail are the live conversation; read again, the output is fixed part, one block, tail."""
    before, after = made.before, made.after
    assert [*before.live[: before.fixed], *(e.index for e in (*made.head, *made.tail))] == list(before.live)
    assert after.ours
    assert after.entries[after.live[after.fixed]].text == made.outcome.block
    fixed = [before.entries[i].text for i in before.live[: before.fixed]]
    assert [after.entries[i].text for i in after.live[: after.fixed]] == fixed
    old = [e for e in made.tail if e.index not in made.outcome.repaired]
    new = [after.entries[i] for i in after.live[after.first :]]
    texts = iter([entry.text for entry in new])
    assert all(entry.text in texts for entry in old)
    assert len(old) <= len(new) <= len(made.tail)
    assert not after.past


# Law 5


WRONG = (
    "--keep some", "--pin (", "--budget window", "--select 7", "--format claude-code", "-o no/y.jsonl", "-o taken",
    "--summary no/s.json", "--summary taken", "-o x.jsonl", "--in-place --summary no/s.json", "--block-role nobody",
)  # fmt: skip


@given(openai_lists(), st.sampled_from(WRONG))
@thorough
def test_law_5_a_failure_leaves_everything_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, wrong: str
) -> None:
    done = run("openai", raw, Options())
    # the command names the files in the block: where that makes it as large as the head, there is nothing to do
    assume(done.changed and done.outcomes[0].tokens_after + 150 < done.outcomes[0].plan.sizes.total)
    folder, back = tmp_path_factory.mktemp("law5"), os.getcwd()  # noqa: PTH109
    os.chdir(folder)
    try:
        Path("x.jsonl").write_bytes(raw)
        Path("taken").write_bytes(b"mine")
        stamp = Path("x.jsonl").stat()
        told = compact("run", "x.jsonl", *wrong.split())
        assert told.code in (2, 3, 5)
        assert [name for name in names(folder) if not name.endswith(".orig")] == ["taken", "x.jsonl"]
        assert Path("taken").read_bytes() == b"mine"
        assert Path("x.jsonl").read_bytes() == raw
        assert Path("x.jsonl").stat().st_mtime_ns == stamp.st_mtime_ns
    finally:
        os.chdir(back)


# Law 7


def law_7(made: Compaction) -> None:
    """Compacting what is compacted changes nothing."""
    again = run(made.format, made.done.data, made.options)
    assert not again.changed
    assert again.data == made.done.data
    assert again.outcomes[0].reason


def test_law_7_also_where_the_tail_was_longer_than_asked() -> None:
    table = "\n".join(f"row {n} is {n * 7919 % 1000}" for n in range(800))
    steps = [{"role": "assistant", "content": f"step {n}"} for n in range(11)]
    raw = jsonl([*openai(garden(6)), {"role": "user", "content": f"Look at this. {table}"}, *steps])
    options = Options()
    made = Compaction("openai", raw, options, run("openai", raw, options))
    assert len(made.tail) == 12
    law_7(made)


@pytest.mark.parametrize("format", sorted(FILES))
def test_law_7_however_often_it_grows_there_is_one_block(format: str) -> None:
    raw = stored(format, garden(6))
    for n in range(1, 4):
        made = run(format, raw, Options(max_summary=4000))
        assert made.changed
        texts = [entry.text for entry in read(format, made.data).transcripts[0].entries]
        assert sum(text.startswith(BLOCK_START) for text in texts) == 1
        more = garden(6 * (n + 1))[6 * n :]
        if format == "claude-code":
            last = json.loads(made.data.splitlines()[-1])["uuid"]
            raw = made.data + jsonl(Session(last=last, start=1000 * n).turns(more).records)
        else:
            raw = made.data + jsonl(openai(more, system="") if format == "openai" else anthropic(more))


# Law 8


def law_8(made: Compaction) -> None:
    """The result is smaller in tokens and bytes, or the input itself with a reason; both sizes are told rightly."""
    counter = counter_for(made.before.model)
    old, new = (counter.entries(t.entries[i] for i in t.live) for t in (made.before, made.after))
    assert (made.outcome.plan.sizes.total, made.outcome.tokens_after) == (old, new)
    if made.done.changed:
        assert new < old
        assert len(made.done.data) < len(read(made.format, made.raw).raw)
    else:
        assert made.done.data == read(made.format, made.raw).raw  # a log that is only read is unpacked in it
        assert made.outcome.reason


def test_law_8_around_the_size_where_it_begins_to_pay() -> None:
    changed = []
    for words in range(100, 340, 2):
        call = Round("", (Call("c", "Bash", {"command": "p"}, "word " * words),))
        raw = stored("anthropic", [Turn("Print.", (call,)), Turn("Next.", (), "Ok.")])
        options = Options(Keep(2))
        made = Compaction("anthropic", raw, options, run("anthropic", raw, options))
        law_8(made)
        changed.append(made.done.changed)
    assert changed == sorted(changed)
    assert set(changed) == {False, True}


def test_law_8_where_it_would_grow_both_numbers_are_said(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        jsonl([{"role": r, "content": t} for _ in range(25) for r, t in (("user", "next"), ("assistant", "ok"))])
    )
    done = compact("run", path, "-o", tmp_path / "y.jsonl")
    assert done.code == 0
    assert "not smaller: 250 tokens would become " in done.err
    assert f"{path.stat().st_size:,} bytes" in done.err
    assert (tmp_path / "y.jsonl").read_bytes() == path.read_bytes()


# Law 10


def law_10(made: Compaction) -> None:
    """The same input gives the same bytes and the same snapshot; new records carry the last head entry's time."""
    again = run(made.format, made.raw, made.options)
    assert again.data == made.done.data
    assert again.outcomes[0].snapshot == made.outcome.snapshot
    if made.format == "claude-code":
        last = [entry for entry in made.head if entry.id][-1]
        times = {json.loads(line)["timestamp"] for line in made.done.data.splitlines()[:2]}
        assert times == {last.time}


def test_law_10_in_other_processes(tmp_path: Path) -> None:
    results = set()
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        for name in FILES:
            (folder / f"{name}.jsonl").write_bytes(stored(name, garden(12)))
        code = (
            "from compactor.cli import main\n"
            f"for name in {sorted(FILES)}: assert not main(['run', name + '.jsonl', '--max-summary', '2500'])"
        )
        env = environment(PYTHONHASHSEED=seed, TZ=f"UTC+{seed}")
        subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, check=True, capture_output=True)
        results.add(tuple(sorted((path.name, told(path)) for path in folder.iterdir())))
    assert len(results) == 1


def told(path: Path) -> bytes:
    """A file's bytes, less what a summary says of the run itself."""
    if not path.name.endswith(".summary.json"):
        return path.read_bytes()
    document = json.loads(path.read_bytes())
    assert set(document["provenance"].pop("run")) == {"time", "duration_s"}
    return json.dumps(document).encode()
