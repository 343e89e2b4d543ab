"""`compact run -m`, `compact prompt`: a model asked from the command line, over a real connection."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from answers import asked, honest, update
from command import compact, environment, names, one_line, process
from servers import AnthropicServer, Cut, Failure, Hang, OpenAIServer, Raw
from talks import anthropic, garden, jsonl, openai

from compactor.cli import ASKING

SESSION = jsonl(openai(garden(8)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_bytes(SESSION)
    return tmp_path


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer([honest]) as found:
        monkeypatch.setenv("OPENAI_API_BASE", found.base)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing-to-see")
        yield found


def untouched(here: Path) -> None:
    """Nothing but the input is there, and it is what it was."""
    assert names(here) == ["x.jsonl"]
    assert (here / "x.jsonl").read_bytes() == SESSION


def test_a_model_writes_the_summary(here: Path, server: OpenAIServer) -> None:
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    assert done.code == 0, done.err
    assert len(server.requests) == 1
    assert done.json["model"] == "openai/gpt-4o"
    assert done.json["usage"]["calls"] == 1
    assert done.json["usage"]["tokens_in"] == 100
    assert done.json["usage"]["added_by_code"] > 0
    assert done.json["cost"] > 0
    summary = json.loads((here / "x.summary.json").read_bytes())
    provenance = summary["provenance"]
    assert provenance["model"] == "openai/gpt-4o"
    assert len(provenance["prompt"]) == 64
    assert provenance["usage"]["tokens_out"] == 20
    assert provenance["cost"] == done.json["cost"]
    assert any("Never give bed" in rule["quote"] for rule in summary["snapshot"]["constraints"])


def test_the_line_tells_tokens_price_time_and_what_code_did(server: OpenAIServer) -> None:
    said = {"content": "", "usage": {"prompt_tokens": 9_000, "completion_tokens": 700, "total_tokens": 9_700,
                                     "prompt_tokens_details": {"cached_tokens": 4_000}}}  # fmt: skip
    server.script = [lambda body: {**said, "content": honest(body)}]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert "summary by openai/gpt-4o: 1 call, 9,000 tokens in (4,000 cached), 700 out, $0.0" in done.err
    assert "code added " in done.err


def test_the_environment_names_the_model(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACT_MODEL", "openai/gpt-4o")
    assert compact("run", "x.jsonl", "--json").json["model"] == "openai/gpt-4o"
    assert len(server.requests) == 1


def test_the_report_says_so_when_no_model_was_asked() -> None:
    assert "offline summary, no model" in compact("run", "x.jsonl").err


# -- before anything is spent


def test_a_dry_run_shows_calls_tokens_and_cost_and_asks_nothing(here: Path, server: OpenAIServer) -> None:
    done = compact("run", "x.jsonl", "-n", "-m", "openai/gpt-4o", "--json")
    assert done.json["calls"] == 1
    assert done.json["tokens_in"] > 1_000
    assert done.json["cost"] > 0
    told = compact("run", "x.jsonl", "-n", "-m", "openai/gpt-4o").err
    assert "asks openai/gpt-4o (window 128,000 tokens): 1 call, about " in told
    assert ", about $0.0" in told
    unknown = compact("run", "x.jsonl", "-n", "-m", "openai/unheard-of")
    assert "window 128,000 tokens, assumed: --window" in unknown.err
    assert "price unknown" in unknown.err
    assert compact("run", "x.jsonl", "-n", "-m", "openai/unheard-of", "--json").json["cost"] is None
    assert not server.requests
    untouched(here)


def test_the_prompt_printed_is_the_prompt_sent(here: Path, server: OpenAIServer) -> None:
    done = compact("prompt", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    (body,) = server.requests
    assert done.json["messages"] == body["messages"]
    assert done.json["max_tokens"] == body["max_tokens"]
    assert done.json["schema"] == body["response_format"]["json_schema"]["schema"]
    plain = compact("prompt", "x.jsonl", "-m", "openai/gpt-4o")
    assert asked(body) in plain.out.decode()
    assert "request 1 of 1:" in plain.err


def test_a_prompt_can_be_printed_with_no_model_named(here: Path) -> None:
    assert b"# Instruction" in compact("prompt", "x.jsonl").out
    assert compact("prompt", "-", "--focus", "bed 7").code == 0
    assert len(compact("prompt", "x.jsonl", "--window", "8000", "--json").out.splitlines()) > 1
    untouched(here)


def test_where_nothing_is_to_be_done_no_prompt_is_printed(here: Path) -> None:
    (here / "x.jsonl").write_bytes(b"")
    done = compact("prompt", "x.jsonl")
    assert done.out == b""
    one_line(done, "nothing to do")


def test_an_instruction_from_a_file_replaces_our_own(here: Path, server: OpenAIServer) -> None:
    (here / "mine.md").write_text("Only water counts: $size")
    first = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--prompt", "mine.md", "--focus", "bed 7")
    assert first.code == 0, first.err
    (body,) = server.requests
    assert "Only water counts: What you write" in asked(body)
    assert "bed 7" in asked(body)
    (here / "mine.md").write_bytes(b"\xff\xfe")
    one_line(compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4o", "--prompt", "mine.md"), "mine.md", "UTF-8")
    assert compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4o", "--prompt", "gone.md").code == 3


# -- the log


def test_a_reply_is_kept_and_used_again_unless_told_otherwise(here: Path, server: OpenAIServer, isolated: Path) -> None:
    for arguments in ((), ("-f",)):
        assert compact("run", "x.jsonl", "-m", "openai/gpt-4o", *arguments).code == 0
    assert len(server.requests) == 1
    kept = [path for path in isolated.rglob("*") if path.is_file() and "replies" in str(path)]
    assert kept
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept)
    again = compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4o", "--json")
    assert (again.json["usage"]["calls"], again.json["usage"]["reused"], again.json["cost"]) == (0, 1, 0.0)
    assert compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4o", "--no-log").code == 0
    assert len(server.requests) == 2


def test_without_the_log_nothing_is_kept(here: Path, server: OpenAIServer, isolated: Path) -> None:
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--no-log").code == 0
    assert not [path for path in isolated.rglob("*") if path.is_file()]


def test_a_failed_reply_is_asked_for_again(here: Path, server: OpenAIServer) -> None:
    server.script = ["Sure, next I run the tests.", honest]
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 4
    untouched(here)
    assert compact("run", "x.jsonl", "-m", "openai/gpt-4o").code == 0
    assert len(server.requests) == 2


# -- what goes wrong

BAD: dict[str, tuple[Any, tuple[str, ...]]] = {
    "api-failure-06 a wrong key": (Failure(401, "Incorrect API key provided: sk-nothing-to-see"), ("OPENAI_API_KEY",)),
    "an unknown model": (Failure(404, "The model `gpt-4o` does not exist", "model_not_found"), ("gpt-4o",)),
    "no quota": (Failure(429, "You exceeded your current quota", "insufficient_quota"), ("quota",)),
    "model-output-10 a proxy's error": (Raw(b"upstream connect error", "text/plain"), ("compact: openai/gpt-4o",)),
    "invalid UTF-8": (Raw(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'), ("compact: openai/gpt-4o",)),
    "model-output-01 cut off": ({"content": '{"add": {"fac', "finish_reason": "length"}, ("cut off",)),
    "model-output-05 only reasoning": ({"content": None, "reasoning_content": '{"add": {}}'}, ("only reasoning",)),
    "model-output-06 a refusal": ("I can't help with summarising this.", ("refused", "another model")),
    "model-output-06 a refusal apart": ({"content": None, "refusal": "Not this."}, ("refused", "Not this.")),
    "model-output-06 a filter": ({"content": "", "finish_reason": "content_filter"}, ("refused",)),
    "model-output-07 nothing": ("   \n", ("empty",)),
    "model-output-08 a tool call": (
        {"content": None, "finish_reason": "tool_calls",
         "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        ("called a tool",),
    ),
    "the chat goes on": ("Great, I have fixed the test. Next I deploy.", ("may go on with the chat",)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_fails_is_said_in_one_line_and_nothing_is_written(here: Path, server: OpenAIServer, name: str) -> None:
    answer, words = BAD[name]
    server.script = [answer]
    before = hashlib.sha256(SESSION).hexdigest(), (here / "x.jsonl").stat().st_mtime_ns
    done = compact("run", "x.jsonl", "--in-place", "-m", "openai/gpt-4o")
    assert done.code == 4
    one_line(done, *words)
    assert "sk-nothing" not in done.err
    untouched(here)
    assert (
        hashlib.sha256((here / "x.jsonl").read_bytes()).hexdigest(),
        (here / "x.jsonl").stat().st_mtime_ns,
    ) == before


def test_no_key_names_the_variable(here: Path) -> None:
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert done.code == 4
    one_line(done, "OPENAI_API_KEY")
    untouched(here)


def test_no_server_names_the_place(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    monkeypatch.setattr("compactor.model.LiteLLM._sleep", lambda *_: None)
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert done.code == 4
    one_line(done, "127.0.0.1:9")


def test_a_time_out_names_the_cure(server: OpenAIServer) -> None:
    server.script = [Hang()]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--timeout", "0.4")
    assert done.code == 4
    one_line(done, "--timeout")
    assert len(server.requests) == 1


def test_a_rate_limit_is_waited_for_and_is_no_overflow(server: OpenAIServer) -> None:
    limit = Failure(
        429, "Rate limit: too many tokens per minute", "rate_limit_exceeded", headers={"retry-after-ms": "20"}
    )
    server.script = [limit, honest]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert done.code == 0
    assert "waited" in done.err
    first, second = server.requests
    assert first == second


def test_half_a_reply_is_thrown_away_and_asked_for_again(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compactor.model.LiteLLM._sleep", lambda *_: None)
    server.script = [Cut(), honest]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert done.code == 0
    assert len(server.requests) == 2


def test_a_schema_that_is_refused_is_left_out_once_and_said(server: OpenAIServer) -> None:
    server.script = [
        Failure(400, "Invalid parameter: response_format is not supported", param="response_format"),
        honest,
    ]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o")
    assert done.code == 0
    assert "without structured output" in done.err
    assert ["response_format" in body for body in server.requests] == [True, False]


def test_the_fallbacks_are_asked_in_turn_and_offline_is_the_last(server: OpenAIServer) -> None:
    server.script = ["Not today.", honest]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--fallback", "openai/gpt-4o-mini,offline", "--json")
    assert done.code == 0
    assert done.json["model"] == "openai/gpt-4o-mini"
    server.script = ["Not today."]
    last = compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4", "--fallback", "offline", "--json")
    assert last.code == 0
    assert last.json["model"] is None
    assert any(finding["check"] == "model" for finding in last.json["findings"])
    plain = compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4", "--fallback", "offline")
    assert "offline summary, no model" in plain.err
    assert "can't be used" in plain.err
    wrong = compact("run", "x.jsonl", "-f", "-m", "openai/gpt-4", "--fallback", "offline,openai/gpt-4o")
    assert wrong.code == 2


def test_the_most_cost_stops_before_the_call(here: Path, server: OpenAIServer) -> None:
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--max-cost", "0.0001")
    assert done.code == 4
    one_line(done, "--max-cost")
    assert not server.requests
    untouched(here)


def test_a_budget_too_small_for_what_binds_is_said_and_what_binds_is_kept(server: OpenAIServer) -> None:
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--max-summary", "120")
    assert done.code == 0
    assert "what binds doesn't fit" in done.err
    assert "Never give bed" in Path("x.compacted.jsonl").read_text()


def test_an_error_is_one_object_too(server: OpenAIServer) -> None:
    server.script = ["Not today."]
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--json")
    assert done.code == 4
    assert done.json["exit_code"] == 4
    assert "can't be used" in done.json["reason"]


# -- other models


def test_anthropics_protocol_is_spoken(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    (here / "a.jsonl").write_bytes(jsonl(anthropic(garden(8))))
    with AnthropicServer([lambda body: json.dumps(update(_text(body)))]) as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", server.base)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-nothing")
        done = compact("run", "a.jsonl", "-m", "anthropic/claude-sonnet-4-5", "--json")
        assert done.code == 0, done.err
        assert len(server.requests) == 1
        assert done.json["usage"]["calls"] == 1


def _text(body: Any) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def test_a_script_answers(here: Path) -> None:
    prompt = json.loads(compact("prompt", "x.jsonl", "--json").out)["messages"][-1]["content"]
    (here / "replies.jsonl").write_text(json.dumps(update(prompt)) + "\n")
    done = compact("run", "x.jsonl", "-m", "scripted:replies.jsonl", "--json")
    assert done.code == 0, done.err
    assert done.json["model"] == "scripted:replies.jsonl"
    assert compact("run", "x.jsonl", "-f", "-m", "scripted:gone.jsonl").code in (3, 4)


def test_a_command_answers(here: Path) -> None:
    (here / "model.py").write_text(
        "import json, re, sys\n"
        "prompt = sys.stdin.read()\n"
        "at = re.search(r'^\\[(\\S+)\\] USER:\\n(.+)$', prompt, re.M)\n"
        "item = [{'text': at[2], 'evidence': [at[1]], 'basis': 'stated'}]\n"
        "print('Here it is:\\n```json\\n' + json.dumps({'objective': item, 'next_action': item}) + '\\n```')\n"
    )
    done = compact("run", "x.jsonl", "-m", f"cmd:{sys.executable} model.py", "--json")
    assert done.code == 0, done.err
    assert done.json["usage"]["calls"] == 1
    failing = compact("run", "x.jsonl", "-f", "-m", f"cmd:{sys.executable} -c raise(SystemExit(3))")
    assert failing.code == 4


def test_several_conversations_are_asked_one_by_one(here: Path, server: OpenAIServer) -> None:
    rows = b"".join(json.dumps({"messages": openai(garden(n))}).encode() + b"\n" for n in (6, 7))
    (here / "rows.jsonl").write_bytes(rows)
    done = compact("run", "rows.jsonl", "-m", "openai/gpt-4o", "--json")
    assert done.code == 0, done.err
    assert len(server.requests) == 2
    assert done.json["usage"]["calls"] == 2


# -- a terminal, and an interrupt


def test_on_a_terminal_it_is_told_what_is_waited_for(here: Path) -> None:
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "compactor", "run", "x.jsonl", "-m", "cmd:sleep 1.5"]
    with subprocess.Popen(command, env=environment(TERM="xterm", COLUMNS="100"), stderr=slave, cwd=here) as running:
        os.close(slave)
        told = b""
        while chunk := _read(master):
            told += chunk
        assert running.wait(20) == 4
    os.close(master)
    assert re.search(rb"cmd:sleep 1.5 reads [\d,]+ tokens", told)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 4096)
    except OSError:  # the other end is closed
        return b""


def test_an_interrupt_ends_it_at_once_and_leaves_nothing(here: Path, server: OpenAIServer) -> None:
    server.script = [Hang()]
    command = [sys.executable, "-m", "compactor", "run", "x.jsonl", "-m", "openai/gpt-4o"]
    with subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, cwd=here) as running:
        for _ in range(300):
            if server.requests:
                break
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        assert running.wait(10) == 130
    untouched(here)


def test_the_help_lists_what_belongs_to_asking() -> None:
    done = process("run", "--help", env={"COLUMNS": "100"})
    told = done.out.decode().partition(ASKING)[2]
    for option in ("--model", "--window", "--prompt", "--fallback", "--max-cost", "--timeout", "--parallel",
                   "--reuse-prefix", "--no-log"):  # fmt: skip
        assert option in told
    assert os.environ.get("COMPACT_MODEL") is None


# -- the prefix that the provider may still hold


def test_a_reused_prefix_is_sent_unchanged_with_the_instruction_behind_it(here: Path, server: OpenAIServer) -> None:
    records = openai(garden(8))
    tools = [{"type": "function", "function": {"name": "Read", "parameters": {"type": "object"}}}]
    (here / "o.json").write_text(json.dumps({"tools": tools, "messages": records}))
    usage = {"prompt_tokens": 5_000, "completion_tokens": 10, "total_tokens": 5_010,
             "prompt_tokens_details": {"cached_tokens": 4_500}}  # fmt: skip
    item = [{"text": "Plan the water", "evidence": ["1.2"], "basis": "stated"}]
    server.script = [{"content": json.dumps({"objective": item, "next_action": item}), "usage": usage}]
    done = compact("run", "o.json", "-m", "openai/gpt-4o", "--reuse-prefix", "--json")
    assert done.code == 0, done.err
    (body,) = server.requests
    *sent, last = body["messages"]
    assert sent == records[: len(sent)]
    assert len(sent) > 10
    assert body["tools"] == tools
    assert body["tool_choice"] == "none"
    assert "The conversation above ends here." in last["content"]
    assert "[1.2] USER: Plan the water of bed 1." in last["content"]
    assert "# Instruction" in last["content"]
    assert done.json["usage"]["cached"] == 4_500


def test_a_prefix_that_does_not_fit_is_told_in_parts(here: Path, server: OpenAIServer) -> None:
    (here / "x.jsonl").write_bytes(jsonl(openai(garden(30, 60))))
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--reuse-prefix", "--window", "16000")
    assert done.code == 0, done.err
    assert "told in parts instead" in done.err
    assert all("tool_calls" not in json.dumps(body["messages"]) for body in server.requests)


def test_where_there_is_no_such_prefix_it_is_said(here: Path, server: OpenAIServer) -> None:
    (here / "a.jsonl").write_bytes(jsonl(anthropic(garden(8))))
    one_line(
        compact("run", "a.jsonl", "-m", "openai/gpt-4o", "--reuse-prefix"),
        "--reuse-prefix",
        "anthropic",
        "leave it out",
    )
    assert not server.requests


def test_another_models_prefix_is_not_reused(here: Path, server: OpenAIServer) -> None:
    records = [{**message, "model": "gpt-4o-mini"} if message["role"] == "assistant" else message
               for message in openai(garden(8))]  # fmt: skip
    (here / "x.jsonl").write_bytes(jsonl(records))
    done = compact("run", "x.jsonl", "-m", "openai/gpt-4o", "--reuse-prefix")
    assert done.code == 2
    one_line(done, "gpt-4o-mini wrote the session")


def test_the_reply_that_was_recorded_for_our_own_session_stands(here: Path, fixtures: Path) -> None:
    """Written by hand to the prompt of that day; a change of the prompt may let it age, not break."""
    session, replies = fixtures / "claude-code" / "orders.jsonl", fixtures / "replies" / "orders.jsonl"
    done = compact("run", session, "--max-summary", "1500", "-o", "o.jsonl", "-m", f"scripted:{replies}", "--json")
    assert done.code == 0, done.err
    assert done.json["findings"] == []
    assert done.json["usage"]["asked_again"] == 0
    summary = json.loads((here / "o.summary.json").read_bytes())
    decisions = summary["snapshot"]["decisions"]
    assert decisions[0]["why"] == "Same transaction; finance looks back a quarter"
    assert compact("verify", "o.summary.json", session, "o.jsonl").code == 0


def test_a_plan_that_may_pass_the_most_cost_says_so(server: OpenAIServer) -> None:
    done = compact("run", "x.jsonl", "-n", "-m", "openai/gpt-4o", "--max-cost", "0.0001")
    assert done.code == 0
    assert "may pass --max-cost 0.0001" in done.err
    assert "may pass" not in compact("run", "x.jsonl", "-n", "-m", "openai/gpt-4o", "--max-cost", "5").err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-cost", "1"], ("--max-cost", "does nothing without -m")),
        (["--parallel"], ("--parallel", "does nothing without -m")),
        (["--fallback", "openai/gpt-4o"], ("--fallback", "does nothing without -m")),
        (["-m", "openai/gpt-4o", "--fallback", "ofline"], ("ofline", "offline")),
        (["-m", "openai/gpt-4o", "--window", "3000"], ("--window of at least",)),
    ],
)
def test_flags_that_do_not_go_together_are_said_at_once(
    here: Path, arguments: list[str], words: tuple[str, ...]
) -> None:
    done = compact("run", "x.jsonl", *arguments)
    assert done.code == 2
    one_line(done, *words)
    untouched(here)


def test_the_window_that_is_named_as_enough_is_enough(here: Path) -> None:
    told = compact("run", "x.jsonl", "-m", "openai/unheard-of", "--window", "3000").err
    least = re.search(r"at least ([\d,]+)", told)
    assert least
    window = least[1].replace(",", "")
    assert compact("run", "x.jsonl", "-n", "-m", "openai/unheard-of", "--window", window).code == 0


def test_a_key_in_a_command_is_told_nowhere(here: Path) -> None:
    done = compact("run", "x.jsonl", "-m", "cmd:false --key sk-abcdefghijklmnopqrstuvwx", "--fallback", "offline")
    assert done.code == 0
    assert "abcdefghijkl" not in done.err + (here / "x.summary.json").read_text()


def test_a_reused_prefix_can_be_printed(here: Path) -> None:
    done = compact("prompt", "x.jsonl", "-m", "openai/gpt-4o", "--reuse-prefix", "--json")
    assert done.code == 0, done.err
    assert "The conversation above ends here." in done.json["messages"][-1]["content"]
    assert compact("prompt", "x.jsonl", "-m", "openai/gpt-4o", "--reuse-prefix").code == 0
