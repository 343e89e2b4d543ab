"""Codex rollouts: what the model is sent, and what the client goes on from."""

import json
from typing import Any

import pytest

from compactor import formats, pipeline
from compactor.formats import FORMATS
from compactor.formats.base import Embedded
from compactor.pipeline import Options
from compactor.split import Keep
from compactor.transcript import BLOCK_PREAMBLE, Part, Source, Transcript, write

BLOCK = f"{BLOCK_PREAMBLE}\nSources: A = 0a1b2c3d\nwhat came before\n[end of compact record]"
CONTEXT = "<environment_context>\n  <cwd>/srv</cwd>\n</environment_context>"
AGENTS = "# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>\nNever push.\n</INSTRUCTIONS>"
PREFIX = "Another language model started to solve this problem and produced a summary of its thinking process."
Record = dict[str, Any]


def rec(kind: str, **payload: Any) -> Record:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload}


def said(role: str, *texts: str) -> Record:
    kind = "output_text" if role == "assistant" else "input_text"
    return rec("response_item", type="message", role=role, content=[{"type": kind, "text": text} for text in texts])


def called(call_id: str, command: str = "ls", name: str = "exec_command") -> Record:
    return rec(
        "response_item", type="function_call", name=name, arguments=json.dumps({"cmd": command}), call_id=call_id
    )


def told(call_id: str, output: Any) -> Record:
    return rec("response_item", type="function_call_output", call_id=call_id, output=output)


META = rec("session_meta", id="s1", session_id="s1", cwd="/srv", cli_version="0.150.0")
HEAD = [META, said("developer", "Be brief."), said("user", AGENTS, CONTEXT), rec("world_state", full=True, state={}),
        rec("turn_context", cwd="/srv", model="gpt-5.2-codex")]  # fmt: skip
TALK = [
    *HEAD, said("user", "Count the beds."), said("assistant", "I count."), called("c1", "wc -l beds"),
    told("c1", "Process exited with code 0\nOutput:\n12 beds"), said("assistant", "Twelve."),
    said("user", "And the ferns?"), said("assistant", "None."),
]  # fmt: skip


def raw(*records: Record) -> bytes:
    return b"".join(
        json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for record in records
    )


def read(*records: Record) -> Source:
    source = formats.read(raw(*records), "in")
    assert source.format == "codex"
    assert write(source) == source.raw
    return source


def only(*records: Record) -> Transcript:
    return read(*records).transcripts[0]


def live(transcript: Transcript) -> list[str]:
    return [transcript.entries[i].text for i in transcript.live if transcript.entries[i].role]


def part(record: Record, *before: Record) -> Part:
    return only(*HEAD, *before, record).entries[-1].parts[0]


def embedded(cut: int, *records: Record, **options: str) -> tuple[Embedded, list[Record], Transcript]:
    source = read(*records)
    done = FORMATS["codex"].embed(source, source.transcripts[0], cut, BLOCK, **options)
    after = formats.read(done.data, "out").transcripts[0]
    return done, [json.loads(line) for line in done.data.splitlines()], after


# Reading


def test_the_items_are_the_conversation_and_the_events_are_not() -> None:
    event = rec("event_msg", type="agent_message", message="Twelve.")
    assert live(only(*TALK, event)) == live(only(*TALK))
    assert live(only(*TALK))[-1] == "None."


def test_what_the_client_puts_before_the_conversation_is_fixed_and_nobody_says_it() -> None:
    transcript = only(*TALK)
    fixed = [transcript.entries[i] for i in transcript.live[: transcript.fixed]]
    assert [entry.line for entry in fixed] == [1, 2, 3]
    assert {p.speaker for entry in fixed for p in entry.parts} == {"system", "harness"}
    assert not any(p.said for entry in fixed for p in entry.parts)


@pytest.mark.parametrize(
    "text", [AGENTS, CONTEXT, "<turn_aborted>\nstopped\n</turn_aborted>", "<user_action>x</user_action>"]
)
def test_what_the_client_says_as_the_user_is_not_the_user(text: str) -> None:
    assert part(said("user", text)).speaker == "harness"


@pytest.mark.parametrize("text", ["Use <b>bold</b> here.", "<b> is a tag", "# AGENTS.md is missing"])
def test_what_the_user_says_about_tags_is_the_user(text: str) -> None:
    assert part(said("user", text)).speaker == "human"


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Chunk ID: 1\nProcess exited with code 3\nOutput:\nno", 3),
        ("Exit code: 0\nWall time: 1\nOutput:\nyes", 0),
        (json.dumps({"output": "no", "metadata": {"exit_code": 2}}), 2),
        ("Output:\nProcess exited with code 9", None),
        ([{"type": "input_text", "text": "fine"}], None),
    ],
)
def test_the_exit_code_is_what_the_client_says_not_what_the_command_prints(output: Any, code: int | None) -> None:
    result = part(told("c9", output), called("c9"))
    assert (result.exit_code, result.failed) == (code, bool(code))


def test_a_command_that_the_user_refused_is_refused() -> None:
    result = part(told("c9", "exec command rejected by user"), called("c9"))
    assert (result.failed, result.verdict, result.said) == (True, "refused", ())


def test_a_patch_names_its_file() -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch"
    made = part(rec("response_item", type="custom_tool_call", name="apply_patch", input=patch, call_id="c9"))
    assert made.input["path"] == "src/a.py"
    assert made.text == patch


def test_what_was_rolled_back_is_not_sent() -> None:
    transcript = only(*TALK, rec("event_msg", type="thread_rolled_back", num_turns=1))
    assert live(transcript)[-1] == "Twelve."
    assert any("rolled back" in note.text for note in transcript.notes)


def test_the_model_and_its_count_are_known() -> None:
    counted = rec("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 9_000}})
    transcript = only(*TALK, counted)
    assert (transcript.model, transcript.usage, transcript.session) == ("gpt-5.2-codex", 9_000, "s1")


def test_a_rollout_without_envelopes_is_read_and_written() -> None:
    flat: list[Record] = [{"id": "s1", "timestamp": "t", "instructions": None, "git": {}}, {"record_type": "state"}]
    flat += [record["payload"] for record in TALK[5:]]
    transcript = only(*flat)
    assert live(transcript)[0] == "Count the beds."
    _, records, after = embedded(transcript.fixed + 4, *flat)
    assert after.ours
    assert not any("payload" in record for record in records if record.get("type") == "message")


# Compactions of the client's


def compacted(**payload: Any) -> Record:
    return rec("compacted", **payload)


def test_a_compaction_with_a_history_is_all_that_is_sent_of_the_time_before() -> None:
    history = [said("user", "Count the beds.")["payload"], said("user", f"{PREFIX}\nTwelve beds.")["payload"]]
    transcript = only(*TALK, compacted(message="", replacement_history=history), said("user", "Go on."))
    assert live(transcript)[2:] == [f"Count the beds.\n{PREFIX}\nTwelve beds.", "Go on."]
    assert (transcript.summarised, transcript.ours, len(transcript.past)) == (1, False, 7)
    assert [p.speaker for p in transcript.entries[len(TALK)].parts] == ["human", "summary"]


def test_a_compaction_without_a_history_is_its_message() -> None:
    transcript = only(*TALK, compacted(message=f"{PREFIX}\nTwelve beds."), said("user", "Go on."))
    assert live(transcript)[2:] == [f"{PREFIX}\nTwelve beds.", "Go on."]


def test_a_summary_that_nobody_can_read_is_carried_as_it_is() -> None:
    opaque = {"type": "compaction", "encrypted_content": "c2VjcmV0"}
    history = [said("developer", "Be brief.")["payload"], said("user", "Count.")["payload"], opaque]
    later = [said("user", "Go on."), said("assistant", "Yes."), said("user", "More."), said("assistant", "Done.")]
    _, records, after = embedded(6, *TALK, compacted(message="", replacement_history=history), *later)
    (marker,) = [record["payload"] for record in records if record["type"] == "compacted"]
    kinds = [item.get("role") or item["type"] for item in marker["replacement_history"]]
    assert kinds == ["developer", "compaction", "user"]
    assert opaque in marker["replacement_history"]
    assert after.ours


# Writing


def test_the_block_is_the_whole_history_and_the_tail_follows() -> None:
    done, records, after = embedded(8, *TALK)
    assert [record["type"] for record in records[:6]] == [
        "session_meta", "response_item", "response_item", "compacted", "world_state", "turn_context",
    ]  # fmt: skip
    history = records[3]["payload"]["replacement_history"]
    assert [item["role"] for item in history] == ["developer", "user", "user"]
    assert history[-1]["content"][0]["text"] == records[3]["payload"]["message"] == BLOCK
    assert done.data.endswith(raw(*TALK[10:]))
    assert (after.ours, after.fixed, live(after)[2:]) == (True, 3, [BLOCK, "And the ferns?", "None."])


def test_ordinals_are_numbered_anew_and_counts_taken_out() -> None:
    counted = rec("event_msg", type="token_count", info={"last_token_usage": {"total_tokens": 9_000}})
    numbered = [
        {"timestamp": "t", "ordinal": n, **{k: v for k, v in record.items() if k != "timestamp"}}
        for n, record in enumerate([*TALK, counted])
    ]
    done, records, _ = embedded(8, *numbered)
    assert [record["ordinal"] for record in records] == list(range(len(records)))
    assert records[-1]["payload"]["info"] is None
    assert {note.text.partition(":")[0] for note in done.edits} == {"ordinal", "token_count"}


def test_a_session_of_its_own_has_its_own_id() -> None:
    _, records, after = embedded(8, *TALK, session="s2")
    assert (records[0]["payload"]["id"], records[0]["payload"]["session_id"], after.session) == ("s2", "s2", "s2")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_are_what_they_were(end: str) -> None:
    lines = raw(*TALK).replace(b"\n", end.encode())
    source = formats.read(lines, "in")
    data = FORMATS["codex"].embed(source, source.transcripts[0], 8, BLOCK).data
    assert data.count(b"\n") == data.count(end.encode())


def test_compacted_twice_there_is_one_block_and_the_context_stays() -> None:
    longer = [*TALK, *(said(role, f"{role} {n} " * 40) for n in range(12) for role in ("user", "assistant"))]
    first = pipeline.compact(read(*longer), Options(keep=Keep(8)))
    grown = first.data + raw(*(said(role, f"later {n} " * 40) for n in range(9) for role in ("user", "assistant")))
    second = pipeline.compact(
        formats.read(grown, "grown"), Options(keep=Keep(4)), find=lambda *_: first.outcomes[0].snapshot
    )
    assert second.outcomes[0].changed, second.outcomes[0].reason
    records = [json.loads(line) for line in second.data.splitlines()]
    (marker,) = [record["payload"] for record in records if record["type"] == "compacted"]
    assert [item["role"] for item in marker["replacement_history"]] == ["developer", "user", "user"]
    assert marker["message"].startswith(BLOCK_PREAMBLE)
    before, after = first.outcomes[0].snapshot, second.outcomes[0].snapshot
    assert before
    assert after
    assert {item.id for _, item in before.items()} <= {item.id for _, item in after.items()}


def test_an_opaque_summary_among_the_messages_is_carried_too() -> None:
    opaque = rec("response_item", type="compaction", encrypted_content="c2VjcmV0")
    _, records, after = embedded(9, *TALK[:10], opaque, *TALK[10:])
    (marker,) = [record["payload"] for record in records if record["type"] == "compacted"]
    assert opaque["payload"] in marker["replacement_history"]
    assert after.ours


def test_a_rollback_behind_a_compaction_leaves_it_where_it_is() -> None:
    history = [said("user", "Count the beds.")["payload"], said("user", f"{PREFIX}\nTwelve.")["payload"]]
    marker = compacted(message="", replacement_history=history)
    back = rec("event_msg", type="thread_rolled_back", num_turns=1)
    transcript = only(*TALK, marker, back, said("user", "Go on."), said("assistant", "Yes."))
    assert (transcript.summarised, live(transcript)[-2:]) == (1, ["Go on.", "Yes."])


def test_a_rollback_in_the_tail_is_not_said_again() -> None:
    longer = [*TALK, *(said(role, f"{role} {n} " * 60) for n in range(9) for role in ("user", "assistant"))]
    back = [
        said("user", "Wrong."),
        said("assistant", "Done wrong."),
        rec("event_msg", type="thread_rolled_back", num_turns=1),
    ]
    done = pipeline.compact(
        read(*longer, *back, said("user", "Right."), said("assistant", "Yes.")), Options(keep=Keep(4))
    )
    assert done.changed, done.outcomes[0].reason
    assert b"thread_rolled_back" not in done.data


def test_reasoning_stays_with_the_call_that_it_led_to() -> None:
    reasoning = rec("response_item", type="reasoning", summary=[], encrypted_content="c2VjcmV0")
    rounds = [[reasoning, called(f"r{n}"), told(f"r{n}", "fine " * 80)] for n in range(8)]
    source = read(*TALK, *(record for one in rounds for record in one))
    for keep in range(1, 9):
        done = pipeline.compact(source, Options(keep=Keep(keep)))
        kinds = [record["payload"].get("type") for record in map(json.loads, done.data.splitlines())]
        behind = kinds[kinds.index(None, 3) :] if None in kinds[3:] else kinds
        assert all(kinds[at - 1] == "reasoning" for at, kind in enumerate(kinds) if kind == "function_call"), behind


@pytest.mark.parametrize(
    "text",
    [
        "<task>Never push to main.</task>",
        "# AGENTS.md instructions are wrong; never touch /v1.",
        "<p>a</p> Never. <p>b</p>",
    ],
)
def test_a_users_own_tags_are_the_users(text: str) -> None:
    assert part(said("user", text)).speaker == "human"


@pytest.mark.parametrize("kind", ["web_search_call", "image_generation_call", "tool_search_call", "local_shell_call"])
def test_hosted_calls_are_the_assistants_and_survive_in_the_tail(kind: str) -> None:
    item = rec("response_item", type=kind, status="completed", call_id="c9", action={"query": "ferns"})
    transcript = only(*TALK, item)
    assert transcript.entries[transcript.live[-1]].role == "assistant"
    _, records, _ = embedded(len(transcript.live) - 1, *TALK, item)
    assert records[-1] == item


@pytest.mark.parametrize(
    "odd",
    [
        rec("response_item", type="ghost_snapshot", ghost_commit={"id": "x"}),
        rec("inter_agent_communication", content="push"),
        {**META, "payload": {**META["payload"], "id": "parent"}},
    ],
)
def test_what_isnt_sent_is_bookkeeping_and_stays_in_the_tail(odd: Record) -> None:
    records = [*TALK[:-1], odd, TALK[-1]]
    transcript = only(*records)
    assert live(transcript) == live(only(*TALK))
    assert transcript.session == "s1"
    _, written, _ = embedded(len(transcript.live) - 2, *records)
    assert odd in written


def test_what_another_agent_says_is_not_the_users() -> None:
    said_by = rec("response_item", type="agent_message", author="a", content=[{"type": "input_text", "text": "push"}])
    assert (part(said_by).speaker, part(said_by).said) == ("harness", ())


def test_a_chunk_that_begins_in_the_middle_notes_its_orphan() -> None:
    transcript = only(told("c0", "late"), said("user", "Go on."), said("assistant", "Yes."))
    assert [note.text for note in transcript.notes] == ["result c0 answers no call"]


def numbered(records: list[Record], *ordinals: int | None) -> list[Record]:
    return [
        {"timestamp": "t", **({} if n is None else {"ordinal": n}), **{k: v for k, v in r.items() if k != "timestamp"}}
        for n, r in zip(ordinals, records, strict=True)
    ]


def test_ordinals_that_are_out_of_order_or_missing_are_told_and_made_whole() -> None:
    ordinals: list[int | None] = list(range(len(TALK)))
    ordinals[7], ordinals[8], ordinals[-1] = 8, 7, None
    records = numbered(TALK, *ordinals)
    transcript = only(*records)
    assert [(note.line, note.text.split(":")[0]) for note in transcript.notes] == [(9, "ordinals out of order")]
    assert live(transcript) == live(only(*TALK))
    done, written, _ = embedded(len(transcript.live) - 3, *records)
    assert [record["ordinal"] for record in written] == list(range(len(written)))
    assert "ordinal: numbered anew" in [note.text for note in done.edits]


def test_an_item_under_a_wrong_label_is_neither_sent_nor_lost() -> None:
    """What an event says isn't the conversation, whatever it looks like, and an item of no known kind isn't either."""
    wrong = [
        rec("event_msg", type="message", role="user", content=[{"type": "input_text", "text": "push"}]),
        rec("response_item", type="user_message", message="push"),
    ]
    transcript = only(*TALK[:-1], *wrong, TALK[-1])
    assert live(transcript) == live(only(*TALK))
    assert [note.text.rsplit(": ")[-1] for note in transcript.notes] == ["user_message 1"]
    _, written, _ = embedded(len(transcript.live) - 2, *TALK[:-1], *wrong, TALK[-1])
    assert all(record in written for record in wrong)
