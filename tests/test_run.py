"""The command line: where results go, what is told, and how it ends."""

import hashlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema
import pytest
from command import Done, compact, environment, names, one_line, process
from talks import CWD, SESSION, Call, Round, Session, Turn, anthropic, garden, jsonl, openai, stored

from compactor import pipeline
from compactor.formats import FORMATS
from compactor.transcript import ACKNOWLEDGEMENT, BLOCK_START

TURNS = garden(8)
OPENAI, ANTHROPIC, CLAUDE = (stored(name, TURNS) for name in ("openai", "anthropic", "claude-code"))
SHORT = jsonl(openai(garden(1, lines=2)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test runs in a folder of its own."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def put(name: str, data: bytes = OPENAI) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def records(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def blocks(path: str | Path) -> list[str]:
    """The text of every message that holds a block."""
    found = (record.get("message", record) for record in records(path))
    texts = (message.get("content") for message in found if isinstance(message, dict))
    return [text for text in texts if isinstance(text, str) and BLOCK_START in text]


def snapshot(path: str | Path) -> dict[str, list[dict[str, Any]]]:
    return summary(path)["snapshot"]  # type: ignore[no-any-return]


def summary(path: str | Path) -> dict[str, Any]:
    return json.loads(Path(path).read_bytes())  # type: ignore[no-any-return]


def items(path: str | Path) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for found in snapshot(path).values() for item in found}


def ok(*arguments: object, stdin: bytes = b"") -> Done:
    done = compact(*arguments, stdin=stdin)
    assert done.code == 0, done.err
    return done


# Names and places


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ("run x.jsonl", "x.compacted.jsonl x.summary.json"),
        ("run sub/x.jsonl", "sub/x.compacted.jsonl sub/x.summary.json"),
        ("run x.jsonl -o a.out.jsonl", "a.out.jsonl a.out.summary.json"),
        ("run x.jsonl -o sub/y.compacted.jsonl", "sub/y.compacted.jsonl sub/y.summary.json"),
        ("run x.jsonl -o plain", "plain plain.summary.json"),
        ("run x.jsonl --summary s.json", "s.json x.compacted.jsonl"),
        ("run x.jsonl --summary s.md", "s.md x.compacted.jsonl"),
        ("run x.jsonl --summary-only", "x.summary.json"),
        ("run x.jsonl --summary-only -o a.jsonl", "a.summary.json"),
        ("run x.jsonl -o -", ""),
        ("run x.jsonl -o - --summary s.json", "s.json"),
        ("run x.jsonl --summary -", "x.compacted.jsonl"),
        ("run x.jsonl --in-place", "x.jsonl.{hash}.orig x.summary.json"),
        ("run x.jsonl --in-place --summary s.json", "s.json x.jsonl.{hash}.orig"),
        ("run x.jsonl --dry-run", ""),
        ("run x.jsonl -n -o a.jsonl --summary s.json", ""),
    ],
)
def test_outputs_have_these_names(here: Path, arguments: str, made: str) -> None:
    for name in ("x.jsonl", "sub/x.jsonl"):
        put(name)
    before = {*names(here)}
    ok(*arguments.split())
    new = made.format(hash=hashlib.sha256(OPENAI).hexdigest()[:8]).split()
    assert sorted({*names(here)} - before) == sorted(new)


@pytest.mark.parametrize("name", ["array.json", "object.json", "lines.jsonl"])
def test_the_inputs_extension_and_shape_are_kept(fixtures: Path, name: str) -> None:
    path = shutil.copy(fixtures / "openai" / name, name)
    ok("run", path)
    raw, out = Path(name).read_bytes(), Path(name).with_suffix(f".compacted{Path(name).suffix}").read_bytes()
    assert out[:20] == raw[:20]
    assert out[-20:] == raw[-20:]
    assert BLOCK_START.encode() in out


def test_an_agents_own_folder_gets_no_new_files(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    own = put(str(tmp_path / "claude/projects/-srv/x.jsonl"), CLAUDE)
    ok("run", own)
    assert names(here) == ["x.compacted.jsonl", "x.summary.json"]
    assert names(own.parent) == ["x.jsonl"]


def test_the_home_folders_sessions_are_an_agents_own(isolated: Path, here: Path) -> None:
    own = put(str(isolated / ".claude/projects/-srv/x.jsonl"), CLAUDE)
    ok("run", own)
    assert names(here) == ["x.compacted.jsonl", "x.summary.json"]
    assert names(own.parent) == ["x.jsonl"]


def test_standard_input_goes_to_standard_output(here: Path) -> None:
    put("x.jsonl")
    done = ok("run", "-", stdin=OPENAI)
    assert done.out.startswith(OPENAI.splitlines()[0])
    assert BLOCK_START.encode() in done.out
    assert done.out.endswith(b"\n".join(OPENAI.splitlines()[-8:]) + b"\n")
    assert "kept nowhere" in done.err
    assert names(here) == ["x.jsonl"]
    assert ok("run", "x.jsonl", "-o", "-").out.splitlines()[2:] == done.out.splitlines()[2:]


def test_standard_input_with_a_summary_file(here: Path) -> None:
    done = ok("run", "-", "--summary", "s.json", stdin=OPENAI)
    assert "kept nowhere" not in done.err
    assert summary("s.json")["provenance"]["output"]["sha256"] == hashlib.sha256(done.out).hexdigest()
    ok("run", "-", "-o", "y.jsonl", stdin=OPENAI)
    assert names(here) == ["s.json", "y.jsonl", "y.summary.json"]


def test_a_summary_alone_goes_to_standard_output_where_nothing_else_does(here: Path) -> None:
    for done in (
        ok("run", "-", "--summary-only", stdin=OPENAI),
        ok("run", put("x.jsonl"), "--summary-only", "-o", "-"),
    ):
        assert json.loads(done.out)["snapshot"]["objective"]
    assert names(here) == ["x.jsonl"]


def test_markdown_for_people() -> None:
    ok("run", put("x.jsonl"), "--summary", "s.md")
    assert Path("s.md").read_text().startswith("# x.jsonl\n\n**What are we trying to finish?** ")


def test_a_private_input_makes_private_outputs() -> None:
    put("x.jsonl").chmod(0o600)
    ok("run", "x.jsonl")
    for name in ("x.compacted.jsonl", "x.summary.json"):
        assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600


# What exists already


def test_a_compressed_file_is_unpacked_and_never_written_over() -> None:
    import zstandard

    raw = Path(put("x.jsonl")).read_bytes()
    Path("x.jsonl").unlink()
    Path("x.jsonl.zst").write_bytes(zstandard.compress(raw))
    ok("run", "x.jsonl.zst")
    assert sorted(p.name for p in Path().iterdir()) == ["x.compacted.jsonl", "x.jsonl.zst", "x.summary.json"]
    assert "zstdcat x.jsonl.zst | sed -n 41p" in blocks("x.compacted.jsonl")[0]
    refused = compact("run", "x.jsonl.zst", "--in-place", "-f")
    assert refused.code == 2
    assert "compressed" in refused.err
    ok("verify", "x.summary.json", "x.jsonl.zst")


def test_a_compressed_file_that_is_cut_off_is_bad_input() -> None:
    Path("x.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfdnothing")
    done = compact("run", "x.jsonl.zst")
    assert done.code == 3
    assert "can't be unpacked" in done.err


@pytest.mark.parametrize("name", ["x.compacted.jsonl", "x.summary.json"])
def test_existing_outputs_need_force(here: Path, name: str) -> None:
    put("x.jsonl")
    put(name, b"mine")
    done = compact("run", "x.jsonl")
    assert done.code == 5
    one_line(done, name, "exists", "-f")
    assert (names(here), Path(name).read_bytes()) == (sorted(["x.jsonl", name]), b"mine")
    ok("run", "x.jsonl", "-f")
    assert Path(name).read_bytes() != b"mine"


@pytest.mark.parametrize(
    "arguments",
    [
        "x.jsonl -o x.jsonl",
        "x.jsonl -o ./sub/../x.jsonl -f",
        "x.jsonl -o link -f",
        "link -o x.jsonl -f",
        "x.jsonl --summary x.jsonl -f",
        "x.jsonl --in-place --summary x.jsonl",
        "x.jsonl -o a --summary a -f",
        "x.jsonl --in-place -o a",
        "x.jsonl --in-place --resumable",
        "- --in-place",
    ],
)
def test_places_that_collide_are_wrong_usage(here: Path, arguments: str) -> None:
    put("x.jsonl")
    Path("sub").mkdir()
    Path("link").symlink_to("x.jsonl")
    done = compact("run", *arguments.split(), stdin=OPENAI)
    assert done.code == 2
    one_line(done)
    assert names(here) == ["link", "x.jsonl"]
    assert Path("x.jsonl").read_bytes() == OPENAI


@pytest.mark.parametrize("arguments", ["-o no/y.jsonl", "--summary no/s.json", "-o sub", "-o y.jsonl --summary sub"])
def test_what_cannot_be_written_leaves_nothing(here: Path, arguments: str) -> None:
    put("x.jsonl")
    Path("sub").mkdir()
    done = compact("run", "x.jsonl", "-f", *arguments.split())
    assert done.code == 5
    one_line(done)
    assert names(here) == ["x.jsonl"]
    assert Path("x.jsonl").read_bytes() == OPENAI


# In place


def test_in_place_keeps_the_original_the_mode_and_the_link(here: Path) -> None:
    put("real.jsonl").chmod(0o640)
    Path("link.jsonl").symlink_to("real.jsonl")
    ok("run", "link.jsonl", "--in-place")
    assert Path("link.jsonl").is_symlink()
    assert stat.S_IMODE(Path("real.jsonl").stat().st_mode) == 0o640
    assert len(blocks("real.jsonl")) == 1
    (backup,) = here.glob("*.orig")
    assert backup.read_bytes() == OPENAI
    assert backup.name == f"link.jsonl.{hashlib.sha256(OPENAI).hexdigest()[:8]}.orig"


def test_a_backup_is_never_overwritten(here: Path) -> None:
    name = f"x.jsonl.{hashlib.sha256(OPENAI).hexdigest()[:8]}.orig"
    put(name, b"somebody's")
    ok("run", put("x.jsonl"), "--in-place")
    assert Path(name).read_bytes() == b"somebody's"
    assert Path(name.replace(".orig", ".2.orig")).read_bytes() == OPENAI
    put("x.jsonl")
    ok("run", "x.jsonl", "--in-place", "-f")
    assert len(list(here.glob("*.orig"))) == 2


def test_in_place_again_after_a_turn(here: Path) -> None:
    path = put("x.jsonl")
    ok("run", path, "--in-place")
    once = path.read_bytes()
    path.write_bytes(once + jsonl(openai(garden(12)[8:], system="")))
    ok("run", path, "--in-place")
    assert len(blocks(path)) == 1
    assert sorted(backup.read_bytes()[:99] for backup in here.glob("*.orig")) == sorted([OPENAI[:99], once[:99]])


def changed_while(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let something happen to the files after they were read and before anything is written."""
    real = pipeline.compact

    def compact_and_change(*arguments: Any) -> Any:
        change()
        return real(*arguments)

    monkeypatch.setattr(pipeline, "compact", compact_and_change)


@pytest.mark.parametrize("arguments", ["", "--in-place", "-o -"])
def test_a_file_that_changed_meanwhile_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch, arguments: str) -> None:
    path = put("x.jsonl")
    changed_while(monkeypatch, lambda: path.write_bytes(OPENAI + b'{"role":"user","content":"more"}\n'))
    done = compact("run", "x.jsonl", *arguments.split())
    assert done.code == 5
    one_line(done, "x.jsonl", "changed", "again")
    assert done.out == b""
    assert names(here) == ["x.jsonl"]
    assert path.read_bytes().endswith(b'"more"}\n')


# What is told


FIELDS = {
    "status", "reason", "format", "tokens", "cut", "paths", "findings", "conversations", "model", "usage", "cost",
    "duration",
}  # fmt: skip


def test_one_line_of_success() -> None:
    done = ok("run", put("x.jsonl"))
    one_line(
        done, "x.compacted.jsonl: ", " -> ", "tokens", "8 messages (1 turns)", "no model", "compact show x.summary.json"
    )
    assert done.out == b""


def test_json_is_one_object_with_all_fields() -> None:
    done = ok("run", put("x.jsonl"), "--json")
    told = done.json
    assert done.err == ""
    assert set(told) >= FIELDS
    assert (told["status"], told["reason"], told["model"], told["cost"]) == ("compacted", "", None, 0)
    assert told["tokens"]["total"] > 2 * told["tokens"]["after"] > 0
    assert told["cut"]["tail"]["messages"] == 8
    assert told["cut"]["line"] == len(OPENAI.splitlines()) - 7
    assert told["paths"] == {
        "transcript": "x.compacted.jsonl", "summary": "x.summary.json", "backup": None, "resume": None,
    }  # fmt: skip
    assert told["findings"] == []


def test_json_gives_way_to_a_transcript_on_standard_output() -> None:
    for done in (ok("run", "-", "--json", stdin=OPENAI), ok("run", put("x.jsonl"), "-o", "-", "--json")):
        assert done.out.startswith(OPENAI.splitlines()[0])
        assert json.loads(done.err)["status"] == "compacted"
    done = ok("run", "-", "--json", "--budget", "1_000_000", stdin=OPENAI)
    assert done.out == OPENAI
    assert json.loads(done.err)["status"] == "unchanged"


def test_quiet_says_nothing_but_errors() -> None:
    done = ok("run", put("x.jsonl"), "-q")
    assert (done.out, done.err) == (b"", "")
    done = compact("run", "x.jsonl", "-q")
    assert done.code == 5
    one_line(done, "exists")


def test_verbose_says_every_note() -> None:
    bad = b"".join(b'{"role":"tool","tool_call_id":"gone%d","content":"x"}\n' % n for n in range(9))
    put("x.jsonl", bad + OPENAI)
    assert len([line for line in ok("run", "x.jsonl", "-n").lines if "answers no call" in line]) == 3
    assert "6 more notes; -v shows them" in ok("run", "x.jsonl", "-n").err
    assert len([line for line in ok("run", "x.jsonl", "-n", "-v").lines if "answers no call" in line]) == 9


def test_a_dry_run_says_the_plan_and_writes_nothing(here: Path) -> None:
    put("x.jsonl", CLAUDE)
    done = ok("run", "x.jsonl", "-n")
    for word in (
        "claude-code",
        "tokens",
        "kept verbatim",
        "8 messages, 1 turns",
        "summarised",
        "provider last counted 3,212",
    ):
        assert word in done.err
    told = ok("run", "x.jsonl", "-n", "--json").json
    assert told["status"] == "planned"
    assert names(here) == ["x.jsonl"]
    done = ok("run", "x.jsonl", "--json")
    assert told["conversations"][0]["cut"] == done.json["conversations"][0]["cut"]


def test_the_client_resumes_what_stands_under_its_own_name() -> None:
    put("x.jsonl", CLAUDE)
    assert ok("run", "x.jsonl").err.splitlines()[0].endswith("resume it: compact run x.jsonl --resumable")
    assert ok("run", "x.jsonl", "--in-place", "-f").err.splitlines()[0].endswith(f"claude --resume {SESSION}")


# How it ends


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run x.jsonl --at 0", "--at"),
        ("run x.jsonl --at 1.5", "--at"),
        ("run x.jsonl --at half", "65%"),
        ("run x.jsonl --budget 0", "--budget"),
        ("run x.jsonl --budget much", "window"),
        ("run x.jsonl --select 0", "--select"),
        ("run x.jsonl --select 1,", "--select"),
        ("run x.jsonl --select 2", "no conversation 2; it holds 1"),
        ("run x.jsonl -n --select 2", "no conversation 2; it holds 1"),
        ("run x.jsonl --pin (", "--pin"),
        ("run x.jsonl --block-role assistant", "system, developer, user"),
        ("run a.jsonl --block-role system", "it takes user"),
        ("run x.jsonl --budget window", "--budget TOKENS"),
        ("run x.jsonl --at 65%", "--budget TOKENS"),
        ("run x.jsonl --resumable", "Claude Code"),
        ("schema nothing", "summary or update"),
    ],
)
def test_wrong_usage_is_2_with_the_cure(here: Path, arguments: str, words: str) -> None:
    put("x.jsonl")
    put("a.jsonl", ANTHROPIC)
    done = compact(*arguments.split())
    assert done.code == 2
    one_line(done, words)
    assert names(here) == ["a.jsonl", "x.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run x.jsonl --kep 3", "--keep"),
        ("run x.jsonl --max-sumary 3", "--max-summary"),
        ("rum x.jsonl", "run"),
        ("shema", "schema"),
        ("run", "TRANSCRIPT"),
        ("run x.jsonl --keep -1", "--keep"),
        ("run x.jsonl --keep some", "--keep"),
        ("run x.jsonl y.jsonl", "y.jsonl"),
    ],
)
def test_a_wrong_word_is_2_and_names_the_right_one(here: Path, arguments: str, words: str) -> None:
    done = compact(*arguments.split())
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert names(here) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("run missing.jsonl", "no such file"),
        ("run .", "folder"),
        ("run prose.txt", "--format"),
        ("show missing.json", "no such file"),
        ("show x.jsonl", "compact run"),
        ("show empty", "compact run"),
        ("verify x.jsonl", "compact run"),
        ("verify s.json missing.jsonl", "no such file"),
    ],
)
def test_an_input_that_cannot_be_read_is_3(arguments: str, words: str) -> None:
    put("x.jsonl")
    put("prose.txt", b"Just some words.\n")
    put("empty", b"")
    ok("run", "x.jsonl", "--summary", "s.json")
    done = compact(*arguments.split())
    assert done.code == 3
    one_line(done, arguments.split()[-1], words)


@pytest.mark.parametrize(
    "document",
    [
        "[]", "5", "null", "{}", '{"conversations": 5}', '{"conversations": [5]}', "[" * 5000, '{"snapshot": {}}',
        '{"snapshot": {}, "provenance": [], "verdict": {}}', '{"snapshot": {}, "provenance": 5, "verdict": 5}',
        '{"snapshot": {}, "provenance": {"sources": 5}, "verdict": {}}',
        '{"snapshot": {}, "provenance": {"sources": [5]}, "verdict": {}}',
        '{"snapshot": {"facts": [{"text": "x", "evidence": ["nothing"]}]}, "provenance": {}, "verdict": {}}',
        '{"snapshot": {"facts": [{"text": "x", "evidence": ["3f2a9c1d:1/9999999"]}]}, "provenance": {}, "verdict": {}}',
        '{"snapshot": {"facts": [{"text": "x", "evidence": ["3f2a9c1d:１"]}]}, "provenance": {}, "verdict": {}}',
        '{"snapshot": {"completed": [{"text": "x", "proof": "yes"}]}, "provenance": {}, "verdict": {}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["show", "verify"])
def test_a_summary_that_is_none_is_3(command: str, document: str) -> None:
    done = compact(command, put("s.json", document.encode()))
    assert done.code == 3
    one_line(done, "s.json", "compact run")


def test_an_empty_file_and_a_short_one_are_nothing_to_do(here: Path) -> None:
    for name, data in (("empty.jsonl", b""), ("short.jsonl", SHORT)):
        one_line(ok("run", put(name, data)), name, "nothing to do: ")
        told = ok("run", name, "--json").json
        assert (told["status"], told["paths"]["transcript"]) == ("unchanged", None)
        assert told["reason"]
    assert names(here) == ["empty.jsonl", "short.jsonl"]


@pytest.mark.parametrize("data", [b"", b"\n \n", SHORT, SHORT[:-1], SHORT.replace(b"\n", b"\r\n")])
def test_nothing_to_do_gives_the_input_byte_for_byte(data: bytes) -> None:
    assert ok("run", "-", stdin=data).out == data
    put("x.jsonl", data)
    assert ok("run", "x.jsonl", "-o", "-").out == data
    ok("run", "x.jsonl", "-o", "y.jsonl")
    assert Path("y.jsonl").read_bytes() == data
    assert not Path("y.summary.json").exists()
    ok("run", "x.jsonl", "--in-place")
    assert Path("x.jsonl").read_bytes() == data


def test_refused_by_the_checks_is_1_and_writes_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compactor.verify import Finding

    finding = Finding("output", "error", "its tail isn't the one it had", "report this as a bug")
    monkeypatch.setattr(pipeline, "output_stands", lambda *_: iter([finding]))
    done = compact("run", put("x.jsonl"))
    assert done.code == 1
    one_line(done, "x.jsonl: refused: output: its tail isn't the one it had; report this as a bug")
    done = compact("run", "x.jsonl", "--json", "-o", "y.jsonl")
    assert (done.code, done.json["status"]) == (1, "refused")
    assert done.json["findings"][0]["check"] == "output"
    assert compact("run", "-", stdin=OPENAI).out == b""
    assert names(here) == ["x.jsonl"]


def test_what_the_checks_find_wrong_is_written_only_where_that_is_allowed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compactor import verify

    found = verify.Finding("agree", "error", "says two things", "close one")
    monkeypatch.setattr(verify, "CHECKS", (*verify.CHECKS, lambda _: iter([found])))
    done = compact("run", put("x.jsonl"))
    assert done.code == 1
    one_line(done, "x.jsonl: refused: agree: says two things; close one (--allow-findings writes it all the same)")
    assert names(here) == ["x.jsonl"]
    done = compact("run", "x.jsonl", "--allow-findings")
    assert done.code == 0
    assert "written in spite of 1 finding that would refuse it" in done.err
    assert "agree: says two things; close one" in done.err
    written = json.loads(Path("x.summary.json").read_bytes())
    assert (written["verdict"]["ok"], written["provenance"]["settings"]["allow_findings"]) == (False, True)
    broken = verify.Finding("block", "error", "it doesn't read back as the snapshot", "report this as a bug")
    monkeypatch.setattr(verify, "block_stands", lambda *_: iter([broken]))
    done = compact("run", "x.jsonl", "--allow-findings", "-o", "z.jsonl")
    assert done.code == 1
    assert "--allow-findings" not in done.err
    assert not Path("z.jsonl").exists()


def test_interrupted_is_130(here: Path) -> None:
    command = [sys.executable, "-m", "compactor", "run", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as running:
        assert running.stdin
        running.stdin.write(OPENAI)
        running.stdin.flush()
        reading = Path(f"/proc/{running.pid}/wchan")
        deadline = time.monotonic() + 20
        while reading.exists() and "pipe" not in reading.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
        assert running.stderr
        assert b"Traceback" not in running.stderr.read()
    assert names(here) == []


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    ok("run", put("x.jsonl", stored("openai", garden(40))), "--max-summary", "8000", "--keep", "200")
    for arguments in (["show", "x.summary.json"], ["run", "x.jsonl", "-o", "-", "--keep", "200"]):
        command = [sys.executable, "-m", "compactor", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as running:
            assert running.stdout
            running.stdout.close()
            assert running.stderr
            told = running.stderr.read().decode()
            running.wait(20)
        assert "Traceback" not in told
        assert "Exception ignored" not in told


# When


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("", "compacted"),
        ("--budget 8000", "compacted"),
        ("--budget 8,000 --at 65%", "compacted"),
        ("--budget 8_000 --at 0.65", "compacted"),
        ("--budget 9000", "unchanged"),
        ("--budget 9000 --at .59", "compacted"),
        ("--budget 9000 --at 59%", "compacted"),
        ("--budget 9000 --at 60%", "unchanged"),
        ("--budget 5300 --at 1", "compacted"),
    ],
)
def test_the_budget_decides_when(arguments: str, status: str) -> None:
    told = ok("run", put("x.jsonl"), "--json", *arguments.split()).json
    assert 5_350 < told["tokens"]["total"] < 5_400
    assert told["status"] == status


def test_below_the_threshold_one_line_says_why() -> None:
    one_line(ok("run", put("x.jsonl"), "--budget", "1000000"), "x.jsonl", "nothing to do", "650,000", "65%")


def test_the_window_is_that_of_the_recorded_model() -> None:
    put("x.jsonl", CLAUDE)
    reason = ok("run", "x.jsonl", "--at", "50%", "--json").json["reason"]
    assert reason == ok("run", "x.jsonl", "--budget", "window", "--at", "0.5", "--json").json["reason"]
    assert "50%" in reason
    big = CLAUDE.replace(b'"cache_read_input_tokens": 3000', b'"cache_read_input_tokens": 150000')
    assert ok("run", put("y.jsonl", big), "--budget", "window", "--json").json["status"] == "compacted"


def test_an_unknown_model_has_no_window() -> None:
    put("x.jsonl", CLAUDE.replace(b"claude-sonnet-4-5", b"nobodys-model"))
    done = compact("run", "x.jsonl", "--budget", "window")
    assert done.code == 2
    one_line(done, "nobodys-model", "--budget TOKENS")


# How much


def tail(*arguments: str) -> dict[str, int]:
    return ok("run", "x.jsonl", "-n", "--json", *arguments).json["conversations"][0]["cut"]["tail"]  # type: ignore[no-any-return]


def test_keep_is_the_largest_of_its_three_measures() -> None:
    put("x.jsonl")
    assert tail()["messages"] == 8
    assert tail("--keep", "0") == {"messages": 0, "turns": 0, "tokens": 0}
    assert tail("--keep", "10")["messages"] >= 10
    assert tail("--keep-turns", "3")["turns"] == 3
    assert tail("--keep-tokens", "1500")["tokens"] >= 1500
    assert tail("--keep", "2", "--keep-turns", "3")["turns"] == 3
    assert tail("--keep", "20", "--keep-turns", "1", "--keep-tokens", "9")["messages"] >= 20


def test_keep_0_keeps_only_what_is_open() -> None:
    open_call = openai([*TURNS, Turn("Water it.", (Round("I do.", (Call("last", "Bash", {"command": "water"}),)),))])[
        :-2
    ]
    ok("run", put("x.jsonl", jsonl(open_call)), "--keep", "0")
    assert [r.get("tool_calls", [{}])[0].get("id") for r in records("x.compacted.jsonl")[2:]] == ["last"]


def test_max_summary_bounds_the_block() -> None:
    put("x.jsonl", stored("openai", garden(40)))
    for limit in (600, 1500):
        told = ok("run", "x.jsonl", "-f", "--json", "--max-summary", str(limit)).json
        assert told["conversations"][0]["block_limit"] == limit
        tokens = summary("x.summary.json")["provenance"]["tokens"]["block"]
        over = [finding for finding in told["findings"] if finding["check"] == "budget"]
        assert tokens <= limit or over
        assert all(finding["severity"] == "warning" for finding in over)


# What


def test_select_compacts_those_and_leaves_the_others(fixtures: Path) -> None:
    one = jsonl(openai(TURNS))
    rows = jsonl([{"id": n, "messages": openai(TURNS)} for n in range(3)])
    put("rows.jsonl", rows)
    told = ok("run", "rows.jsonl", "--select", "3,1,3", "--json").json
    assert [c["select"] for c in told["conversations"]] == [3, 1]
    out = Path("rows.compacted.jsonl").read_bytes().splitlines(keepends=True)
    assert out[1] == rows.splitlines(keepends=True)[1]
    assert [len(json.loads(line)["messages"]) for line in out] == [10, len(one.splitlines()), 10]
    document = summary("rows.summary.json")
    assert [c["select"] for c in document["conversations"]] == [3, 1]
    assert ok("show", "rows.summary.json").out.decode().count("\n# rows.jsonl #") == 1


def test_pins_keep_words_whole() -> None:
    put("x.jsonl")
    source = hashlib.sha256(OPENAI).hexdigest()[:8]
    ok("run", "x.jsonl", "--pin", f"{source}:4", "--pin", "check-plan --bed 2")
    texts = [item["text"] for item in snapshot("x.summary.json")["open_loops"]]
    pinned = [text for text in texts if text.startswith("pinned: ")]
    assert f"pinned: {TURNS[0].rounds[0].calls[0].result}" in pinned
    assert any("check-plan --bed 2" in text for text in pinned)
    assert all(row in blocks("x.compacted.jsonl")[0] for row in TURNS[0].rounds[0].calls[0].result.split("\n"))


def test_focus_decides_what_is_shown() -> None:
    put("x.jsonl", stored("openai", garden(12)))
    ok("run", "x.jsonl", "--max-summary", "700")
    left_out = [name for n in range(1, 11) if (name := f"bed_{n:03}.csv") not in blocks("x.compacted.jsonl")[0]]
    ok("run", "x.jsonl", "-f", "--max-summary", "700", "--focus", f"the table {left_out[0].upper()}")
    assert left_out[0] in blocks("x.compacted.jsonl")[0]


@pytest.mark.parametrize(("role", "roles"), [("user", ["user", "assistant"]), ("developer", ["developer"])])
def test_the_blocks_role(role: str, roles: list[str]) -> None:
    ok("run", put("x.jsonl"), "--block-role", role, "--keep-turns", "2", "--keep", "1")
    out = records("x.compacted.jsonl")
    assert [record["role"] for record in out[1 : 1 + len(roles)]] == roles
    assert out[1 + len(roles)]["role"] == "user"
    assert (ACKNOWLEDGEMENT in out[2]["content"]) == (role == "user")
    one_line(ok("run", "x.compacted.jsonl", "--keep-turns", "2", "--keep", "1"), "nothing to do")


def test_the_format_can_be_said(fixtures: Path) -> None:
    put(
        "x.jsonl",
        jsonl(
            [
                {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: {TURNS[0].rounds[0].calls[0].result}"}
                for n in range(20)
            ]
        ),
    )
    assert "--format anthropic otherwise" in ok("run", "x.jsonl").err
    done = ok("run", "x.jsonl", "--format", "anthropic", "-f")
    assert "otherwise" not in done.err
    assert records("x.compacted.jsonl")[0]["role"] == "user"


def test_the_task_is_said_inherited_or_found() -> None:
    put("x.jsonl")
    ok("run", "x.jsonl", "--task", "water-7")
    assert summary("x.summary.json")["provenance"]["task_id"] == "water-7"
    put("y.jsonl", Path("x.compacted.jsonl").read_bytes() + jsonl(openai(garden(12)[8:], system="")))
    ok("run", "y.jsonl")
    assert summary("y.summary.json")["provenance"]["task_id"] == "water-7"
    ok("run", put("z.jsonl", CLAUDE))
    assert summary("z.summary.json")["provenance"]["task_id"] == SESSION
    ok("run", put("w.jsonl", ANTHROPIC))
    assert summary("w.summary.json")["provenance"]["task_id"] == hashlib.sha256(ANTHROPIC).hexdigest()


# A new session of the client


def test_resumable_is_a_new_session_where_the_client_looks(
    here: Path, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(isolated / "config"))
    done = ok("run", put("x.jsonl", CLAUDE), "--resumable")
    (made,) = (isolated / "config").rglob("*.jsonl")
    assert made.parent.name == "-srv-green-house"
    assert UUID(made.stem).version == 5
    assert made.stem != SESSION
    written = records(made)
    assert {record["sessionId"] for record in written} == {made.stem}
    assert written[0]["subtype"] == "compact_boundary"
    assert written[1]["isCompactSummary"] is True
    assert f"resume it: cd '{CWD}' && claude --resume {made.stem}" in done.err
    assert (names(here), Path("x.jsonl").read_bytes()) == (["x.jsonl", "x.summary.json"], CLAUDE)
    assert [record.get("parentUuid") for record in written[1:]] == [record["uuid"] for record in written[:-1]]


def test_a_resumable_session_isnt_overwritten(here: Path, isolated: Path) -> None:
    ok("run", put("x.jsonl", CLAUDE), "--resumable")
    done = compact("run", "x.jsonl", "--resumable")
    assert done.code == 5
    one_line(done, "exists")
    told = ok("run", "x.jsonl", "--resumable", "-f", "--json").json
    assert told["paths"]["resume"].startswith(f"cd '{CWD}' && claude --resume ")
    assert Path(told["paths"]["transcript"]).is_relative_to(isolated / ".claude/projects")


def test_a_session_that_names_no_folder_cannot_be_resumed() -> None:
    put("x.jsonl", CLAUDE.replace(json.dumps(CWD).encode(), b'""'))
    done = compact("run", "x.jsonl", "--resumable")
    assert done.code == 2
    one_line(done, "-o")


# Again, after it has grown


def grown(format: str, compacted: bytes) -> bytes:
    more = garden(12)[8:]
    if format == "claude-code":
        last = json.loads(compacted.splitlines()[-1])["uuid"]
        return compacted + jsonl(Session(last=last, start=1000).turns(more).records)
    return compacted + jsonl(openai(more, system="") if format == "openai" else anthropic(more))


@pytest.mark.parametrize("format", ["openai", "anthropic", "claude-code"])
@pytest.mark.parametrize("known", ["beside", "named", "here", "gone"])
def test_a_second_compaction_carries_the_first(format: str, known: str) -> None:
    put("x.jsonl", stored(format, TURNS))
    ok("run", "x.jsonl", "--task", "water-7")
    first = items("x.summary.json")
    shown = {id for id, item in first.items() if item["shown"]}
    put("sub/y.jsonl", grown(format, Path("x.compacted.jsonl").read_bytes()))
    place = {"beside": "sub/any.summary.json", "named": "elsewhere.json", "here": "x.summary.json", "gone": "gone"}[
        known
    ]
    shutil.move("x.summary.json", place)
    ok("run", "sub/y.jsonl", "-f", *(["--summary", place] if known == "named" else []))
    made = place if known == "named" else "sub/y.summary.json"
    second = items(made)
    assert len(blocks("sub/y.compacted.jsonl")) == 1
    assert set(second) >= (shown if known == "gone" else set(first))
    for id in set(first) & set(second):
        assert second[id]["status"] == "active" or second[id]["change"], id
    provenance = summary(made)["provenance"]
    assert (provenance["task_id"] == "water-7") == (known != "gone")
    assert bool(provenance["previous"]) == (known != "gone")
    assert len(provenance["sources"]) == (1 if known == "gone" else 2)
    assert summary(made)["verdict"]["ok"]


def test_a_summary_of_another_transcript_isnt_taken() -> None:
    put("x.jsonl")
    ok("run", "x.jsonl", "--keep", "4")
    ok(
        "run",
        "x.jsonl",
        "-f",
        "--summary",
        "other.summary.json",
        "-o",
        "other.jsonl",
        "--keep",
        "20",
        "--task",
        "other",
    )
    tampered = summary("x.summary.json")
    tampered["provenance"]["output"] |= {"lines": 2, "block_sha256": "0" * 64}
    Path("x.summary.json").write_text(json.dumps(tampered))
    put("y.jsonl", grown("openai", Path("x.compacted.jsonl").read_bytes()))
    ok("run", "y.jsonl")
    provenance = summary("y.summary.json")["provenance"]
    assert provenance["previous"] == ""
    assert len(provenance["sources"]) == 1


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b"\xff", b'{"conversations": [], "schema_version": 1}'])
def test_other_files_named_like_summaries_are_passed_over(junk: bytes) -> None:
    put("a.summary.json", junk)
    Path("folder.summary.json").mkdir()
    put("y.jsonl", grown("openai", ok("run", "-", "--summary", "z.summary.json", stdin=OPENAI).out))
    ok("run", "y.jsonl")
    assert summary("y.summary.json")["provenance"]["previous"]


# The other commands


@pytest.mark.parametrize("data", [OPENAI, ANTHROPIC, CLAUDE])
def test_show_opens_with_the_three_questions(data: bytes) -> None:
    ok("run", put("x.jsonl", data))
    shown = ok("show", "x.summary.json").out.decode().splitlines()
    assert shown[0] == "# x.jsonl"
    for line, question in zip(shown[2:5], ("trying to finish", "been proven", "safe next"), strict=True):
        assert question in line.split("** ")[0]
        assert line.split("** ")[1].strip()
    assert json.loads(ok("show", "x.summary.json", "--json").out) == summary("x.summary.json")
    assert ok("show", "-", stdin=Path("x.summary.json").read_bytes()).out.decode().splitlines()[2:] == shown[2:]


def test_the_schemas_are_valid_and_hold() -> None:
    published = json.loads(ok("schema").out)
    assert json.loads(ok("schema", "summary").out) == published
    update = json.loads(ok("schema", "update").out)
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.Draft202012Validator.check_schema(update)
    for name, data in {"o": OPENAI, "a": ANTHROPIC, "c": CLAUDE, "r": jsonl([{"messages": openai(TURNS)}] * 2)}.items():
        ok("run", put(f"{name}.jsonl", data))
        jsonschema.validate(summary(f"{name}.summary.json"), published)
    document = summary("o.summary.json")
    document["snapshot"]["objective"][0]["invented"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, published)
    written = {
        "add": {"facts": [{"text": "x", "evidence": ["3f2a9c1d:41"], "value": "x", "basis": "observed"}]},
        "close": [{"id": "L1", "evidence": ["3f2a9c1d:42.2/1"]}],
        "supersede": [{"id": "O1", "by": "objective[0]", "evidence": ["3f2a9c1d:43"]}],
    }
    jsonschema.validate(written, update)
    wrong: dict[str, Any]
    for wrong in (
        {"add": {"notes": []}},
        {"close": [{"id": "L1", "evidence": ["line 4"]}]},
        {"supersede": [{"id": "O1"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, update)


def test_an_update_of_our_own_is_one_by_the_schema() -> None:
    from compactor import formats
    from compactor.ledger import extract

    update = json.loads(ok("schema", "update").out)
    source = formats.read(CLAUDE, "x.jsonl")
    planned = pipeline.plan(source, 0, pipeline.Options())
    made = pipeline.offline_update(planned, extract(source.short, planned.head), pipeline.Options())
    jsonschema.validate(made.model_dump(mode="json"), update)


def test_verify_passes_what_run_wrote() -> None:
    for name, data in {"o": OPENAI, "a": ANTHROPIC, "c": CLAUDE}.items():
        ok("run", put(f"{name}.jsonl", data))
        done = ok("verify", f"{name}.summary.json", f"{name}.jsonl", f"{name}.compacted.jsonl")
        (line,) = done.lines
        assert line.startswith(f"{name}.summary.json: stands; ")
        assert line.endswith("against 1 of 1 sources")
        assert not re.search("^ ?(?:error|warning)", done.out.decode(), re.MULTILINE)
        assert ok("verify", f"{name}.summary.json", f"{name}.jsonl", "--json").json["ok"] is True


def test_verify_reads_a_source_as_it_was_read() -> None:
    put("x.jsonl", jsonl([m for m in anthropic(TURNS) if isinstance(m["content"], str)] * 4))
    ok("run", "x.jsonl", "--format", "anthropic", "--keep", "2")
    assert "against 1 of 1 sources" in ok("verify", "x.summary.json", "x.jsonl").err
    put("y.jsonl", jsonl([*anthropic(garden(2)), *openai(TURNS)]))
    assert compact("run", "y.jsonl").code == 3
    ok("run", "y.jsonl", "--format", "openai")
    assert "against 1 of 1 sources" in ok("verify", "y.summary.json", "y.jsonl").err


def test_verify_matches_by_hash_and_not_by_name() -> None:
    ok("run", put("x.jsonl"))
    shutil.move("x.jsonl", "moved.txt")
    put("x.jsonl", ANTHROPIC)
    assert "against 1 of 1 sources" in ok("verify", "x.summary.json", "moved.txt").err
    done = compact("verify", "x.summary.json", "x.jsonl", "moved.txt")
    assert done.code == 1
    assert "against 1 of 1 sources" in done.err
    assert "x.jsonl: neither a source nor the output of this summary" in done.err
    told = compact("verify", "x.summary.json", "x.jsonl", "--json").json
    assert (told["ok"], told["strangers"]) == (False, ["x.jsonl"])


def test_verify_counts_what_it_cannot_look_at_as_carried() -> None:
    ok("run", put("x.jsonl"))
    done = ok("verify", "x.summary.json")
    count = len(items("x.summary.json"))
    assert f"{count} items against 0 of 1 sources, {count} not checked: their sources weren't given" in done.err


@pytest.mark.parametrize(
    ("field", "change", "check"),
    [
        (
            "constraints",
            {"quote": "Never give bed 1 more than 14 ml.", "text": "Never give bed 1 more than 14 ml."},
            "quotes",
        ),
        ("constraints", {"said_by": "assistant"}, "quotes"),
        ("facts", {"value": "99999 ml", "text": "99999 ml"}, "identifiers"),
        ("facts", {"basis": "inferred"}, "basis"),
        ("artifacts", {"path": "/srv/green/plans/plan_999.md"}, "artifacts"),
        ("objective", {"evidence": ["{source}:999"]}, "refs"),
    ],
)
def test_verify_is_1_on_a_tampered_summary(field: str, change: dict[str, Any], check: str) -> None:
    ok("run", put("x.jsonl"), "--max-summary", "3000")
    document = summary("x.summary.json")
    source = document["provenance"]["sources"][0]["short"]
    item = document["snapshot"][field][0]
    item.update({k: [e.format(source=source) for e in v] if k == "evidence" else v for k, v in change.items()})
    put("t.summary.json", json.dumps(document).encode())
    done = compact("verify", "t.summary.json", "x.jsonl")
    assert done.code == 1
    assert re.search(rf"^ ?error +{check} +{field} {item['id']} ", done.out.decode(), re.MULTILINE), done.out
    assert "t.summary.json: " in done.lines[-1]
    told = compact("verify", "t.summary.json", "x.jsonl", "--json")
    assert (told.code, told.json["ok"]) == (1, False)
    found = [(finding["check"], finding["field"], finding["item"]) for finding in told.json["verdicts"][0]["findings"]]
    assert (check, field, item["id"]) in found


def test_formats_are_listed() -> None:
    assert [line.split()[0] for line in ok("formats").out.decode().splitlines()] == list(FORMATS)


@pytest.mark.parametrize("command", [[], ["run"], ["show"], ["schema"], ["verify"], ["formats"]])
def test_help_has_an_example(command: list[str]) -> None:
    done = ok(*command, "--help")
    assert b"compact run session.jsonl" in done.out or b"Example" in done.out


def test_every_file_of_a_run_in_a_process_of_its_own(here: Path) -> None:
    put("x.jsonl")
    done = process("run", "x.jsonl", cwd=here)
    assert (done.code, done.out) == (0, b"")
    ran = Path("x.compacted.jsonl").read_bytes()
    ok("run", "x.jsonl", "-f")
    assert Path("x.compacted.jsonl").read_bytes() == ran
    piped = process("run", "-", stdin=OPENAI, cwd=here)
    assert piped.out.splitlines()[2:] == ran.splitlines()[2:]
    assert os.listdir(here)  # noqa: PTH208
