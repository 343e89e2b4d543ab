"""Real sessions that nobody here wrote, where COMPACT_TEST_SESSIONS names their folder."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from compactor import formats, pipeline
from compactor.errors import InputError
from compactor.pipeline import Options, Outcome
from compactor.transcript import Source, write

FOLDER = os.environ.get("COMPACT_TEST_SESSIONS", "")
needs_sessions = pytest.mark.skipif(
    not Path(FOLDER or "/none").is_dir(), reason="COMPACT_TEST_SESSIONS names no folder of sessions"
)


@cache
def claude_files() -> list[Path]:
    """Every file of Claude Code's under the folder, told by its content."""
    paths = sorted(Path(FOLDER).rglob("*.jsonl")) if FOLDER else []
    return [path for path in paths if _format(path) == "claude-code"]


def _format(path: Path) -> str:
    try:
        return formats.detect(path.read_bytes(), path.name).name
    except InputError:
        return ""


@cache
def other_files() -> list[Path]:
    """Every further file in which some format is found."""
    paths = sorted(path for path in Path(FOLDER).rglob("*") if path.is_file()) if FOLDER else []
    return [path for path in paths if _format(path) not in ("", "claude-code", "empty") and path not in tau_files()]


def tau_files() -> list[Path]:
    return sorted(Path(FOLDER, "real/tau-bench").glob("*.json*")) if FOLDER else []


NO_TRANSCRIPTS = ("fixtures/llm_data/README.md", "Conversations/error_missing_required_field/request.json")
"""Files in which something like a message stands, and no conversation."""


def short(path: Path) -> str:
    return "/".join(path.parts[-3:])


def check(source: Source, positions: list[int], options: Options) -> Iterator[Outcome]:
    """Compact, then hold the result to what the issue asks of every session."""
    done = pipeline.compact(source, options, positions)
    assert not done.refused, [outcome.reason for outcome in done.outcomes if outcome.refused]
    assert write(source) == (source.original or source.raw)
    for outcome in done.outcomes:
        assert not outcome.verdict.errors
        if outcome.plan.sizes.head > 2_000:
            assert outcome.changed, outcome.reason
            assert outcome.tokens_after < outcome.plan.sizes.total
    if done.changed:
        again = formats.read(done.data, source.name, source.format)
        assert write(again) == done.data
        twice = pipeline.compact(again, options, [o.plan.position for o in done.outcomes if o.changed])
        assert not twice.changed, "compacting the output changed it"
        for outcome in twice.outcomes:
            transcript = again.transcripts[outcome.plan.position]
            assert transcript.ours
            assert not outcome.refused
    yield from done.outcomes


@needs_sessions
@pytest.mark.parametrize("path", claude_files(), ids=short)
def test_claude_code_sessions(path: Path) -> None:
    source = formats.read(path.read_bytes(), path.name)
    for _ in check(source, list(range(len(source.transcripts))), Options()):
        pass


@needs_sessions
@pytest.mark.parametrize("path", other_files(), ids=short)
def test_sessions_of_every_other_format(path: Path) -> None:
    if short(path) in NO_TRANSCRIPTS:
        with pytest.raises(InputError):
            formats.read(path.read_bytes(), path.name)
        return
    source = formats.read(path.read_bytes(), path.name)
    for _ in check(source, list(range(min(len(source.transcripts), 20))), Options()):
        pass


@needs_sessions
@pytest.mark.parametrize("path", tau_files(), ids=short)
def test_tau_bench_conversations(path: Path) -> None:
    source = formats.read(path.read_bytes(), path.name)
    outcomes = list(check(source, list(range(len(source.transcripts))), Options()))
    assert outcomes


@needs_sessions
def test_there_are_sessions_to_look_at() -> None:
    assert len(claude_files()) > 30
    assert len(tau_files()) > 5
