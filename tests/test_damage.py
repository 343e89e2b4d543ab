"""Each damage that files suffer, in each format: read byte for byte and kept, or refused on one line with a cure."""

import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from build import FORMS, LISTED, Form, Talk, line, records, whole
from talks import garden

from compactor import formats, pipeline
from compactor.errors import InputError
from compactor.pipeline import Options
from compactor.split import Keep
from compactor.transcript import Source, write

Record = dict[str, Any]
ALL: tuple[Form, ...] = (*FORMS, *LISTED)
TALK = Talk().told(garden(9))
LINKS = ("parentUuid", "parentId", "parentID", "cause")
IDS = ("uuid", "id")
VERSIONS = ("version", "cli_version", "schema_version", "trajectory_format", "protocol_version")
HEADED: tuple[Form, ...] = ("codex", "pi", "gemini", "copilot", "kimi")
"""The formats whose first record isn't a message."""


def stored(form: Form, held: list[Record], indent: int | None = 1) -> bytes:
    value = {"id": 1, "conversations": held, "tools": "[]"} if form == "sharegpt" else whole(form, held)
    if value is not None:
        return json.dumps(value, indent=indent).encode()
    return b"".join(json.dumps(record, indent=2).encode() + b"\n" for record in held) if indent == 2 else (
        b"".join(map(line, held)))  # fmt: skip


def pieces(form: Form) -> list[Record]:
    """What is damaged: the records, or the turns of the one row."""
    held = records(form, TALK)
    return list(held[0]["conversations"]) if form == "sharegpt" else held


def _holding(record: Record) -> Record:
    """Where a record keeps its ids: itself, or its `info`."""
    info = record.get("info")
    return info if isinstance(info, dict) else record


def _versions(form: Form, held: list[Record]) -> bytes:
    """Every version that is told is one that nobody knows."""
    text = stored(form, held).decode()
    for key in VERSIONS:
        for old, new in (('"ATIF-v1.5"', '"ATIF-v97.3"'), ('"mini-swe-agent-1.1"', '"mini-swe-agent-97.3"')):
            text = text.replace(old, new)
        for old in ("1", "3", '"1.4"', '"0.150.0"'):
            for colon in (":", ": "):
                text = text.replace(f'"{key}"{colon}{old}', f'"{key}"{colon}{"97" if old.isdigit() else repr("97.3")}')
    return text.replace("'97.3'", '"97.3"').encode()


def _links(held: list[Record], parent: Callable[[int, list[Record]], Any]) -> list[Record]:
    """Records of which some name another parent."""
    changed = json.loads(json.dumps(held))
    for at, record in enumerate(changed):
        place = _holding(record)
        for key in LINKS:
            if key in place and (told := parent(at, changed)) is not None:
                place[key] = told
    return list(changed)


def _id(record: Record) -> Any:
    return next((_holding(record)[key] for key in IDS if key in _holding(record)), "none")


def _doubled(held: list[Record]) -> list[Record]:
    return [*held[:9], *held[3:9], *held[9:]]


def _rewritten(held: list[Record]) -> list[Record]:
    """A message is written once more under its id, with another text."""
    again = json.loads(json.dumps(held[6]).replace("bed", "pond"))
    return [*held[:12], again, *held[12:]]


def _out_of_order(held: list[Record]) -> list[Record]:
    jumbled = list(held)
    for one, other in ((4, 9), (12, 20), (-2, -5), (-1, -3)):
        jumbled[one], jumbled[other] = jumbled[other], jumbled[one]
    return jumbled


DAMAGE: dict[str, Callable[[Form, list[Record]], bytes]] = {
    "none": stored,
    "wrong version": _versions,
    "missing header": lambda form, held: stored(form, held[1:]),
    "torn last line": lambda form, held: stored(form, held)[:-25],
    "torn in the middle": lambda form, held: stored(form, held).replace(b"bed 3", b'bed 3\n"torn', 1),
    "crlf": lambda form, held: stored(form, held).replace(b"\n", b"\r\n"),
    "byte order mark": lambda form, held: b"\xef\xbb\xbf" + stored(form, held),
    "mid-session chunk": lambda form, held: stored(form, held[7:]),
    "chunk that begins with a result": lambda form, held: stored(form, held[_first_result(form, held) :]),
    "pretty-printed": lambda form, held: stored(form, held, 2),
    "one line": lambda form, held: stored(form, held, None),
    "out of order": lambda form, held: stored(form, _out_of_order(held)),
    "dangling parents": lambda form, held: stored(form, _links(held, lambda at, _: "gone" if at % 7 == 5 else None)),
    "a circle": lambda form, held: stored(form, _links(held, lambda at, all: _id(all[-4]) if at == 5 else None)),
    "each its own parent": lambda form, held: stored(form, _links(held, lambda at, all: _id(all[at]))),
    "duplicate records": lambda form, held: stored(form, _doubled(held)),
    "all of it twice": lambda form, held: stored(form, [*held, *held]),
    "one id for all": lambda form, held: stored(form, _one_id(held)),
    "last write wins": lambda form, held: stored(form, _rewritten(held)),
    "a foreign record": lambda form, held: stored(form, [*held[:8], {"x": 1}, *held[8:]]),
    "blank lines": lambda form, held: stored(form, held).replace(b"\n", b"\n\n"),
    "a line that is no record": lambda form, held: b"Killed\n".join(_halves(stored(form, held))),
    "half a surrogate pair": lambda form, held: stored(form, held).replace(b"bed 3", b"bed \\ud83d 3"),
    "NUL bytes behind": lambda form, held: stored(form, held) + bytes(300),
}


def _halves(raw: bytes) -> tuple[bytes, bytes]:
    """The bytes before and after a line end near the end of the file."""
    at = raw.rindex(b"\n", 0, len(raw) - 400) + 1
    return raw[:at], raw[at:]


REFUSED = frozenset(DAMAGE) - {"none", "crlf", "byte order mark", "one line", "pretty-printed", "half a surrogate pair"}
"""Where a format may say that it can't be read; the others must be."""


def _first_result(form: Form, held: list[Record]) -> int:
    return next((at for at, record in enumerate(held) if at > 3 and "call" in json.dumps(record)), 3) + 1


def _one_id(held: list[Record]) -> list[Record]:
    changed = json.loads(json.dumps(held))
    for record, name in zip(changed, cycle(("same",)), strict=False):
        place = _holding(record)
        for key in IDS:
            if isinstance(place.get(key), str):
                place[key] = name
    return list(changed)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("form", ALL)
def test_damage_is_kept_or_refused(form: Form, damage: str) -> None:
    raw = DAMAGE[damage](form, pieces(form))
    for said in (None, form):
        try:
            source = formats.read(raw, "x.jsonl", said)
        except InputError as error:
            refused(str(error))
            assert damage in REFUSED
            continue
        assert write(source) == raw
        if said:
            assert source.format == form
            kept(source)


def refused(text: str) -> None:
    """One line that names the file and what to do."""
    assert text.startswith("x.jsonl")
    assert "\n" not in text
    assert any(cure in text for cure in ("--format", "give", "save", "use a backup", "must be", "run")), text


def kept(source: Source) -> None:
    """The parts are the live conversation, the tail is what it was, and what is made of it reads back."""
    done = pipeline.compact(source, Options(Keep(5), max_summary=900))
    for outcome in done.outcomes:
        assert not outcome.refused, outcome.reason
        assert outcome.changed or outcome.reason
        if not outcome.changed:
            continue
        before = outcome.plan.transcript
        assert outcome.plan.cut
        after = formats.read(done.data, "x.jsonl", source.format).transcripts[outcome.plan.position]
        assert after.ours
        assert after.entries[after.live[after.fixed]].text == outcome.block
        tail = [before.entries[i] for i in before.live[outcome.plan.cut.at :] if i not in outcome.gone]
        new = [after.entries[i] for i in after.live[after.first :]]
        same = formats.FORMATS[source.format].same
        for old, now in zip(tail, new, strict=True):
            assert old.index in outcome.repaired or same(old, now)
        hurt = [e for e in before.entries if e.damage and e.raw.strip() and tail and e.index > tail[0].index]
        for entry in hurt:
            assert entry.raw.strip() in done.data
    if done.changed:
        again = pipeline.compact(formats.read(done.data, "x.jsonl", source.format), Options(Keep(5), max_summary=900))
        assert not again.changed


@pytest.mark.parametrize("form", ALL)
def test_a_file_that_is_called_what_it_is_not(form: Form) -> None:
    """Read as the format that was said and kept byte for byte, or refused; never anything in between."""
    raw = TALK.raw(form)
    assert formats.read(raw, "x.csv").format == form
    for said in formats.FORMATS:
        try:
            source = formats.read(raw, "x.jsonl", said)
        except InputError as error:
            refused(str(error))
            continue
        assert write(source) == raw
        kept(source)
