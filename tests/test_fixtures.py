"""A small session of our own in every format and version, whole and cut off: detected, read back, compacted, twice."""

import re
from pathlib import Path

import pytest
from build import where

from compactor import formats, pipeline
from compactor.errors import InputError
from compactor.files import read_input
from compactor.formats import FORMATS
from compactor.pipeline import Options
from compactor.split import Keep
from compactor.transcript import Source, write

FOLDER = Path(__file__).parent.parent / "fixtures" / "formats"
WHOLE = sorted(path.name for path in FOLDER.iterdir() if path.is_file())
CUT_OFF = sorted(path.name for path in (FOLDER / "cut-off").iterdir())
VERSIONS = {"codex-flat": "codex", "codex-ordinals": "codex", "codex-cold": "codex", "claude-code-1.0": "claude-code",
            "pi-1": "pi"}  # fmt: skip
ONE_TASK = {"inspect", "swe-agent", "mini-swe-agent"}
"""In these only the first message is the user's; what follows in that role is the harness."""
RULE = "Never restart the server pots-3."
GRANT = "You may raise max_locks_per_transaction on the replica pots-4."


def format_of(name: str) -> str:
    stem = name.partition(".json")[0].removesuffix(".md")
    return VERSIONS.get(stem, stem)


def source(path: Path) -> Source:
    return formats.read(read_input(str(path))[0], path.name)


def test_every_format_has_a_session() -> None:
    assert {format_of(name) for name in WHOLE} == set(FORMATS)


@pytest.mark.parametrize("name", WHOLE)
def test_a_session_is_detected_and_compacted_such_that_it_can_be_compacted_again(name: str) -> None:
    read = source(FOLDER / name)
    assert (read.format, write(read)) == (format_of(name), read.original or read.raw)
    assert where(read, RULE)
    done = pipeline.compact(read, Options(Keep(4)))
    (outcome,) = done.outcomes
    assert outcome.changed, outcome.reason
    assert outcome.snapshot
    told = [item.text for items in (outcome.snapshot.constraints, outcome.snapshot.authority) for item in items]
    assert any(RULE in text for text in told)
    assert any(GRANT in text for text in told) is (read.format not in ONE_TASK)
    again = pipeline.compact(formats.read(done.data, name), Options(Keep(4)))
    assert [outcome.changed for outcome in again.outcomes] == [False]


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_session_that_is_cut_off_is_read_as_far_as_it_goes_or_refused_with_its_place(name: str) -> None:
    path = FOLDER / "cut-off" / name
    refused = ""
    try:
        read = source(path)
    except InputError as error:
        refused = str(error)
    if refused:
        assert re.fullmatch(rf"{re.escape(name)}.*[:;] .+", refused)
        return
    assert write(read) == (read.original or read.raw)
    done = pipeline.compact(read, Options(Keep(4)))
    assert not any(outcome.refused for outcome in done.outcomes)
