"""Real clients go on from what compact writes: run by `make interop`, which installs them."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from play import PROBE, PROMPTS

from compactor import formats
from compactor.errors import InputError
from compactor.transcript import BLOCK_START, Transcript

ROOT = Path(__file__).parents[2]
SESSIONS = os.environ.get("COMPACT_TEST_SESSIONS", "")
FORMAT = {"claude": "claude-code", "codex": "codex", "pi": "pi"}
LONGEST = 4
"""How many of the longest sessions a client is given."""
CLIENTS = Path(os.environ.get("INTEROP_CLIENTS", ROOT / ".interop"))
pytestmark = pytest.mark.interop


def missing(client: str) -> str:
    """Why a client can't be tried here; empty where it can."""
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode
    ):
        return "no network namespace can be made here (unshare -n)"
    if not (CLIENTS / "node_modules/.bin" / client).exists():
        return f"{client} isn't installed in {CLIENTS.name}; `make interop` does that where there is npm"
    return ""


@pytest.mark.parametrize("client", ["claude", "codex", "pi", "gemini", "opencode"])
def test_the_client_goes_on_from_the_block_and_from_the_next_one(client: str, tmp_path: Path) -> None:
    told = play(client, tmp_path)
    check(told["first"], gone=PROMPTS[:2], kept=PROMPTS[4:])
    check(told["second"], gone=PROMPTS, kept=())
    check_folded(told)


@pytest.mark.parametrize("client", ["claude", "codex", "pi"])
@pytest.mark.parametrize("place", range(LONGEST))
def test_the_client_goes_on_from_a_long_session_of_somebody_elses(client: str, place: int, tmp_path: Path) -> None:
    sessions = longest(client)
    if place >= len(sessions):
        pytest.skip(f"COMPACT_TEST_SESSIONS holds {len(sessions)} whole sessions of {client}")
    told = play(client, tmp_path, sessions[place])
    before, after = (formats.read((tmp_path / f"{name}.jsonl").read_bytes(), name) for name in ("first", "first.c"))
    kept = lines(after.transcripts[0], after.transcripts[0].first)
    gone = [line for line in lines(before.transcripts[0], before.transcripts[0].first) if line not in str(kept)]
    assert len(gone) > len(kept)
    check(told["first"], gone=tuple(gone), kept=tuple(kept))
    check(told["second"], gone=tuple(kept), kept=())
    check_folded(told)


def play(client: str, folder: Path, *session: Path) -> dict[str, Any]:
    """What the client's model was sent, as play.py tells it."""
    if reason := missing(client):
        pytest.skip(reason)
    words = [sys.executable, str(Path(__file__).with_name("play.py")), client, str(folder), *map(str, session)]
    environment = {**os.environ, "INTEROP_CLIENTS": str(CLIENTS)}
    done = subprocess.run(["unshare", "-n", *words], cwd=ROOT, env=environment, capture_output=True, text=True,
                          timeout=900, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@cache
def longest(client: str) -> list[Path]:
    """The longest sessions of a client under the folder of sessions, told by their content."""
    found = sorted(Path(SESSIONS).rglob("*.jsonl")) if SESSIONS else []
    by_size = sorted(found, key=lambda path: path.stat().st_size, reverse=True)
    return list(islice((path for path in by_size if _messages(path, FORMAT[client]) > 30), LONGEST))


def _messages(path: Path, format: str) -> int:
    raw = path.read_bytes()
    try:
        if formats.detect(raw, path.name).name != format:
            return 0
        return len(formats.read(raw, path.name).transcripts[0].live)
    except InputError:
        return 0


def lines(transcript: Transcript, first: int) -> list[str]:
    """The longest line of every text that a user or the assistant said, from a place in the conversation on."""
    said = [part for index in transcript.live[first:] for part in transcript.entries[index].parts]
    texts = [part.text for part in said if part.kind == "text" and part.speaker in ("user", "assistant")]
    return [line[:120] for text in texts if len(line := max(text.splitlines(), key=len, default="").strip()) >= 30]


def check(sent: dict[str, Any], gone: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """The model is sent one block, the tail in order behind it, and nothing of the head, in one request."""
    assert sent["requests"] == 1
    texts = sent["texts"]
    (block,) = [at for at, text in enumerate(texts) if BLOCK_START in text]
    assert texts[block].count(BLOCK_START) == 1
    after = [text.split("[end of compact record]")[-1] for text in texts]
    assert not [prompt for prompt in kept if not any(prompt in text for text in after)]
    places = [next(at for at, text in enumerate(after) if prompt in text) for prompt in kept]
    assert places == sorted(places)
    assert all(at >= block for at in places)
    outside = [text.split(BLOCK_START)[0] + text.split("[end of compact record]")[-1] for text in texts]
    assert not [prompt for prompt in gone if any(prompt in text for text in outside)]
    assert any(PROBE in text for text in texts[block:])


def ids(summary: dict[str, Any]) -> set[str]:
    return {item["id"] for items in summary["snapshot"].values() if isinstance(items, list) for item in items}


def check_folded(told: dict[str, Any]) -> None:
    """The second snapshot holds the first one's items, and stands against the evidence of both generations."""
    assert "stands" in told["verified"]
    before, after = (ids(told[f"{which}_summary"]) for which in ("first", "second"))
    assert before <= after
