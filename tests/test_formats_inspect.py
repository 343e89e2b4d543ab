"""Logs of Inspect AI: what is read of them, and that they are never written."""

import io
import json
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from build import Talk, call
from command import compact
from hypothesis import given
from hypothesis import strategies as st
from talks import garden

from compactor import formats, pipeline
from compactor.errors import InputError
from compactor.pipeline import Options
from compactor.split import Keep
from compactor.transcript import Part, write

TALK = (
    Talk()
    .system("You tend a garden.")
    .user("Count the beds. Never touch the ferns.")
    .agent("I count.", call("c1", "bash", cmd="wc -l beds"))
    .result("c1", "12 beds")
    .agent("Twelve.")
)
Sample = dict[str, Any]


def messages(talk: Talk) -> list[Sample]:
    """As Inspect keeps them: calls flat, results with the name of their tool."""
    kept: list[Sample] = []
    for step in talk.steps:
        message: Sample = {"id": f"m{len(kept)}", "role": step.role, "content": step.text}
        if step.role == "user":
            message["source"] = "input"
        if step.calls:
            message["tool_calls"] = [
                {"id": c.id, "function": c.name, "arguments": c.arguments, "type": "function", "view": {"content": "x"}}
                for c in step.calls
            ]
        if step.role == "tool":
            message |= {"tool_call_id": step.call_id, "function": "bash"}
        kept.append(message)
    return kept


def sample(talk: Talk = TALK, name: int | str = 1, epoch: int = 1, **more: Any) -> Sample:
    return {"id": name, "epoch": epoch, "input": "Count.", "messages": messages(talk), "attachments": {}, **more}


def log(*samples: Sample) -> bytes:
    return json.dumps({"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples}, indent=2).encode()


def zipped(*samples: Sample, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2}))
        for one in samples:
            archive.writestr(f"samples/{one['id']}_epoch_{one['epoch']}.json", json.dumps(one))
        archive.writestr("header.json", json.dumps({"version": 2, "status": "success", "eval": {}}))
    return out.getvalue()


def zstd_zipped(one: Sample) -> bytes:
    """A zip whose sample is in two frames of Zstandard, which no zipfile before Python 3.14 writes."""
    content = json.dumps(one).encode()
    packed = b"".join(zstandard.compress(half) for half in (content[:100], content[100:]))
    stored = zipped(one, method=zipfile.ZIP_STORED)
    at = stored.index(content)
    new = bytearray(stored.replace(content, packed))
    place = new.index(b"samples/")
    local, central = place - 30, new.index(b"PK\x01\x02", new.index(b"PK\x01\x02") + 4)
    for start, offset in ((local, 8), (central, 10)):
        new[start + offset : start + offset + 2] = (93).to_bytes(2, "little")
        size = start + offset + 10
        new[size : size + 4] = len(packed).to_bytes(4, "little")
    shift = len(packed) - len(content)
    for entry in _entries(bytes(new)):
        offset = int.from_bytes(new[entry + 42 : entry + 46], "little")
        if offset > at:
            new[entry + 42 : entry + 46] = (offset + shift).to_bytes(4, "little")
    end = new.index(b"PK\x05\x06")
    offset = int.from_bytes(new[end + 16 : end + 20], "little") + shift
    new[end + 16 : end + 20] = offset.to_bytes(4, "little")
    assert zlib.crc32(content).to_bytes(4, "little") in new
    return bytes(new)


def _entries(raw: bytes) -> list[int]:
    found, at = [], raw.find(b"PK\x01\x02")
    while at >= 0:
        found.append(at)
        at = raw.find(b"PK\x01\x02", at + 4)
    return found


def parts(raw: bytes, position: int = 0) -> list[Part]:
    transcript = formats.read(raw, "in").transcripts[position]
    return [part for index in transcript.live for part in transcript.entries[index].parts]


@pytest.mark.parametrize("raw", [log(sample()), zipped(sample()), zstd_zipped(sample()), b"[" + log(sample()) + b"]"])
def test_a_log_is_detected_read_and_written_as_it_was(raw: bytes) -> None:
    source = formats.read(raw, "in")
    assert source.format == "inspect"
    assert write(source) == raw
    told = parts(raw)
    assert [(part.kind, part.speaker) for part in told] == [
        ("text", "system"), ("text", "human"), ("text", "assistant"), ("call", "assistant"), ("result", "tool"),
        ("text", "assistant"),
    ]  # fmt: skip
    made, result = told[3:5]
    assert (made.name, made.input, result.call_id, result.text) == ("bash", {"cmd": "wc -l beds"}, "c1", "12 beds")


def test_samples_come_in_inspects_order_and_are_compacted_one_by_one(tmp_path: Path) -> None:
    long = Talk().told(garden(8))
    path = tmp_path / "log.eval"
    path.write_bytes(zipped(sample(name=10), sample(long, 2, 2), sample(long, 2)))
    before = path.read_bytes()
    done = compact("run", path, "--keep", 4)
    assert done.code == 0
    assert "inspect is only read, never written: the result is OpenAI chat messages" in done.err
    assert path.read_bytes() == before
    rows = [json.loads(line) for line in (tmp_path / "log.compacted.jsonl").read_bytes().splitlines()]
    assert [(row["id"], row["epoch"]) for row in rows] == [(2, 1), (10, 1), (2, 2)]
    assert [row["messages"][0]["content"].startswith("[compact record]") for row in rows] == [True, False, True]
    after = formats.read((tmp_path / "log.compacted.jsonl").read_bytes(), "out")
    assert (after.format, after.transcripts[0].ours) == ("openai", True)
    verified = compact("verify", tmp_path / "log.summary.json", path)
    assert verified.code == 0, verified.err


def test_a_log_is_never_replaced_and_no_list_is_called_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(zipped(sample(Talk().told(garden(8)))))
    for arguments in (["--in-place"], ["-o", tmp_path / "out.eval"]):
        assert compact("run", path, *arguments).code == 2
    assert [found.name for found in tmp_path.iterdir()] == ["log.eval"]


def test_where_nothing_is_to_be_done_the_result_is_a_list_all_the_same() -> None:
    done = compact("run", "-", stdin=zipped(sample()))
    assert done.code == 0
    assert "the result is OpenAI chat messages" in done.err
    assert [message["role"] for message in done.json["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@given(st.sampled_from([zipped(sample(), sample(name=2)), zstd_zipped(sample()), log(sample())]), st.data())
def test_damage_anywhere_is_bad_input_or_read(raw: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(raw) - 1))
    broken = raw[:at] + data.draw(st.binary(max_size=8)) + raw[at + data.draw(st.integers(0, 8)) :]
    with suppress(InputError):
        assert write(formats.read(broken, "in", "inspect")) == broken


def test_what_is_kept_is_what_the_unpacked_row_holds() -> None:
    source = formats.read(zipped(sample(Talk().told(garden(8)))), "in")
    done = pipeline.compact(source, Options(keep=Keep(4)))
    row, kept = json.loads(source.raw), json.loads(done.data)
    assert row["messages"][-3:] == kept["messages"][-3:]
    assert not pipeline.compact(formats.read(done.data, "out", "inspect"), Options(keep=Keep(4))).changed


def test_pointers_pools_reasoning_images_and_errors_are_in_their_place() -> None:
    told: list[Sample] = [
        {"role": "user", "content": [{"type": "text", "text": "attachment://aa"}, {"type": "image", "image": "tc://bb"}]},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "Hm.", "signature": "s"},
                                          {"type": "text", "text": "I look."}],
         "tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "attachment://aa"}}]},
        {"role": "tool", "content": "", "tool_call_id": "c1", "error": {"type": "timeout", "message": "too slow"}},
        {"role": "user", "content": "You may do as you like."},
        {"role": "user", "content": "Stop.", "source": "operator"},
    ]  # fmt: skip
    held = {"aa": "Count the beds.", "bb": "data:image/png;base64,AAAA"}
    found = parts(log(sample(attachments=held) | {"messages": told}))
    assert [(part.kind, part.speaker, part.text) for part in found] == [
        ("text", "human", "Count the beds."), ("media", "harness", ""), ("thinking", "assistant", "Hm."),
        ("text", "assistant", "I look."), ("call", "assistant", '{"cmd":"Count the beds."}'),
        ("result", "tool", "Error: too slow"), ("text", "harness", "You may do as you like."),
        ("text", "human", "Stop."),
    ]  # fmt: skip
    assert found[5].failed
    assert found[1].name == "image, image/png, 3 bytes"
    answer = {"choices": [{"message": {"role": "assistant", "content": "Twelve."}}]}
    pooled = {"event": "model", "input_refs": [[0, 1], [2, 3]], "output": answer}
    for pool in ({"events_data": {"messages": told, "calls": []}}, {"message_pool": told}):
        asked = parts(log(sample(attachments=held, events=[pooled], **pool) | {"messages": []}))
        assert [part.text for part in asked if part.text] == ["Count the beds.", "Error: too slow", "Twelve."]


def test_the_samples_input_is_the_users_wherever_it_stands() -> None:
    given = [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "On."},
    ]
    assert [p.speaker for p in parts(log(sample(input=given) | {"messages": given}))] == ["human", "assistant", "human"]


def test_a_sample_that_cannot_be_unpacked_is_noted_and_the_others_are_read() -> None:
    raw = zipped(sample(name="broken"), sample())
    at = raw.index(b"samples/broken") + 60
    source = formats.read(raw[:at] + bytes(8) + raw[at + 8 :], "in")
    assert [len(transcript.live) for transcript in source.transcripts] == [5, 0]
    (note,) = source.transcripts[1].notes
    assert note.text.startswith("damaged: samples/broken_epoch_1.json: can't be unpacked")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (zipped(sample(), method=zipfile.ZIP_LZMA), "method 14, neither deflate nor Zstandard"),
        (zipped(), "without samples"),
        (log(), "without samples"),
        (zipped(sample())[:-40], "cut off or damaged"),
        (log(sample()).replace(b'"epoch": 1', b'"epoch": one'), "damaged"),
        (log(sample()) + b"x", "more than JSON"),
        (zstd_zipped(sample()).replace(b"\x28\xb5\x2f\xfd", b"\0\0\0\0"), "can't be unpacked"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_cure(raw: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        formats.read(raw, "in", "inspect")


def test_another_zip_is_no_log() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(InputError, match="binary data"):
        formats.read(out.getvalue(), "in")
