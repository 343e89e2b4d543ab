"""Packages that need more than our own Python load what compact writes; `make interop` installs them and runs this."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from generations import TURNS, generations

from compactor.transcript import BLOCK_START, is_block

HERE = Path(__file__).parent
PACKAGES = Path(os.environ.get("INTEROP_CLIENTS", HERE.parents[1] / ".interop"))
HARBOR, OPENHANDS = PACKAGES / "harbor/bin/python", PACKAGES / "openhands/bin/python"
pytestmark = pytest.mark.interop


def loaded(command: list[str], missing: str) -> list[str]:
    """What a loader prints of the messages that it found."""
    if missing:
        pytest.skip(f"{missing}; `make interop` installs it where there is one to install it with")
    settings = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told: list[str] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("generation", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("form", ["atif", "openhands-sdk", "vercel"])
def test_the_package_loads_the_block_and_the_tail_behind_it(form: str, generation: int, tmp_path: Path) -> None:
    path = tmp_path / "session"
    path.write_bytes(generations(form)[generation])
    node = shutil.which("node") or ""
    command, missing = {
        "atif": ([str(HARBOR), str(HERE / "load_harbor.py"), str(path)], "" if HARBOR.exists() else "no harbor"),
        "openhands-sdk": (
            [str(OPENHANDS), str(HERE / "load_openhands.py"), str(path)],
            "" if OPENHANDS.exists() else "no openhands-sdk",
        ),
        "vercel": (
            [node, str(HERE / "load_vercel.mjs"), str(path), str(PACKAGES)],
            "" if node and (PACKAGES / "node_modules/ai").exists() else "no node, or no package `ai`",
        ),
    }[form]
    system, block, *tail = loaded(command, missing)
    assert system == "You keep the greenhouse."
    assert is_block(block)
    assert not any(BLOCK_START in text for text in tail)
    kept = TURNS[7 if generation == 0 else 15]
    assert tail[0] in (kept.asks, "Understood. I go on from this record.")
    assert tail[-1].endswith(kept.closes)
