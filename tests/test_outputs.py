"""What stands where after a run, also after one that fails; what the block and the lines say; what verify says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Done, compact, names, one_line
from talks import Session, Turn, anthropic, claude, garden, jsonl, openai, stored

from compactor import files, job
from compactor.transcript import BLOCK_START

TURNS, MORE, LATER = garden(8), garden(12)[8:], garden(16)[12:]
OPENAI, CLAUDE = stored("openai", TURNS), stored("claude-code", TURNS)
MANY = garden(30)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(name: str, data: bytes = OPENAI) -> Path:
    path = Path(name)
    path.write_bytes(data)
    return path


def ok(*arguments: object, stdin: bytes = b"") -> Done:
    done = compact(*arguments, stdin=stdin)
    assert done.code == 0, done.err
    return done


def load(path: str) -> Any:
    return json.loads(Path(path).read_bytes())


def block(text: bytes | str) -> str:
    """The block in a text, unescaped enough to look for words in it."""
    whole = text.decode() if isinstance(text, bytes) else text
    return whole[whole.index(BLOCK_START) :]


def hidden(document: Any) -> int:
    return sum(not item["shown"] and item["status"] == "active" for f in document["snapshot"].values() for item in f)


def ids(document: Any) -> set[str]:
    return {item["id"] for field in document["snapshot"].values() for item in field}


def just_before_writing(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    real = job._write

    def write(*arguments: Any) -> Any:
        happens()
        return real(*arguments)

    monkeypatch.setattr(job, "_write", write)


def hiding(name: str, shape: Callable[[list[Any]], bytes] = jsonl) -> Any:
    """A compacted file, `x` and that ending, whose block doesn't show all; its summary file."""
    put(f"w{name}", shape(openai(TURNS)))
    ok("run", f"w{name}", "--max-summary", "3000", "--task", "water-7")
    grown = [*messages_of(Path(f"w.compacted{name}").read_bytes()), *openai(MORE, system="")]
    put(f"x{name}", shape(grown))
    ok("run", f"x{name}", "--max-summary", "700")
    for path in (f"w{name}", f"w.compacted{name}", "w.summary.json"):
        Path(path).unlink()
    document = load("x.summary.json")
    assert hidden(document.get("conversations", [document])[0])
    return document


def messages_of(raw: bytes) -> list[Any]:
    """The messages of a file of any shape, of the first row where it holds several."""
    values = [json.loads(line) for line in raw.splitlines()]
    if isinstance(values[0], list):
        return values[0]
    return values[0].get("messages", values)  # type: ignore[no-any-return]


# Failures


@pytest.mark.parametrize("first", ["x.compacted.jsonl", "x.summary.json", "both"])
def test_the_loser_of_two_runs_leaves_what_the_winner_wrote(
    here: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    put("x.jsonl")
    won = ["x.compacted.jsonl", "x.summary.json"] if first == "both" else [first]
    just_before_writing(monkeypatch, lambda: [put(name, b"the winner's") for name in won])
    done = compact("run", "x.jsonl")
    assert done.code == 5
    one_line(done, "it exists")
    assert names(here) == sorted(["x.jsonl", *won])
    assert all(Path(name).read_bytes() == b"the winner's" for name in won)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_transcript_that_fails_leaves_the_previous_summary(here: Path) -> None:
    put("x.jsonl")
    ok("run", "x.jsonl")
    old = Path("x.summary.json").read_bytes()
    put("grown.jsonl", Path("x.compacted.jsonl").read_bytes() + jsonl(openai(MORE, system="")))
    before = names(here)
    for force in ([], ["-f"]):
        done = compact("run", "grown.jsonl", *force, "-o", "/dev/full", "--summary", "x.summary.json")
        assert done.code == 5
        one_line(done, "/dev/full", "disk is full")
        assert (names(here), Path("x.summary.json").read_bytes()) == (before, old)
    done = compact("run", "grown.jsonl", "--in-place", "--summary", "/dev/full")
    assert done.code == 5
    assert Path("grown.jsonl").read_bytes().endswith(jsonl(openai(MORE, system="")))


def test_a_summary_that_fails_takes_the_transcript_back(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put("x.jsonl")
    real = files._link

    def link(temporary: Path, target: Path, *rest: Any) -> None:
        if target.name == "x.summary.json":
            target.write_bytes(b"the winner's")
        real(temporary, target, *rest)

    monkeypatch.setattr(files, "_link", link)
    assert compact("run", "x.jsonl").code == 5
    assert names(here) == ["x.jsonl", "x.summary.json"]
    Path("x.summary.json").unlink()
    assert compact("run", "x.jsonl", "--in-place").code == 5
    assert Path("x.jsonl").read_bytes() == OPENAI
    assert Path("x.summary.json").read_bytes() == b"the winner's"


def test_two_files_prepared_are_both_on_disk_before_one_is_there(here: Path) -> None:
    put("a", b"old")
    with pytest.raises(ZeroDivisionError), files.prepared("a", b"new", overwrite=True):
        raise ZeroDivisionError
    assert (names(here), Path("a").read_bytes()) == (["a"], b"old")


@pytest.mark.parametrize(
    "arguments",
    [
        "x.jsonl --in-place --summary-only",
        "x.jsonl --resumable --summary-only",
        "x.jsonl --resumable -o y.jsonl",
        "x.jsonl --resumable -o -",
        "- --summary -",
        "x.jsonl -o - --summary -",
    ],
)
def test_outputs_that_contradict_each_other_are_wrong_usage(here: Path, arguments: str) -> None:
    put("x.jsonl", CLAUDE)
    done = compact("run", *arguments.split(), stdin=OPENAI)
    assert (done.code, done.out) == (2, b"")
    one_line(done)
    assert names(here) == ["x.jsonl"]


def test_a_device_needs_no_force_and_gets_no_summary_beside_it(here: Path) -> None:
    put("x.jsonl")
    ok("run", "x.jsonl", "-o", "/dev/null")
    ok("run", "x.jsonl", "-o", "/dev/null", "--summary", "s.json")
    ok("run", "x.jsonl", "-o", "/dev/null", "--budget", "1000000")
    assert names(here) == ["s.json", "x.jsonl"]
    assert not Path("/dev/null.summary.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "on_stderr"),
    [
        ("run missing --json", 3, False),
        ("run x.jsonl --json --at 7", 2, False),
        ("run x.jsonl --json -o no/y", 5, False),
        ("run - --json --select 9", 2, True),
        ("run missing -o - --json", 3, True),
        ("show missing --json", 3, False),
        ("verify missing --json", 3, False),
    ],
)
def test_an_error_under_json_is_one_object(arguments: str, code: int, on_stderr: bool) -> None:
    put("x.jsonl")
    done = compact(*arguments.split(), stdin=OPENAI)
    told = json.loads(done.err if on_stderr else done.out)
    assert (done.code, told["status"], told["exit_code"], bool(told["reason"])) == (code, "error", code, True)
    assert (done.out if on_stderr else done.err.encode()) == b""


# What the block and the lines say


def test_in_place_the_full_record_is_the_backup(here: Path) -> None:
    path = put("x.jsonl")
    ok("run", path, "--in-place")
    (backup,) = here.glob("*.orig")
    record = block(path.read_bytes()).split("Full record: ")[1]
    assert record.startswith(f"{backup.name} (")
    assert f"sed -n 41p {backup.name} recalls a line" in record
    path.write_bytes(OPENAI)
    backup.write_bytes(b"somebody's")
    ok("run", path, "--in-place", "-f")
    assert f"Full record: {backup.name.replace('.orig', '.2.orig')} (" in block(path.read_bytes())


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("rows", [False, True])
def test_no_line_is_recalled_where_lines_hold_no_messages(rows: bool, indent: int | None) -> None:
    messages = openai(TURNS)
    put("x.json", json.dumps([{"messages": messages}] if rows else messages, indent=indent).encode())
    ok("run", "x.json")
    text = block(Path("x.compacted.json").read_bytes())
    assert "Full record: x.json (" in text
    assert "sed -n" not in text
    ok("run", put("y.jsonl"))
    assert "sed -n 41p y.jsonl recalls a line" in block(Path("y.compacted.jsonl").read_bytes())


def test_markdown_is_no_summary_to_show() -> None:
    hiding(".jsonl")
    put("y.jsonl", Path("x.compacted.jsonl").read_bytes() + jsonl(openai(LATER, system="")))
    done = ok("run", "y.jsonl", "--summary", "y.md", "--max-summary", "700")
    assert "see it: y.md" in done.err
    text = block(Path("y.compacted.jsonl").read_bytes())
    assert "more not shown: y.md)" in text
    assert "compact show" not in text + done.err


def test_the_providers_count_stands_beside_ours() -> None:
    assert "(the provider last counted 3,212)" in ok("run", put("x.jsonl", CLAUDE)).lines[0]
    assert "provider" not in ok("run", put("y.jsonl")).err


def test_a_pin_that_matches_nothing_is_told() -> None:
    put("x.jsonl")
    done = ok("run", "x.jsonl", "--pin", "no such words", "--pin", "deadbeef:1", "--pin", "bed 2")
    assert [line for line in done.lines if "--pin" in line] == [
        "x.jsonl: --pin 'no such words' matches nothing",
        "x.jsonl: --pin 'deadbeef:1' matches nothing",
    ]


def test_show_prints_nothing_that_a_terminal_obeys() -> None:
    odd = Turn("Never touch \x1b[31m\x07 red\u202e.\tNo.", (), "Fine.")
    ok("run", put("x.jsonl", jsonl(openai([odd, *TURNS]))))
    shown = ok("show", "x.summary.json").out.decode()
    assert "\\x1b[31m" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert "\n" in shown


# Input that holds nothing, or one broken value


@pytest.mark.parametrize(
    "data",
    [b"[]", b"[ ]\n", b'{"messages": []}', b'{"messages":[]}\n{"id":2,"messages":[]}\n', b'[{"traj": []}]',
     b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\xef\xbb\xbf[]"],
)  # fmt: skip
def test_a_file_without_messages_is_nothing_to_do(data: bytes) -> None:
    for arguments in ([], ["-n"], ["--in-place"]):
        one_line(ok("run", put("x.jsonl", data), *arguments), "x.jsonl: ", "it holds no messages")
    assert ok("run", "-", stdin=data).out == data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'\n{"messages":[' + b",".join(OPENAI.splitlines())[:-20], ["x.jsonl:2: ", "cut off", "write it out again"]),
        (json.dumps({"messages": openai(TURNS)}, indent=1).encode()[:-20], ["x.jsonl:1: ", "cut off"]),
        (b'{"role":"user","content":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n", ["x.jsonl:1: ", "nested", "take"]),
    ],
)
def test_one_broken_value_is_told_with_line_and_cure(data: bytes, words: list[str]) -> None:
    for arguments in ([], ["--format", "openai"]):
        done = compact("run", put("x.jsonl", data), *arguments)
        if done.code == 0:  # what can be read of it is read, when it's said what it is
            assert arguments
            continue
        assert done.code == 3
        one_line(done, *words)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("5", "it must be an object"),
        ("[]", "it must be an object"),
        ("{}", "it has no snapshot"),
        ("{", "no JSON"),
        ('{"conversations": {"a": 1}}', "conversations must be a list"),
        ('{"conversations": [5]}', "each conversation must be an object"),
        ('{"snapshot": {}, "provenance": {"sources": null}, "verdict": {}}', "provenance.sources must be a list"),
        ('{"snapshot": {}, "provenance": {"sources": [{}]}, "verdict": {}}', "each source must have a sha256"),
        ('{"snapshot": {}, "provenance": {}, "verdict": 5}', "verdict must be an object"),
        ('{"snapshot": 5, "provenance": {}, "verdict": {}}', "snapshot: "),
        ('{"snapshot": {}, "provenance": {}, "verdict": {}, "select": "a"}', "select must be a number"),
    ],
)
def test_what_is_wrong_with_a_summary_is_said_in_our_words(document: str, reason: str) -> None:
    for command in ("show", "verify"):
        done = compact(command, put("s.json", document.encode()))
        assert done.code == 3
        one_line(done, reason)
        assert not any(word in done.err for word in ("NoneType", "'int'", "subscriptable", "attribute", "iterable"))


# The summary behind a block


SHAPES: dict[str, Callable[[list[Any]], bytes]] = {
    "lines": jsonl,
    "array": lambda messages: json.dumps(messages).encode(),
    "row": lambda messages: json.dumps({"id": 1, "messages": messages}).encode() + b"\n",
    "rows": lambda messages: jsonl([{"id": n, "messages": messages} for n in range(2)]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_summary_is_found_in_any_shape_once_it_has_grown(shape: str) -> None:
    first = hiding(".json", SHAPES[shape])
    first = first.get("conversations", [first])[0]
    grown = [*messages_of(Path("x.compacted.json").read_bytes()), *openai(LATER, system="")]
    put("y.json", SHAPES[shape](grown))
    done = ok("run", "y.json", "--max-summary", "900")
    second = load("y.summary.json")
    second = second.get("conversations", [second])[0]
    assert ids(second) >= ids(first)
    assert second["provenance"]["task_id"] == "water-7"
    assert "earlier" not in done.err


def test_hidden_items_that_are_lost_are_told() -> None:
    count = hidden(hiding(".jsonl"))
    Path("x.summary.json").unlink()
    grown = Path("x.compacted.jsonl").read_bytes() + jsonl(openai(LATER, system=""))
    words = f"{count} items of the earlier block weren't found: no summary file of it beside the transcript"
    assert words in ok("run", put("y.jsonl", grown), "-n").err
    assert words in ok("run", "y.jsonl").err
    assert load("y.summary.json")["provenance"]["unnamed_sources"]
    ok("verify", "y.summary.json", "y.jsonl", "y.compacted.jsonl")
    edited = grown.replace(b"## Objective\\n", b"## Objective\\nand my own words\\n", 1)
    assert "the earlier block was edited: 1 lines not understood" in ok("run", put("z.jsonl", edited)).err


def test_conversations_left_alone_keep_their_summary() -> None:
    put("x.jsonl", jsonl([{"id": n, "messages": openai(MANY[n:])} for n in range(3)]))
    ok("run", "x.jsonl", "--max-summary", "600")
    first = {part["select"]: part for part in load("x.summary.json")["conversations"]}
    rows = [json.loads(line) for line in Path("x.compacted.jsonl").read_bytes().splitlines()]
    rows[1]["messages"] += openai(MORE, system="")
    put("x.jsonl", jsonl(rows))
    ok("run", "x.jsonl", "--in-place", "--max-summary", "900")
    second = {part["select"]: part for part in load("x.summary.json")["conversations"]}
    assert set(second) == {1, 2, 3}
    assert (second[1], second[3]) == (first[1], first[3])
    assert ids(second[2]) >= ids(first[2])
    assert ids(second[2]) != ids(first[2])
    rows = [json.loads(line) for line in Path("x.jsonl").read_bytes().splitlines()]
    rows[0]["messages"] += openai(MORE, system="")
    put("x.jsonl", jsonl(rows[::-1]))  # the order is nobody's promise
    done = ok("run", "x.jsonl", "--in-place", "--max-summary", "900")
    third = {part["select"]: part for part in load("x.summary.json")["conversations"]}
    assert "earlier" not in done.err
    assert ids(third[3]) >= ids(first[1])
    assert third[2]["snapshot"] == second[2]["snapshot"]


# Verify


def test_verify_wants_every_source_named() -> None:
    ok("run", put("x.jsonl"))
    document = load("x.summary.json")
    document["snapshot"]["objective"][0]["evidence"] = ["aaaaaaaa:1"]
    put("t.json", json.dumps(document).encode())
    done = compact("verify", "t.json", "x.jsonl")
    assert done.code == 1
    found = compact("verify", "t.json", "x.jsonl", "--json").json["verdicts"][0]["findings"]
    assert ("the source isn't among those that the summary names", ["aaaaaaaa:1"]) in [
        (finding["message"], finding["refs"]) for finding in found
    ]
    document["provenance"]["sources"] = []
    put("t.json", json.dumps(document).encode())
    assert compact("verify", "t.json").code == 1


RECORDS = {"openai": openai, "anthropic": anthropic, "claude-code": claude}


@pytest.mark.parametrize("format", RECORDS)
def test_verify_reads_the_output(format: str) -> None:
    ok("run", put("x.jsonl", stored(format, TURNS)))
    out = Path("x.compacted.jsonl").read_bytes()
    ok("verify", "x.summary.json", "x.jsonl", "x.compacted.jsonl")
    more = {"openai": lambda: openai(MORE, system=""), "anthropic": lambda: anthropic(MORE)}
    session = Session(last=json.loads(out.splitlines()[-1]).get("uuid"), start=1000).turns(MORE).records
    ok("verify", "x.summary.json", "x.jsonl", put("grown", out + jsonl(more.get(format, lambda: session)())))
    assert compact("verify", "x.summary.json", put("t", out.replace(b"## Files", b"## Flies"))).code == 1
    document = load("x.summary.json")
    document["snapshot"]["risks"] = []
    document["snapshot"]["objective"][0]["text"] += " Or not."
    put("t.json", json.dumps(document).encode())
    done = compact("verify", "t.json", "x.compacted.jsonl")
    assert done.code == 1
    assert "the output's block isn't the one that this summary renders" in " ".join(done.out.decode().split())


def test_verify_finds_a_pair_that_is_broken_in_the_output() -> None:
    ok("run", put("x.jsonl"))
    lines = Path("x.compacted.jsonl").read_bytes().splitlines(keepends=True)
    called = next(line for line in lines if b'"tool_calls"' in line)
    put("t", b"".join(line for line in lines if line != called))
    done = compact("verify", "x.summary.json", "x.jsonl", "t")
    assert done.code == 1
    assert "lost their calls in the output" in " ".join(done.out.decode().split())
