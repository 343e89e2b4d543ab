"""Imports point down only, and the pure core touches nothing outside it."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "compactor"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli", "awaited"),
    ("table",),
    ("job", "recheck", "schema", "api"),
    ("foreign",),
    ("summary", "asking"),
    ("pipeline",),
    ("summarize",),
    ("desk",),
    ("files", "terminal", "clients", "tokens", "catalog", "model", "scripted", "command", "failures", "replies"),
    (
        "split", "words", "identifiers", "ledger", "candidates", "choose", "offline", "fold", "render", "budget",
        "evidence", "verify", "repair", "trigger", "formats", "convert", "overview", "spoken",
        "leaks", "redact", "shorten", "language", "head", "windows", "hints", "prompt", "reply", "ground",
    ),
    ("errors", "transcript", "snapshot", "tools", "exchange"),
)  # fmt: skip
"""From the command line down; a module imports from its own layer and those below. A new module needs a place here.

`tokens` and `catalog` read files of litellm's wheel.
"""

RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
PURE = (*LAYERS[10], *LAYERS[11], "pipeline")
BELOW_FORMATS = {"errors", "transcript", "tools", "formats"}
OUTSIDE = {
    "os", "sys", "pathlib", "time", "random", "socket", "subprocess", "logging", "shutil", "tempfile", "io", "glob",
    "secrets", "threading", "asyncio", "urllib", "http", "requests", "httpx", "getpass", "locale", "platform",
    "signal", "atexit", "typer", "rich", "litellm", "tiktoken",
}  # fmt: skip
"""Disk, network, clock, chance, environment, terminal."""
INSIDE = {"io.BytesIO", "pathlib.PurePosixPath", "pathlib.PureWindowsPath"}
"""What of them touches nothing: bytes in memory, which zipfile wants as a file; paths that are only read as text."""
TALKS = {"print", "open", "input", "breakpoint", "exec", "eval", "__import__"}

PATHS = sorted(ROOT.rglob("*.py"))


def name_of(path: Path) -> str:
    """`formats` for any module in that folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported, wherever the import stands, as a dotted name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def own(tree: ast.AST) -> set[str]:
    """The modules of ours that are imported; the package itself only offers its version."""
    dotted = [name.split(".") for name in imported(tree)]
    return {name[1] for name in dotted if name[0] == "compactor" and name[1:] != ["__version__"]}


def tree_of(path: Path) -> ast.AST:
    return ast.parse(path.read_bytes())


def test_every_module_has_its_layer() -> None:
    assert {name_of(path) for path in PATHS} - {"__init__"} == set(RANK)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    name = name_of(path)
    if name != "__init__":
        assert {other for other in own(tree_of(path)) if RANK[other] < RANK[name]} == set()


def test_no_imports_go_round_in_a_circle() -> None:
    graph: dict[str, set[str]] = {name: set() for name in RANK}
    for path in PATHS:
        if name_of(path) != "__init__":
            graph[name_of(path)] |= own(tree_of(path)) - {name_of(path)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports go round: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("path", [path for path in PATHS if name_of(path) == "formats"], ids=lambda path: path.name)
def test_a_format_knows_only_what_lies_below_it(path: Path) -> None:
    assert own(tree_of(path)) <= BELOW_FORMATS


@pytest.mark.parametrize(
    "path", [path for path in PATHS if name_of(path) in PURE], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_pure_core_touches_nothing_outside(path: Path) -> None:
    tree = tree_of(path)
    assert {name.split(".")[0] for name in {*imported(tree)} - INSIDE} & OUTSIDE == set()
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called & TALKS == set()


@pytest.mark.parametrize("heavy", ["litellm", "tiktoken", "typer", "rich"])
def test_heavy_libraries_are_imported_where_they_are_used(heavy: str) -> None:
    for path in PATHS:
        top = [node for node in tree_of(path).body if isinstance(node, ast.Import | ast.ImportFrom)]  # type: ignore[attr-defined]
        found = {name.split(".")[0] for node in top for name in imported(node)}
        assert heavy not in found or (heavy, name_of(path)) in {("typer", "cli"), ("rich", "table")}, path


def test_the_walker_sees_imports_inside_functions() -> None:
    code = """
def f():
    from compactor import job, __version__
    import os.path
    from compactor.formats.lines import parse
"""
    assert set(imported(ast.parse(code))) == {
        "compactor.job",
        "compactor.__version__",
        "os.path",
        "compactor.formats.lines.parse",
    }
    assert own(ast.parse(code)) == {"job", "formats"}
