"""A program as a model: the prompt on its standard input, the reply on its standard output."""

import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from tempfile import TemporaryFile
from threading import Event
from typing import IO, Any, NoReturn

from compactor.errors import ModelError, UsageError
from compactor.exchange import Reply, Request, Usage
from compactor.failures import check, masked, shortened

LARGEST_BYTES = 16 * 1024 * 1024
"""What a command may write; a reply is some thousand."""
LOOK_S = 0.05
"""How often it's looked at whether it has done so, or the user has cancelled."""


class Command:
    """Asks a program: the prompt on its standard input, the reply on its standard output.

    The command is split into words as a shell does; what needs more than that goes through one: `cmd:sh -c '...'`.
    """

    def __init__(self, command: str, timeout_s: float, cancel: Event) -> None:
        self.name = masked(f"cmd:{command}")
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            message = f"{self.name}: not to be split into words ({error}); close the quotation"
            raise UsageError(message) from None
        self._timeout_s = timeout_s
        self._cancel = cancel

    def complete(self, request: Request) -> Reply:
        """What the command prints; its cost is unknown."""
        check(self._cancel)
        started = time.monotonic()
        prompt = "\n\n".join(_spoken(message) for message in request.messages).encode("utf-8", "replace")
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:  # files: no pipe fills up
            given.write(prompt)
            given.seek(0)
            code = self._run(given, out, err)
            if code != 0:
                self._fail(f"failed with exit code {code}{_last_lines(err)}", "run it by hand to see why")
            out.seek(0)
            data = out.read()
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            self._fail(f"its output isn't UTF-8 (byte {error.start})", "have it print UTF-8")
        return Reply(text, usage=Usage(calls=1, cost=None, seconds=time.monotonic() - started))

    def accepted(self, request: Request) -> None:
        """Nothing is kept."""

    def _run(self, given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> int:
        words = [shutil.which(self._words[0]) or self._words[0], *self._words[1:]]
        try:
            process = subprocess.Popen(words, stdin=given, stdout=out, stderr=err, start_new_session=True)
        except (OSError, ValueError) as error:
            cure = (
                "is it installed, and on PATH?" if isinstance(error, FileNotFoundError) else "run it by hand to see why"
            )
            why = getattr(error, "strerror", None) or error
            self._fail(f"'{self._words[0]}' can't be run ({why})", cure)
        try:
            return self._attend(process, (out, err))
        finally:
            _end(process)

    def _attend(self, process: subprocess.Popen[bytes], written: tuple[IO[bytes], ...]) -> int:
        """Wait for the command's end, for as long as it behaves."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=LOOK_S)
            check(self._cancel)
            if max(os.fstat(file.fileno()).st_size for file in written) > LARGEST_BYTES:
                self._fail(f"ended, as it wrote more than {LARGEST_BYTES:,} bytes", "have it print the reply only")
            if time.monotonic() > deadline:
                cure = "give more time with --timeout, or ask less with --window"
                self._fail(f"no reply within {self._timeout_s:g} s", cure)

    def _fail(self, what: str, cure: str) -> NoReturn:
        message = f"{self.name}: {what}; {cure}"
        raise ModelError(message) from None


def _spoken(message: Mapping[str, Any]) -> str:
    """The text of a message."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and "text" in part)


def _end(process: subprocess.Popen[bytes]) -> None:
    """No process of the command's group is left."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


def _last_lines(err: IO[bytes]) -> str:
    err.seek(max(0, err.seek(0, os.SEEK_END) - 2000))
    lines = err.read().decode("utf-8", "replace").strip().splitlines()[-3:]
    return f": {shortened(' / '.join(lines))}" if lines else ""
