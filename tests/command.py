"""Runs the command line: in this process, or in one of its own."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compactor import cli

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Done:
    """What came of a command."""

    code: int
    out: bytes
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def lines(self) -> list[str]:
        return self.err.splitlines()


def compact(*arguments: object, stdin: bytes = b"") -> Done:
    """`compact` with these arguments, in this process; an exception that would be a traceback comes through."""
    with _streams(stdin) as (out, err):
        code = cli.main([str(argument) for argument in arguments])
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(code, out.getvalue(), err.getvalue().decode())


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = io.BytesIO(), io.BytesIO()
    saved = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout = io.TextIOWrapper(out, "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved


def process(
    *arguments: object, stdin: bytes = b"", cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Done:
    """`compact` with these arguments, in a process of its own."""
    command = [sys.executable, "-m", "compactor", *(a if isinstance(a, bytes) else str(a) for a in arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, env=environment(**env or {}), check=False)
    return Done(done.returncode, done.stdout, done.stderr.decode(errors="backslashreplace"))


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, from which the package is found in any folder."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **changes}


def names(folder: Path) -> list[str]:
    """What lies in a folder, whatever the depth."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def one_line(done: Done, *words: str) -> None:
    """One line on standard error, with these words, and no traceback."""
    assert len(done.lines) == 1, done.err
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err, done.err
