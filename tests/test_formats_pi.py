"""pi sessions: the path that the model is sent, and what the client goes on from."""

import json
from typing import Any

import pytest

from compactor import formats
from compactor.formats import FORMATS
from compactor.formats.base import Embedded
from compactor.transcript import BLOCK_PREAMBLE, Source, Transcript, write

BLOCK = f"{BLOCK_PREAMBLE}\nSources: A = 0a1b2c3d\nwhat came before\n[end of compact record]"
Record = dict[str, Any]
HEADER: Record = {"type": "session", "version": 3, "id": "s1", "timestamp": "t0", "cwd": "/srv"}


def entry(id: str, parent: str | None, kind: str = "message", **fields: Any) -> Record:
    return {"type": kind, "id": id, "parentId": parent, "timestamp": f"t-{id}", **fields}


def user(id: str, parent: str | None, text: str) -> Record:
    return entry(id, parent, message={"role": "user", "content": [{"type": "text", "text": text}]})


def bot(id: str, parent: str | None, text: str, *calls: str) -> Record:
    made = [{"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": "ls"}} for call in calls]
    usage = {"input": 900, "output": 5, "cacheRead": 80, "cacheWrite": 7, "totalTokens": 992}
    content = [{"type": "text", "text": text}, *made]
    return entry(id, parent, message={"role": "assistant", "content": content, "model": "big-1", "usage": usage})


def told(id: str, parent: str | None, call: str, text: str, error: bool = False) -> Record:
    message = {"role": "toolResult", "toolCallId": call, "toolName": "bash", "isError": error,
               "content": [{"type": "text", "text": text}]}  # fmt: skip
    return entry(id, parent, message=message)


TALK = [
    HEADER, entry("m", None, "model_change", provider="p", modelId="big-1"), user("a", "m", "Count the beds."),
    bot("b", "a", "I count.", "c1"), told("c", "b", "c1", "12 beds"), bot("d", "c", "Twelve."),
    user("e", "d", "And the ferns?"), bot("f", "e", "None."),
]  # fmt: skip


def raw(*records: Record) -> bytes:
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def read(*records: Record) -> Source:
    source = formats.read(raw(*records), "in")
    assert source.format == "pi"
    assert write(source) == source.raw
    return source


def only(*records: Record) -> Transcript:
    return read(*records).transcripts[0]


def live(transcript: Transcript) -> list[str]:
    return [transcript.entries[i].text.split("\n")[0] for i in transcript.live if transcript.entries[i].role]


def embedded(cut: int, *records: Record, **options: str) -> tuple[Embedded, list[Record], Transcript]:
    source = read(*records)
    done = FORMATS["pi"].embed(source, source.transcripts[0], cut, BLOCK, **options)
    return done, [json.loads(line) for line in done.data.splitlines()], formats.read(done.data, "out").transcripts[0]


# Reading


def test_the_path_to_the_last_entry_is_what_is_sent() -> None:
    transcript = only(*TALK[:6], user("x", "d", "Abandoned."), *TALK[6:])
    assert live(transcript) == ["Count the beds.", "I count.", "12 beds", "Twelve.", "And the ferns?", "None."]
    assert [note.text for note in transcript.notes] == ["1 entries of abandoned branches are left out"]


def test_a_session_of_version_1_is_a_line() -> None:
    old = [{k: v for k, v in record.items() if k not in ("id", "parentId")} for record in TALK[1:]]
    header = {k: v for k, v in HEADER.items() if k != "version"}
    transcript = only(header, *old)
    assert live(transcript) == live(only(*TALK))
    assert transcript.version == "1"
    _, records, after = embedded(5, header, *old)
    marker = next(record for record in records if record["type"] == "compaction")
    assert records[marker["firstKeptEntryIndex"] - 1] == marker
    assert live(after) == [BLOCK.split("\n")[0], "And the ferns?", "None."]


def test_only_the_last_compaction_counts_and_what_it_keeps_stays() -> None:
    marker = entry("g", "f", "compaction", summary="Twelve beds.", firstKeptEntryId="e", tokensBefore=9)
    transcript = only(*TALK, marker, user("h", "g", "Go on."))
    assert live(transcript) == ["Twelve beds.", "And the ferns?", "None.", "Go on."]
    assert (transcript.summarised, transcript.ours, len(transcript.past)) == (1, False, 4)


@pytest.mark.parametrize(
    ("record", "speaker", "text"),
    [
        (entry("g", "f", message={"role": "bashExecution", "command": "ls", "output": "x"}), "tool", "$ ls\nx"),
        (entry("g", "f", "custom_message", customType="c", content="Note.", display=True), "harness", "Note."),
        (entry("g", "f", "branch_summary", fromId="x", summary="Tried that."), "summary", "Tried that."),
    ],
)
def test_what_is_neither_the_users_nor_the_agents(record: Record, speaker: str, text: str) -> None:
    (part,) = only(*TALK, record).entries[-1].parts
    assert (part.speaker, part.text, part.said) == (speaker, text, ())


@pytest.mark.parametrize(
    "record",
    [
        entry("g", "f", message={"role": "bashExecution", "command": "ls", "output": "x", "excludeFromContext": True}),
        entry("g", "f", "custom", customType="c", data={}), entry("g", "f", "label", targetId="a", label="l"),
    ],
)  # fmt: skip
def test_what_is_not_sent_is_no_message(record: Record) -> None:
    assert live(only(*TALK, record)) == live(only(*TALK))


def test_a_result_that_failed_says_so() -> None:
    (result,) = only(*TALK, bot("g", "f", "x", "c9"), told("h", "g", "c9", "no", error=True)).entries[-1].parts
    assert (result.failed, result.name) == (True, "bash")


def test_parents_that_go_in_a_circle_are_cut_off_and_named() -> None:
    records = [HEADER, user("a", "b", "One."), bot("b", "a", "Two.")]
    transcript = only(*records)
    assert sorted(live(transcript)) == ["One.", "Two."]
    assert "circle" in transcript.notes[0].text


def test_a_parent_that_is_not_there_is_named() -> None:
    assert any("isn't in the file" in note.text for note in only(HEADER, user("a", "gone", "One.")).notes)


# Writing


def test_the_tail_hangs_from_the_compaction_and_counts_are_zero() -> None:
    done, records, after = embedded(5, *TALK)
    assert [record["type"] for record in records] == ["session", "model_change", "compaction", "message", "message"]
    marker = records[2]
    assert (marker["summary"], marker["parentId"], marker["firstKeptEntryId"]) == (BLOCK, "m", "e")
    assert [record["parentId"] for record in records[3:]] == [marker["id"], "e"]
    assert records[-1]["message"]["usage"] == {
        "input": 0,
        "output": 5,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": 0,
    }
    assert {note.text.partition(":")[0] for note in done.edits} == {"parentId", "usage"}
    assert (after.ours, live(after)[1:]) == (True, ["And the ferns?", "None."])


def test_the_settings_that_hold_stay() -> None:
    later = entry("n", "d", "model_change", provider="p", modelId="big-2")
    records = [*TALK[:6], later, user("e", "n", "And the ferns?"), TALK[7]]
    _, written, _ = embedded(5, *records)
    assert [r["modelId"] for r in written if r["type"] == "model_change"] == ["big-2"]


def test_a_session_of_its_own_has_its_own_id() -> None:
    _, records, after = embedded(5, *TALK, session="s2")
    assert (records[0]["id"], after.session) == ("s2", "s2")


def test_an_older_compaction_is_never_written_again() -> None:
    old = entry("g", "f", "compaction", summary="First.", firstKeptEntryId="a", tokensBefore=9)
    new = entry("h", "g", "compaction", summary="Second.", firstKeptEntryId="e", tokensBefore=9)
    more = [user("i", "h", "Go on."), bot("j", "i", "Yes.")]
    _, records, after = embedded(2, *TALK, old, new, *more)
    assert [r["summary"] for r in records if r["type"] == "compaction"] == [BLOCK]
    assert after.ours


def test_what_stands_before_the_header_does_not_make_a_line_a_tree() -> None:
    old = [{k: v for k, v in record.items() if k not in ("id", "parentId")} for record in TALK[1:]]
    header = {k: v for k, v in HEADER.items() if k != "version"}
    source = formats.read(b"{cut off\n" + raw(header, *old), "in")
    done = FORMATS["pi"].embed(source, source.transcripts[0], 5, BLOCK)
    assert formats.read(done.data, "out").transcripts[0].ours
