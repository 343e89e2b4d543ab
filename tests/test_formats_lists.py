"""The formats that keep a conversation as a list: the same conversation in each of them."""

import json
from itertools import pairwise

import pytest
from build import LISTED, Form, Talk, call
from hypothesis import given
from hypothesis import strategies as st
from strategies import talks
from talks import garden

from compactor import formats, pipeline
from compactor.pipeline import Options
from compactor.split import Keep
from compactor.transcript import Entry, write

TALK = (
    Talk()
    .user("Count the beds. Never touch the ferns.")
    .agent("I count.", call("c1", "Bash", command="wc -l beds"))
    .result("c1", "12 beds")
    .agent("Twelve.")
    .user("And the ferns?")
    .agent("None.")
)
KEEPS_FAILURES: tuple[Form, ...] = (
    "gemini", "gemini-json", "opencode", "langchain", "vercel", "copilot", "kimi", "openhands", "openhands-sdk",
)  # fmt: skip


def live(form: Form, talk: Talk = TALK) -> list[Entry]:
    transcript = talk.source(form).transcripts[0]
    return [entry for index in transcript.live if (entry := transcript.entries[index]).role]


@pytest.mark.parametrize("form", LISTED)
def test_it_is_detected_and_written_as_it_was(form: Form) -> None:
    raw = TALK.raw(form)
    source = formats.read(raw, "in")
    assert source.format == form
    assert write(source) == raw


@pytest.mark.parametrize("form", LISTED)
def test_who_says_what_and_which_result_answers_which_call(form: Form) -> None:
    parts = [part for entry in live(form) for part in entry.parts if part.kind != "opaque"]
    assert [(part.kind, part.speaker) for part in parts] == [
        ("text", "human"), ("text", "assistant"), ("call", "assistant"), ("result", "tool"), ("text", "assistant"),
        ("text", "human"), ("text", "assistant"),
    ]  # fmt: skip
    made, result = parts[2], parts[3]
    assert (made.name, made.input["command"], result.text) == ("Bash", "wc -l beds", "12 beds")
    assert (made.call_id, result.name) == (result.call_id, "Bash")
    assert [said for part in parts for said in part.said] == [
        "Count the beds. Never touch the ferns.",
        "And the ferns?",
    ]


@pytest.mark.parametrize("form", KEEPS_FAILURES)
def test_a_failed_call_is_marked(form: Form) -> None:
    talk = Talk().user("Go.").ran("make", "no rule", failed=True).agent("It failed.")
    (result,) = [part for entry in live(form, talk) for part in entry.parts if part.kind == "result"]
    assert (result.failed, result.text) == (True, "no rule")


@pytest.mark.parametrize("form", LISTED)
def test_the_block_stands_in_place_of_the_head_and_reads_back(form: Form) -> None:
    raw = Talk().told(garden(8)).raw(form)
    done = pipeline.compact(formats.read(raw, "in"), Options(keep=Keep(4)))
    (outcome,) = done.outcomes
    assert outcome.changed, outcome.reason
    after = formats.read(done.data, "out")
    assert after.format == form
    assert after.transcripts[0].ours
    assert after.transcripts[0].entries[after.transcripts[0].live[after.transcripts[0].fixed]].text == outcome.block
    again = pipeline.compact(after, Options(keep=Keep(4)))
    assert not again.changed


@given(talks(), st.sampled_from(LISTED))
def test_any_conversation_is_written_as_it_was(talk: Talk, form: Form) -> None:
    raw = talk.raw(form)
    assert write(formats.read(raw, "in", form)) == raw


def test_langchain_itself_loads_what_is_written() -> None:
    from langchain_core.messages import messages_from_dict

    done = pipeline.compact(formats.read(Talk().told(garden(8)).raw("langchain"), "in"), Options(keep=Keep(4)))
    messages = messages_from_dict([json.loads(line) for line in done.data.splitlines()])
    assert [message.type for message in messages[:2]] == ["system", "ai"]
    assert messages[0].content == done.outcomes[0].block
    called = {call["id"] for message in messages for call in getattr(message, "tool_calls", ())}
    assert {message.tool_call_id for message in messages if hasattr(message, "tool_call_id")} <= called


def test_the_steps_of_a_trajectory_are_numbered_anew() -> None:
    done = pipeline.compact(formats.read(Talk().told(garden(8)).raw("atif"), "in"), Options(keep=Keep(4)))
    steps = json.loads(done.data)["steps"]
    assert [step["step_id"] for step in steps] == list(range(1, len(steps) + 1))
    assert any("step_id" in note.text for note in done.outcomes[0].edits)


def test_a_reasoning_item_stays_with_what_it_produced() -> None:
    done = pipeline.compact(formats.read(Talk().told(garden(8)).raw("responses"), "in"), Options(keep=Keep(5)))
    items = [json.loads(line) for line in done.data.splitlines()]
    for item, after in pairwise(items):
        assert item["type"] != "reasoning" or after["type"] in ("reasoning", "function_call")
    assert items[1]["type"] != "function_call"


def test_a_message_that_gemini_wrote_again_holds_in_its_first_place() -> None:
    raw = TALK.raw("gemini")
    first = next(line for line in raw.splitlines() if b"Twelve." in line)
    grown = first.replace(b"Twelve.", b"Twelve beds.")
    transcript = formats.read(raw + grown + b"\n", "in").transcripts[0]
    texts = [transcript.entries[index].text for index in transcript.live]
    assert texts.index("Twelve beds.") < texts.index("And the ferns?")
    assert "Twelve." not in texts


def test_gemini_goes_back_and_replaces_its_list_of_messages() -> None:
    raw = TALK.raw("gemini")
    name = json.loads(next(line for line in raw.splitlines() if b"And the ferns" in line))["id"]
    back = formats.read(raw + json.dumps({"$rewindTo": name}).encode() + b"\n", "in").transcripts[0]
    assert [back.entries[index].text for index in back.live][-1] == "Twelve."
    snapshot = {"id": "x", "type": "user", "content": [{"text": "<state_snapshot>beds: 12</state_snapshot>"}]}
    kept = {"id": "y", "type": "gemini", "content": "Got it. Thanks for the additional context!"}
    line = json.dumps({"$set": {"messages": [snapshot, kept], "lastUpdated": "t"}}).encode() + b"\n"
    source = formats.read(raw + line, "in")
    transcript = source.transcripts[0]
    assert write(source) == raw + line
    assert (transcript.summarised, transcript.ours) == (2, False)
    assert len(transcript.past) == 5
