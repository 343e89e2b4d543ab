"""README's commands run, in its order, in a checkout where `make install` has been."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, environment


def commands() -> list[str]:
    """What stands behind `$ ` in the README's console blocks; a line that ends in a backslash goes on."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "fixtures", tmp_path / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    bin = tmp_path / ".venv/bin"
    bin.mkdir(parents=True)
    for name, module in (("compact", "-m compactor"), ("python", "")):
        (bin / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (bin / name).chmod(0o755)
    for stamp in (".installed", ".test", ".dev"):
        (tmp_path / ".venv" / stamp).touch()
    return tmp_path


def test_every_command_of_the_readme_runs(checkout: Path) -> None:
    found = commands()
    assert any(" run " in command for command in found)
    env = environment(PATH=f"{checkout}/.venv/bin:{environment()['PATH']}")
    for command in found:
        done = subprocess.run(command, shell=True, cwd=checkout, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
    for copy in (checkout / "fixtures").rglob("*.json*"):
        original = ROOT / copy.relative_to(checkout)
        assert not original.exists() or copy.read_bytes() == original.read_bytes()


def test_the_readme_names_every_exit_code() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for code in (0, 1, 2, 3, 4, 5, 130):
        assert re.search(rf"^\| `?{code}`? \|", text, re.MULTILINE), code
