"""The package as it is installed: what importing and starting it costs, and what lies around it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import compactor

ROOT = Path(__file__).parent.parent
HEAVY = ("typer", "rich", "pydantic", "tiktoken", "litellm", "orjson")


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return done.stdout


def loaded_by(code: str) -> set[str]:
    told = python(f"import sys\n{code}\nprint('loaded', *sys.modules)")
    return set(told.rpartition("loaded ")[2].split())


def test_importing_loads_nothing_heavy() -> None:
    loaded = loaded_by("import compactor; dir(compactor)")
    assert not loaded & set(HEAVY)
    assert {name for name in loaded if name.startswith("compactor")} == {"compactor"}


@pytest.mark.parametrize("name", compactor.__all__)
def test_each_public_name_is_there(name: str) -> None:
    assert getattr(compactor, name) is not None
    assert name in dir(compactor)


def test_the_public_names_are_fetched_without_litellm() -> None:
    loaded = loaded_by("import compactor\nfor name in compactor.__all__: getattr(compactor, name)")
    assert "litellm" not in loaded


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = compactor.nothing  # type: ignore[attr-defined]


def test_the_version_is_told_before_anything_is_loaded() -> None:
    code = "sys.argv = ['compact', '--version']\nfrom compactor.__main__ import main\nmain()"
    assert not loaded_by(code) & {*HEAVY, "compactor.cli"}
    done = subprocess.run([sys.executable, "-m", "compactor", "--version"], capture_output=True, cwd=ROOT, check=True)
    assert (done.stdout, done.stderr) == (b"compact 0.1.0\n", b"")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version", "run"]])
def test_help_loads_only_what_it_needs(arguments: list[str]) -> None:
    code = f"""
from compactor.__main__ import main
sys.argv = ['compact', *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
    assert not loaded_by(code) & {"tiktoken", "litellm", "orjson", "compactor.pipeline"}


def test_compacting_offline_loads_no_litellm(tmp_path: Path) -> None:
    code = f"""
from compactor.__main__ import main
out, summary = {str(tmp_path / "out.jsonl")!r}, {str(tmp_path / "out.summary.json")!r}
sys.argv = ['compact', 'run', 'fixtures/claude-code/orders.jsonl', '-o', out, '--summary', summary]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
    assert not loaded_by(code) & {"litellm", "requests", "httpx"}
    assert (tmp_path / "out.jsonl").stat().st_size < (ROOT / "fixtures/claude-code/orders.jsonl").stat().st_size


def test_one_version_everywhere() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == compactor.__version__


def test_every_make_target_says_what_it_does() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert targets
    for target in targets[1].split():
        assert re.search(rf"^{target}:.* ## \w", makefile, re.MULTILINE), target


def test_the_fixtures_are_what_their_script_writes(tmp_path: Path) -> None:
    folder = ROOT / "fixtures"
    code = "import sys; sys.path.insert(0, sys.argv[1]); import make; make.HERE = make.Path(sys.argv[2]); make.main()"
    python(code, str(folder), str(tmp_path))
    made = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(made) > 20
    for name, data in made.items():
        assert (folder / name).read_bytes() == data, f"{name} is not what fixtures/make.py writes"
    assert python(code, str(folder), str(tmp_path)) == ""


def test_a_measured_session_is_the_same_again(tmp_path: Path) -> None:
    for name in "ab":
        subprocess.run([sys.executable, "-m", "bench.generate", "0.2", tmp_path / name], cwd=ROOT, check=True)
    first = (tmp_path / "a").read_bytes()
    assert first == (tmp_path / "b").read_bytes()
    assert 200_000 <= len(first) < 400_000
