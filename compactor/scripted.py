"""A script of replies as a model: what it answers stands in a file."""

import json
from threading import Lock
from typing import Any

from compactor.errors import InputError, ModelError, TooLongError
from compactor.exchange import Reply, Request, Usage
from compactor.files import read_input

COUNTS = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost")


class Scripted:
    """Gives the replies that a file of JSON lines holds, one after the other.

    A line is the text as a JSON string, an object `{content, finish_reason, refusal, usage}`, a failure
    `{error, status}`, or any other object, which is itself the text.
    """

    def __init__(self, path: str) -> None:
        self.name = f"scripted:{path}"
        data, _ = read_input(path)
        lines = enumerate(data.split(b"\n"), 1)
        self._replies = [_reply(line, f"{path}:{number}") for number, line in lines if line.strip()]
        self._given = 0
        self._lock = Lock()

    def complete(self, request: Request) -> Reply:
        """The next reply of the script, whatever was asked."""
        with self._lock:
            number, self._given = self._given, self._given + 1
        if number >= len(self._replies):
            message = f"{self.name}: reply {number + 1} is asked for, the file holds {len(self._replies)}; add a line"
            raise ModelError(message)
        reply = self._replies[number]
        if isinstance(reply, ModelError):
            raise reply
        return reply

    def accepted(self, request: Request) -> None:
        """Nothing is kept."""


def _reply(line: bytes, place: str) -> Reply | ModelError:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _bad(place, f"not JSON ({error})") from None
    if isinstance(value, str):
        return Reply(value, usage=Usage(calls=1))
    if not isinstance(value, dict):
        raise _bad(place, "neither a string nor an object")
    if "error" in value:
        failed = TooLongError if value.get("status") == 413 else ModelError
        return failed(f"{place}: {value['error']}; as the script says")
    if not value.keys() & {"content", "finish_reason", "refusal", "usage"}:
        return Reply(line.decode("utf-8").strip(), usage=Usage(calls=1))
    given = (value.get(name) for name in ("content", "finish_reason", "refusal"))
    words = ["" if word is None else word for word in given]
    if not all(isinstance(word, str) for word in words):
        raise _bad(place, "content, finish_reason and refusal are strings")
    text, finish, refusal = words
    return Reply(text, finish or "stop", refusal, usage=_usage(value.get("usage") or {}, place))


def _usage(usage: Any, place: str) -> Usage:
    try:
        tokens_in, cached, tokens_out, cost = (usage.get(name, 0) for name in COUNTS)
        if min(tokens_in, cached, tokens_out, cost) < 0:
            raise ValueError
        return Usage(1, int(tokens_in), int(cached), int(tokens_out), float(cost))
    except (AttributeError, TypeError, ValueError):
        raise _bad(place, f"usage holds numbers: {', '.join(COUNTS)}") from None


def _bad(place: str, what: str) -> InputError:
    return InputError(f"{place}: {what}; write each reply on one line, as a JSON string or an object")
