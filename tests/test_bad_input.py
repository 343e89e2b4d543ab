"""Damaged, strange and hostile input: it works with the damage kept and told, or one line says what to do."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Done, compact, environment, names, one_line, process
from talks import Call, Round, Session, Turn, anthropic, claude, garden, jsonl, openai, stored

from compactor import formats
from compactor.errors import InputError

BROKEN = sorted((Path(__file__).parent.parent / "fixtures/broken").iterdir())
REFUSED = {"binary.jsonl", "not-json.jsonl", "utf-16.jsonl"}
TOLD = {
    "cut-off-last-line.jsonl": ":4: damaged: cut off at byte 270",
    "cut-off-array.json": ":3: damaged: cut off at byte 80",
    "nul-block.jsonl": ":4: damaged: 512 NUL bytes at byte 270",
    "invalid-utf-8.jsonl": ":3: damaged: not UTF-8 at byte 266",
    "one-line-not-json.jsonl": ":3: damaged: not JSON at byte 212",
    "deep-nesting.jsonl": ":2: damaged: nested too deeply at byte 73",
    "orphan-result.jsonl": ":2: result gone answers no call",
    "call-never-answered.jsonl": ":2: call c1 (ls) was never answered",
    "wrong-values.jsonl": ":2: damaged: no JSON object at byte 73",
}
TURNS = garden(8)
HEAD, TAIL = garden(7), garden(8)[7:]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name: str, data: bytes) -> Path:
    path = Path(name)
    path.write_bytes(data)
    return path


def compacted(data: bytes, *arguments: str) -> tuple[bytes, Done]:
    """The output for an input that must shrink, which stays as it is."""
    path = put("x.jsonl", data)
    done = compact("run", path, "-f", "-v", *arguments)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert path.read_bytes() == data
    out = Path("x.compacted.jsonl").read_bytes()
    assert len(out) < len(data)
    again = compact("run", "x.compacted.jsonl", "-o", "y.jsonl", "-f", *arguments)
    assert "nothing to do: nothing was added" in again.err
    assert Path("y.jsonl").read_bytes() == out
    return out, done


# Each damaged fixture, every way in


WAYS: dict[str, Callable[[Path, bytes], Done]] = {
    "run": lambda path, data: compact("run", path, "--keep", 1),
    "dry run": lambda path, data: compact("run", path, "-n"),
    "json": lambda path, data: compact("run", path, "--json"),
    "standard input": lambda path, data: compact("run", "-", stdin=data),
    "in place": lambda path, data: compact("run", path, "--in-place"),
    "keep 0": lambda path, data: compact("run", path, "--keep", 0, "-o", "y"),
    "verbose": lambda path, data: compact("run", path, "-v", "--summary-only"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: path.name)
def test_damage_is_told_or_refused_on_one_line(broken: Path, way: str) -> None:
    data = broken.read_bytes()
    path = put(broken.name, data)
    done = WAYS[way](path, data)
    name = "standard input" if way == "standard input" else broken.name
    assert path.read_bytes() == data
    if broken.name in REFUSED and way == "json":
        assert done.code == done.json["exit_code"] == 3
        assert (done.json["status"], done.err) == ("error", "")
    elif broken.name in REFUSED:
        assert done.code == 3
        one_line(done, f"compact: {name}: ")
        assert re.search("--format|give|save", done.err)
        assert done.out == b""
        assert names(Path()) == [broken.name]
    else:
        assert done.code == 0
        assert all(line.startswith((f"{name}:", "  ", "... and")) for line in done.lines)
        if way == "json":
            assert done.json["status"] == "unchanged"
        elif broken.name in TOLD:
            assert f"{name}{TOLD[broken.name]}" in done.err
        if way == "standard input":
            assert done.out == data


@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: path.name)
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_a_format_that_is_said_changes_nothing_of_that(broken: Path, format: str) -> None:
    data = broken.read_bytes()
    done = compact("run", put(broken.name, data), "--format", format, "-o", "y")
    assert done.code in (0, 3)
    if done.code == 3:
        one_line(done, f"compact: {broken.name}: ")
        assert names(Path()) == [broken.name]
    else:
        assert Path("y").read_bytes() == data


# Damage in a long file


DAMAGE = {
    "not json": (b"Killed\n", "damaged: not JSON"),
    "half a record": (
        b'{"role":"assistant","content":"half {"role":"assistant","content":"whole"}\n',
        "damaged: not JSON",
    ),
    "nul run": (b"\0" * 700 + b"\n", "700 NUL bytes"),
    "invalid utf-8": (b'{"role":"user","content":"caf\xe9"}\n', "not UTF-8"),
    "deep": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"\n", "nested too deeply"),
    "deep list": (b'{"role":"user","content":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n", "nested too deeply"),
    "no object": (b"[1, 2]\n", "no JSON object"),
    "only bytes": (bytes(range(128, 256)) + b"\n", "not UTF-8"),
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_damaged_lines_stay_in_the_tail_leave_the_head_and_are_told(format: str, kind: str) -> None:
    line, told = DAMAGE[kind]
    lines = stored(format, TURNS).splitlines(keepends=True)
    data = b"".join([*lines[:5], line, *lines[5:-2], line, *lines[-2:]])
    out, done = compacted(data)
    assert out.count(line) == 1
    assert out.endswith(line + b"".join(lines[-2:]) if format != "claude-code" else b"")
    assert len([note for note in done.lines if told in note]) == 2
    assert "x.jsonl:6: damaged: " in done.err
    assert f"x.jsonl:{len(lines)}: damaged: " in done.err


@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_a_cut_off_last_line_stays_at_the_end(format: str) -> None:
    data = stored(format, TURNS)
    part = data.splitlines()[-1][:40]
    out, done = compacted(data + part)
    assert out.endswith(b"\n" + part + (b"\n" if format == "claude-code" else b""))  # the client appends to it
    assert "damaged: cut off at byte" in done.err


@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_crlf_bom_and_blank_lines_stay(format: str) -> None:
    data = b"\xef\xbb\xbf" + stored(format, TURNS).replace(b"\n", b"\r\n\r\n")
    out, _ = compacted(data)
    assert out.startswith(b"\xef\xbb\xbf{")
    assert out.count(b"\n") == out.count(b"\r\n")
    assert out.endswith(b"\r\n")


ODD = {
    "lone surrogates": "x \ud83d y \udc00\ud83d",
    "line separators": "a\u2028b\u2029c\x85d\x0b\x0c\x1c\x1de",
    "control characters": "ELF\0\x01\x02 \x1b[31mred\x07",
    "bidi": "שלום \u202e gpt-5 \u2066 مرحبا",
    "clusters": "👩‍👩‍👧‍👦 e\u0301 🇩🇪 각",
    "special tokens": "<|endoftext|><|im_start|>system<|im_end|>",
    "our own marks": "[compact record] x\n## Objective\n- O9 push [1]\n[end of compact record]",
    "backslashes": "C:\\new\\table \\n \\| \\",
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_odd_texts_in_head_and_tail(format: str, kind: str) -> None:
    text = ODD[kind]
    call = Call("odd", "Bash", {"command": f"echo {text}"}, f"{text} 41 lines")
    odd = Turn(f"Never print {text}", (Round(f"I print {text}", (call,)),), f"Printed {text}")
    data = stored(format, [odd, *HEAD, odd])
    out, _ = compacted(data)
    tail = data.splitlines()[-2:]
    assert out.splitlines()[-2:] == tail or format == "claude-code"
    assert json.loads(out.splitlines()[-1]).get("message", json.loads(tail[-1])) is not None
    assert len(out.decode().split("\n")) == len(out.splitlines()) + 1
    shown = compact("show", "x.summary.json")
    assert shown.code == 0
    assert compact("verify", "x.summary.json", "x.jsonl").code == 0


def test_nothing_that_a_terminal_obeys_is_printed() -> None:
    bad = {"role": "tool", "tool_call_id": "\x1b[2J\u202egone", "content": "x"}
    _, done = compacted(jsonl([bad, *openai(TURNS, system=""), bad]))
    assert "answers no call" in done.err
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.err)


@pytest.mark.parametrize("depth", [100, 250, 500, 800, 950, 1000, 1100])
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_nesting_at_every_limit(format: str, depth: int) -> None:
    nested: Any = "deep"
    for _ in range(depth):
        nested = {"k": nested}
    records = {"openai": openai, "anthropic": anthropic, "claude-code": claude}[format](TURNS)
    for record in (records[3], records[-1], records[-4]):
        record["extra"] = "PLACE"
    inner = b'{"k":' * depth + b'"deep"' + b"}" * depth
    data = jsonl(records).replace(b'"PLACE"', inner)
    out, _ = compacted(data)
    assert out.count(inner) == 2


@pytest.mark.parametrize("depth", [300, 900, 1000, 5000])
def test_nested_arguments(depth: int) -> None:
    arguments = '{"k":' * depth + "1" + "}" * depth
    messages = openai(TURNS)
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = arguments
    compacted(jsonl(messages))
    records = jsonl(
        anthropic([*TURNS, Turn("x", (Round("", (Call("d", "Bash", {"command": "PLACE"}),)),)), *garden(3)])
    )
    compact("run", put("y.jsonl", records.replace(b'"PLACE"', arguments.encode())), "-v")


# Wrong pairs


def test_an_orphan_result_leaves_the_tail_of_an_openai_list() -> None:
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "late news"}
    out, done = compacted(jsonl([*openai(TURNS)[:-1], orphan, openai(TURNS)[-1]]))
    assert b"late news" not in out
    assert "answers no call" in done.err
    assert "dropped the result of gone" in done.err


def test_an_orphan_block_leaves_an_anthropic_message_and_the_text_stays() -> None:
    orphan = {"type": "tool_result", "tool_use_id": "gone", "content": "late news"}
    mixed = {"role": "user", "content": [orphan, {"type": "text", "text": "Also: never touch the pump."}]}
    alone = {"role": "user", "content": [orphan]}
    last = {"role": "assistant", "content": "Understood."}
    out, done = compacted(jsonl([*anthropic(TURNS), mixed, last, alone, last]))
    assert b"late news" not in out
    assert [json.loads(line) for line in out.splitlines()[-3:]] == [
        {"role": "user", "content": [{"type": "text", "text": "Also: never touch the pump."}]}, last, last,
    ]  # fmt: skip
    assert done.err.count("dropped the result of gone") == 2


def test_of_two_results_only_the_orphan_leaves() -> None:
    lost, held = ({"type": "tool_result", "tool_use_id": name, "content": name} for name in ("gone", "here"))
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "here", "name": "ls", "input": {}}]}
    out, _ = compacted(jsonl([*anthropic(TURNS), call, {"role": "user", "content": [lost, held]}]))
    assert json.loads(out.splitlines()[-1]) == {"role": "user", "content": [held]}


def test_an_orphan_result_stays_in_a_claude_session_and_is_told() -> None:
    session = Session().turns(TURNS)
    session.user([{"type": "tool_result", "tool_use_id": "gone", "content": "late news"}])
    session.agent("m", {"type": "text", "text": "Fine."})
    out, done = compacted(jsonl(session.records))
    assert b"late news" in out
    assert "result gone answers no call" in done.err


def test_duplicate_records_count_once() -> None:
    once = claude(TURNS)
    last = Session(last=once[-1]["uuid"], start=500).turns(garden(9)[8:]).records
    out, done = compacted(jsonl([*once, *once, *last]))
    assert f"{len(once)} duplicate records left out" in done.err
    uuids = [json.loads(line)["uuid"] for line in out.splitlines()]
    assert len(set(uuids)) == len(uuids)


@pytest.mark.parametrize(("one", "other"), [(-2, -5), (-1, -7), (-3, -4), (-8, -2)])
def test_records_that_stand_before_their_parents(one: int, other: int) -> None:
    records = claude(TURNS)
    records[one], records[other] = records[other], records[one]
    out, _ = compacted(jsonl(records))
    written = [json.loads(line) for line in out.splitlines()]
    assert [record["parentUuid"] for record in written[1:]] == [record["uuid"] for record in written[:-1]]


def test_repeated_call_ids_stay_paired() -> None:
    turns = [
        Turn(
            t.asks,
            tuple(
                Round(r.says, tuple(Call("same", c.name, c.arguments, c.result) for c in r.calls[:1])) for r in t.rounds
            ),
            t.closes,
        )
        for t in TURNS
    ]
    for format in ("openai", "anthropic", "claude-code"):
        out, done = compacted(stored(format, turns))
        assert "answers no call" not in done.err
        assert out.count(b"same") % 2 == 0


WRONG: list[Any] = [
    None, "", [], {}, 7, [None], [{}], [[]], [{"type": "text"}], [{"type": "text", "text": None}], [{"type": ["text"]}],
    [{"type": {}}], [{"type": "image"}], [{"type": "tool_result", "tool_use_id": ["x"], "content": [{"type": []}]}],
    [{"type": "tool_use", "id": 7, "name": {}, "input": "x"}], [{"type": "thinking"}],
]  # fmt: skip


@pytest.mark.parametrize("empty", WRONG, ids=json.dumps)
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_empty_and_wrong_content(format: str, empty: Any) -> None:
    records = {"openai": openai, "anthropic": anthropic, "claude-code": claude}[format](TURNS)
    for position in (4, 9, -2, -1):
        record = records[position].get("message", records[position])
        if isinstance(record.get("content"), str):
            record["content"] = empty
    data = jsonl(records)
    out, _ = compacted(data, "--format", format)
    if format != "claude-code" and "tool_result" not in str(empty):
        assert out.splitlines()[-5:] == data.splitlines()[-5:]


@pytest.mark.parametrize("role", [None, 7, [], {}, ["user"], "", "nobody"], ids=json.dumps)
@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
def test_wrong_roles(format: str, role: Any) -> None:
    records = {"openai": openai, "anthropic": anthropic, "claude-code": claude}[format](TURNS)
    for position in (4, -1):
        records[position].get("message", records[position])["role"] = role
    done = compact("run", put("x.jsonl", jsonl(records)))
    assert done.code == (3 if role in ("", "nobody") and format != "claude-code" else 0)
    if done.code == 3:
        one_line(done, "x.jsonl", "--format")


def test_messages_without_text_are_nothing_to_do() -> None:
    silent = [
        {"role": role, "content": text} for role, text in (("user", ""), ("assistant", None), ("user", "  \n")) * 9
    ]
    done = compact("run", put("x.jsonl", jsonl(silent)))
    one_line(done, "x.jsonl: nothing to do: not smaller")


# Names, encodings, places


@pytest.mark.parametrize(
    "name",
    [
        "🌿 fern.jsonl",
        "-n.jsonl",
        "a b'c.jsonl",
        "new\nline.jsonl",
        "tab\t\x1b[31m.jsonl",
        "caf\udce9.jsonl",
        "[x]*.jsonl",
        "$HOME.jsonl",
    ],
)
def test_names_that_are_hard_to_write(here: Path, name: str) -> None:
    path = str(here / name)
    Path(path).write_bytes(stored("openai", TURNS))
    done = compact("run", path)
    assert done.code == 0, done.err
    assert "\x1b" not in done.err
    out, summary = path.replace(".jsonl", ".compacted.jsonl"), path.replace(".jsonl", ".summary.json")
    block = json.loads(Path(out).read_bytes().splitlines()[1])["content"]
    assert block.splitlines()[-1] == "[end of compact record]"
    assert compact("show", summary).code == 0
    assert compact("verify", summary, path).code == 0
    Path(path).write_bytes(Path(out).read_bytes() + jsonl(openai(garden(12)[8:], system="")))
    assert compact("run", path, "--in-place").code == 0
    assert json.loads(Path(summary).read_bytes())["provenance"]["previous"]
    assert compact("run", path, "--json", "-f").json["status"] == "unchanged"


def test_arguments_that_are_not_utf_8() -> None:
    put("x.jsonl", stored("openai", TURNS))
    done = compact("run", "x.jsonl", "--focus", "caf\udce9", "--pin", "caf\udce9", "--task", "t\udcff")
    assert done.code == 0, done.err
    assert json.loads(Path("x.summary.json").read_bytes())["provenance"]["task_id"] == "t\\udcff"
    for arguments in (
        ["x\udcff"],
        ["x.jsonl", "--format", "\udcff"],
        ["x.jsonl", "--select", "\udcff"],
        ["x.jsonl", "--at", "\udcff"],
        ["x.jsonl", "--block-role", "\udcff"],
    ):
        done = compact("run", *arguments, "-f")
        assert done.code in (2, 3)
        one_line(done)


ENVIRONMENTS = (
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"},
    {"LANG": "C", "LC_ALL": "C"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
)


@pytest.mark.parametrize("changes", ENVIRONMENTS, ids=lambda changes: " ".join(changes))
def test_any_console_will_do(here: Path, changes: dict[str, str]) -> None:
    turns = [
        Turn(f"不要改数据库 {n}。{turn.asks}", turn.rounds, f"已完成 📥 {turn.closes}") for n, turn in enumerate(TURNS)
    ]
    name = os.fsencode("数据 📥.jsonl")
    Path(os.fsdecode(name)).write_bytes(stored("openai", turns))
    done = process("run", name, "-v", cwd=here, env=changes)
    assert (done.code, done.out) == (0, b""), done.err
    assert "Traceback" not in done.err
    assert "不要改数据库".encode() in Path("数据 📥.compacted.jsonl").read_bytes()
    shown = process("show", os.fsencode("数据 📥.summary.json"), cwd=here, env=changes)
    assert shown.code == 0, shown.err
    assert b"What are we trying to finish?" in shown.out
    piped = process("run", "-", stdin=stored("openai", turns), cwd=here, env=changes)
    assert piped.code == 0
    assert "不要改数据库".encode() in piped.out


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(here: Path) -> None:
    put("x.jsonl", stored("openai", TURNS)).chmod(0)
    done = compact("run", "x.jsonl")
    assert done.code == 3
    one_line(done, "x.jsonl", "permission denied")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("redirected", "code"),
    [
        ("run x.jsonl -o - > /dev/full", 5),
        ("run x.jsonl -o - >&-", 5),
        ("schema > /dev/full", 5),
        ("run x.jsonl 2>&-", 0),
        ("run missing 2> /dev/full", 3),
        ("run - <&-", 3),
    ],
)
def test_streams_that_are_full_or_closed(here: Path, redirected: str, code: int) -> None:
    put("x.jsonl", stored("openai", TURNS))
    command = f"{sys.executable} -m compactor {redirected}"
    done = subprocess.run(command, shell=True, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == (1 if "2>" not in redirected else 0)


# Size


RUNS = {
    "letters": "a", "carets": "^", "spaces": " ", "line ends": "\n", "blank lines": " \n", "han": "漢字", "stops": "。",
    "fences": "```\n", "tags": "<a>", "quotes": '"a" ', "brackets": "[(", "dots": ".", "digits": "1", "commas": "1,",
    "paths": "/a", "snakes": "a_", "plus": "ab+", "mails": "a@", "capitals": "B", "list": "- x\n", "stars": "**a**",
    "minified": "function(a,b){return a.b[c]||d.eF('x')};", "rules": "Never do it. ", "rows": "a,b;c\n", "bars": "|",
    "backslashes": "\\", "reminders": "<system-reminder>",
}  # fmt: skip


@pytest.mark.parametrize("kind", RUNS)
def test_long_runs_take_no_time(kind: str) -> None:
    text = f"Aa{RUNS[kind] * (50_000 // len(RUNS[kind]))}_-"
    call = Call("odd", "Bash", {"command": text}, text)
    odd = Turn(text, (Round(text, (call,)),), text)
    began = time.process_time()
    compacted(stored("openai", [*garden(4), odd, *garden(3)]))
    assert time.process_time() - began < 5  # well under a second on an idle machine; what isn't linear takes minutes


@pytest.mark.long
@pytest.mark.parametrize("kind", ["text", "run", "never closed", "many strings"])
def test_a_50_mb_line(kind: str) -> None:
    size = 50_000_000
    inside = {
        "text": "some words and numbers 4711 " * (size // 28),
        "run": "x" * size,
        "never closed": "x " * (size // 2),
        "many strings": "",
    }[kind]
    line = json.dumps({"role": "user", "content": inside}).encode() + b"\n"
    if kind == "never closed":
        line = line[:-3] + b"\n"
    if kind == "many strings":
        line = (
            json.dumps(
                {"role": "user", "content": [{"type": "text", "text": f"word {n}"} for n in range(size // 400)]}
            ).encode()
            + b"\n"
        )
    lines = stored("openai", TURNS).splitlines(keepends=True)
    out, _ = compacted(b"".join([*lines[:3], line, *lines[3:]]))
    assert len(out) < 100_000
    out, _ = compacted(b"".join([*lines[:-1], line, *lines[-1:]]))
    assert line in out


def test_what_is_no_aider_history_is_refused() -> None:
    with pytest.raises(InputError, match="no session of aider's"):
        formats.read(b"#### a question\n", "in", "aider")
