"""What models answered before: the reply log.

A reply is on the disk before anyone reads it, so that what was paid for isn't lost; one that was found good answers the
same request again, for nothing. There is one file for each request, named by its hash.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from platformdirs import user_state_path

from compactor.errors import ModelError
from compactor.exchange import Model, Reply, Request, Usage

ENDPOINTS = ("_API_BASE", "_BASE_URL")
"""How the variables end that say which server is asked: the same name at another address is another model."""
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class Logged:
    """A model whose replies are kept, and given again once they were accepted."""

    def __init__(self, model: Model, folder: Path | None = None, parameters: Mapping[str, Any] | None = None) -> None:
        """`parameters` are what else the answer hangs on."""
        self._model = model
        self._folder = folder or user_state_path("compact", appauthor=False) / "replies"
        endpoints = {name: value for name, value in os.environ.items() if name.endswith(ENDPOINTS)}
        self._parameters = {**endpoints, **(parameters or {})}
        self._given: dict[str, str] = {}
        """The id of the last reply to each request, until it's accepted."""
        self._lock = Lock()

    @property
    def name(self) -> str:
        return self._model.name

    def complete(self, request: Request) -> Reply:
        """The reply that was accepted before, else the model's answer, which is logged before it's returned.

        A log that can't be written is a note on the reply, one that can't be read is as good as none.
        """
        path = self._path(request)
        kept = _accepted(path)
        if kept is not None:
            return kept
        try:
            reply = self._model.complete(request)
        except ModelError as error:
            with suppress(OSError):
                self._append(path, {"error": str(error)})
            raise
        number = secrets.token_hex(8)
        try:
            self._append(path, {"id": number, **asdict(reply)})
        except OSError as error:
            why = f"the reply couldn't be logged ({error.strerror or error}: {path})"
            return replace(reply, notes=(*reply.notes, why))
        with self._lock:
            self._given[path.name] = number
        return reply

    def accepted(self, request: Request) -> None:
        """The last reply to this request may be given again; nothing where it came from the log, or isn't in it."""
        path = self._path(request)
        with self._lock:
            number = self._given.pop(path.name, None)
        if number is not None:
            with suppress(OSError):  # it'll be asked again then
                self._append(path, {"id": number}, ok=True)
        self._model.accepted(request)

    def _path(self, request: Request) -> Path:
        asked = {
            "model": self.name,
            "messages": request.messages,
            "max_tokens": request.max_tokens,
            "schema": request.schema,
            "tools": request.tools,
            "parameters": self._parameters,
        }
        name = hashlib.sha256(json.dumps(asked, sort_keys=True, default=dict).encode()).hexdigest()
        return self._folder / name[:2] / f"{name}.jsonl"

    def _append(self, path: Path, what: Mapping[str, Any], *, ok: bool = False) -> None:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "model": self.name, "ok": ok, **what}
        for folder in (self._folder, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_LINK, 0o600)
        try:
            # a line break before it too, for where another process died in the middle of its line
            data = f"\n{json.dumps(line)}\n".encode()
            if os.write(file, data) < len(data):
                raise OSError(None, "only a part could be written")
            os.fsync(file)
        finally:
            os.close(file)


def _accepted(path: Path) -> Reply | None:
    """The last reply in the file that was accepted."""
    replies: dict[str, Reply] = {}
    found = None
    for line in _lines(path):
        number = str(line.get("id"))
        if line.get("ok") is True:
            found = replies.get(number, found)
        elif reply := _reply(line):
            replies[number] = reply
    return found


def _reply(line: Mapping[str, Any]) -> Reply | None:
    text, finish, refusal = line.get("text"), line.get("finish"), line.get("refusal")
    if isinstance(text, str) and isinstance(finish, str) and isinstance(refusal, str):
        return Reply(text, finish, refusal, line.get("reasoning") is True, Usage(reused=1))
    return None


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """The lines that are whole; none where the file can't be read."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | NO_LINK), "rb") as file:
            data = file.read()
    except OSError:
        return
    for text in data.split(b"\n"):
        with suppress(ValueError, RecursionError):
            line = json.loads(text)
            if isinstance(line, dict):
                yield line
