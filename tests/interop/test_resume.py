"""Real clients go on from what compact writes: run by `make interop`, which installs them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from play import PROBE, PROMPTS

from compactor.transcript import BLOCK_START

ROOT = Path(__file__).parents[2]
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
    if reason := missing(client):
        pytest.skip(reason)
    command = ["unshare", "-n", sys.executable, str(Path(__file__).with_name("play.py")), client, str(tmp_path)]
    environment = {**os.environ, "INTEROP_CLIENTS": str(CLIENTS)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    check(told["first"], gone=PROMPTS[:2], kept=PROMPTS[4:])
    check(told["second"], gone=PROMPTS, kept=())
    assert "stands" in told["verified"]
    before, after = (ids(told[f"{which}_summary"]) for which in ("first", "second"))
    assert before <= after


def check(sent: dict[str, Any], gone: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """The model is sent one block, the tail in order behind it, and nothing of the head, in one request."""
    assert sent["requests"] == 1
    texts = sent["texts"]
    (block,) = [at for at, text in enumerate(texts) if BLOCK_START in text]
    assert texts[block].count(BLOCK_START) == 1
    places = [
        next(at for at, text in enumerate(texts) if prompt in text.split("[end of compact record]")[-1])
        for prompt in kept
    ]
    assert places == sorted(places)
    assert all(at >= block for at in places)
    outside = [text.split(BLOCK_START)[0] + text.split("[end of compact record]")[-1] for text in texts]
    assert not [prompt for prompt in gone if any(prompt in text for text in outside)]
    assert any(PROBE in text for text in texts[block:])


def ids(summary: dict[str, Any]) -> set[str]:
    return {item["id"] for items in summary["snapshot"].values() if isinstance(items, list) for item in items}
