"""Any format as a plain list of messages, and what a transcript is."""

import json
from typing import Any

import pytest
from build import FORMS, LISTED, REFUSED, Form, Talk, call
from command import Done, compact
from hypothesis import given
from hypothesis import strategies as st
from strategies import talks

from compactor import formats
from compactor.convert import DIALECTS, Dialect, convert
from compactor.overview import overview
from compactor.tokens import counter_for

TALK = (
    Talk()
    .user("Count the beds.")
    .agent("I count.", call("c1", "Bash", command="wc -l beds"), call("c2", "Bash", command="ls"))
    .result("c1", "12 beds")
    .result("c2", "nothing")
    .agent("Twelve.")
    .user("And the ferns?")
    .agent("None.")
)


def ok(*arguments: object) -> Done:
    done = compact(*arguments)
    assert done.code == 0, done.err
    return done


def converted(form: Form, dialect: Dialect, talk: Talk = TALK) -> list[dict[str, Any]]:
    return convert(talk.source(form).transcripts[0], dialect).messages


@pytest.mark.parametrize("form", [form for form in (*FORMS, *LISTED) if form not in ("codex", "sharegpt")])
def test_every_format_becomes_the_same_openai_messages(form: Form) -> None:
    messages = converted(form, "openai")
    texts = [(m["role"], m["content"]) for m in messages if m["content"]]
    assert texts == [
        ("user", "Count the beds."), ("assistant", "I count."), ("tool", "12 beds"), ("tool", "nothing"),
        ("assistant", "Twelve."), ("user", "And the ferns?"), ("assistant", "None."),
    ]  # fmt: skip
    made = [c for m in messages for c in m.get("tool_calls", ())]
    assert [json.loads(c["function"]["arguments"])["command"] for c in made] == ["wc -l beds", "ls"]
    assert {m["tool_call_id"] for m in messages if m["role"] == "tool"} == {c["id"] for c in made}


@pytest.mark.parametrize("form", [*FORMS, *LISTED])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_comes_out_reads_back_in_that_dialect_with_nothing_wrong(form: Form, dialect: Dialect) -> None:
    raw = b"".join(json.dumps(message).encode() + b"\n" for message in converted(form, dialect))
    source = formats.read(raw, "in", dialect)
    assert source.transcripts[0].notes == ()


@given(talks(), st.sampled_from([*FORMS, *LISTED]), st.sampled_from(DIALECTS))
def test_no_word_of_a_conversation_is_lost(talk: Talk, form: Form, dialect: Dialect) -> None:
    transcript = talk.source(form).transcripts[0]
    done = convert(transcript, dialect)
    told = json.dumps(done.messages, ensure_ascii=False)
    for index in transcript.live:
        for part in transcript.entries[index].parts:
            if part.kind == "text" and not done.lost:
                assert json.dumps(part.text, ensure_ascii=False)[1:-1] in told


def test_a_failed_result_is_marked_and_an_orphan_is_left_out() -> None:
    talk = Talk().user("Go.").ran("make", REFUSED, failed=True).result("gone", "lost").agent("It failed.")
    done = convert(talk.source("claude-code").transcripts[0], "anthropic")
    blocks = [block for message in done.messages for block in message["content"]]
    assert [block.get("is_error") for block in blocks if block["type"] == "tool_result"] == [True]
    assert done.lost["results without a call"] == 1


def test_an_overview_tells_who_takes_the_tokens() -> None:
    told = overview(TALK.source("pi"), lambda model: counter_for(model).part)
    (one,) = told["conversations"]
    assert (told["format"], one["messages"], one["turns"], one["calls"]) == ("pi", 7, 2, {"Bash": 2})
    assert sum(one["tokens_by_speaker"].values()) == one["tokens"]
    assert one["safe_cuts"] > 2


def test_the_commands_print_and_write(tmp_path: Any) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_bytes(TALK.raw("codex"))
    printed = ok("convert", str(path), "--to", "anthropic").out.decode().splitlines()
    assert json.loads(printed[-1])["content"] == [{"type": "text", "text": "None."}]
    out = tmp_path / "out.jsonl"
    ok("convert", str(path), "-o", str(out))
    assert compact("convert", str(path), "-o", str(out)).code != 0
    assert compact("convert", str(path), "--to", "cobol").code == 2
    assert compact("convert", str(path), "--select", "7").code == 2
    assert json.loads(ok("inspect", str(path), "--json").out)["format"] == "codex"
    assert "tokens: " in ok("inspect", str(path)).out.decode()
