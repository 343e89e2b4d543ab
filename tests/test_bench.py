"""The measuring programs give what they say, on a session at hand."""

import json
import subprocess
import sys
from pathlib import Path

from command import compact

ROOT = Path(__file__).parent.parent
SESSION = ROOT / "fixtures" / "claude-code" / "orders.jsonl"


def bench(module: str, *arguments: object) -> str:
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_precision_counts_what_the_session_holds() -> None:
    (count,) = json.loads(bench("precision", SESSION, "--json"))
    assert count["told"] >= 5
    assert (count["strange"], count["lost"]) == ([], 0)
    assert "precision 1.0000" in bench("precision", SESSION)


def test_precision_sees_an_identifier_that_was_made_up(tmp_path: Path) -> None:
    path = tmp_path / "x.summary.json"
    assert compact("run", SESSION, "-o", tmp_path / "x.jsonl", "--summary", path).code == 0
    document = json.loads(path.read_bytes())
    document["snapshot"]["objective"][0]["text"] += " It is in orders/models_7f3a.py"
    path.write_text(json.dumps(document))
    _, count = json.loads(bench("precision", SESSION, path, "--json"))
    assert count["strange"] == ["orders/models_7f3a.py"]


def test_checks_are_timed_beside_the_run() -> None:
    told = json.loads(bench("checks", SESSION))
    assert 0 < told["checks_s"] < told["run_s"]
    assert told["share"] == told["checks_s"] / told["run_s"]
