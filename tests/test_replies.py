"""The reply log: what was paid for is kept, and what was good is given again."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactor.errors import ModelError
from compactor.exchange import Reply, Request, Usage
from compactor.replies import Logged

ASKED = Request(({"role": "user", "content": "What now?"},), max_tokens=50)
PAID = Usage(1, 100, 80, 20, 0.25, 1.5)


class Recorded:
    """A model that gives these replies, and counts."""

    def __init__(self, *replies: Reply | ModelError, name: str = "a/model") -> None:
        self.name = name
        self.replies = list(replies)
        self.asked: list[Request] = []
        self.told: list[Request] = []

    def complete(self, request: Request) -> Reply:
        self.asked.append(request)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, ModelError):
            raise reply
        return reply

    def accepted(self, request: Request) -> None:
        self.told.append(request)


def lines(folder: Path) -> list[Mapping[str, Any]]:
    """All that the log holds."""
    texts = [text for path in sorted(folder.rglob("*.jsonl")) for text in path.read_text().splitlines()]
    return [json.loads(text) for text in texts if text]


texts = st.text(st.characters(), max_size=50)  # with halves of surrogate pairs


@given(texts, st.sampled_from(["stop", "length"]), texts, st.booleans(), texts)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_log_gives_back_exactly_what_was_accepted(
    tmp_path_factory: pytest.TempPathFactory, text: str, finish: str, refusal: str, reasoning: bool, prompt: str
) -> None:
    folder = tmp_path_factory.mktemp("log")
    asked = Request(({"role": "user", "content": prompt},), 50)
    said = Reply(text, finish, refusal, reasoning, PAID, ("waited",))
    first = Logged(Recorded(Reply("no good"), said), folder)
    assert first.complete(asked).text == "no good"
    assert first.complete(asked) == said
    first.accepted(asked)
    silent = Recorded()
    again = Logged(silent, folder).complete(asked)
    assert again == Reply(text, finish, refusal, reasoning, Usage(reused=1, cost=0.0))
    assert silent.asked == []


def test_what_is_logged(tmp_path: Path) -> None:
    model = Recorded(Reply("x", "length", "no", reasoning=True, usage=PAID))
    logged = Logged(model, tmp_path)
    assert logged.name == "a/model"
    logged.complete(ASKED)
    (line,) = lines(tmp_path)
    assert {name: line[name] for name in ("model", "text", "finish", "refusal", "reasoning", "ok")} == {
        "model": "a/model", "text": "x", "finish": "length", "refusal": "no", "reasoning": True, "ok": False,
    }  # fmt: skip
    assert line["usage"] == {
        "calls": 1, "tokens_in": 100, "cached": 80, "tokens_out": 20, "cost": 0.25, "seconds": 1.5, "reused": 0,
        "about": False,
    }  # fmt: skip
    assert line["time"].endswith("+00:00")
    logged.accepted(ASKED)
    assert lines(tmp_path)[1]["ok"] is True
    assert model.told == [ASKED]
    logged.accepted(ASKED)
    assert len(lines(tmp_path)) == 2


def test_only_an_accepted_reply_is_given_again(tmp_path: Path) -> None:
    model = Recorded(Reply("one"), Reply("two"), Reply("three"))
    logged = Logged(model, tmp_path)
    assert [logged.complete(ASKED).text, logged.complete(ASKED).text] == ["one", "two"]
    logged.accepted(ASKED)
    assert [logged.complete(ASKED).text, logged.complete(ASKED).text] == ["two", "two"]
    logged.accepted(ASKED)
    assert len(model.asked) == 2


def test_another_request_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_BASE", raising=False)
    first = Logged(Recorded(Reply("x")), tmp_path)
    first.complete(ASKED)
    first.accepted(ASKED)
    others = [
        Request(({"role": "user", "content": "What then?"},), 50),
        Request(ASKED.messages, 51),
        Request(ASKED.messages, 50, schema={"type": "object"}),
        Request(ASKED.messages, 50, tools=({"type": "function"},)),
    ]
    model = Recorded(Reply("asked"))
    logged = Logged(model, tmp_path)
    assert [logged.complete(other).text for other in others] == ["asked"] * 4
    assert Logged(Recorded(Reply("asked"), name="b/model"), tmp_path).complete(ASKED).text == "asked"
    assert Logged(model, tmp_path, {"effort": "high"}).complete(ASKED).text == "asked"
    assert logged.complete(Request(ASKED.messages, 50, tokens=7)).text == "x"
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:1/v1")
    assert Logged(model, tmp_path).complete(ASKED).text == "asked"


def test_a_failure_is_logged_and_asked_again(tmp_path: Path) -> None:
    logged = Logged(Recorded(ModelError("no luck"), Reply("x")), tmp_path)
    with pytest.raises(ModelError, match="no luck"):
        logged.complete(ASKED)
    logged.accepted(ASKED)
    assert logged.complete(ASKED).text == "x"
    assert [(line.get("error"), line.get("text")) for line in lines(tmp_path)] == [("no luck", None), (None, "x")]


@pytest.mark.skipif(os.name == "nt", reason="has no such modes")
def test_nobody_else_reads_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "replies"
    Logged(Recorded(Reply("x")), folder).complete(ASKED)
    (path,) = folder.rglob("*.jsonl")
    assert [stat.S_IMODE(place.stat().st_mode) for place in (folder, path.parent, path)] == [0o700, 0o700, 0o600]
    assert path.parent.name == path.name[:2]
    assert len(path.stem) == 64


def test_the_log_lies_with_the_users_state(isolated: Path) -> None:
    Logged(Recorded(Reply("x")), None).complete(ASKED)
    (path,) = isolated.rglob("*.jsonl")
    assert path.parent.parent.name == "replies"
    assert "compact" in str(path)


@pytest.mark.parametrize(
    "damage", [b'{"id": "half', b"\xff\xfe\x00", b"[1]\n", b'{"ok": true, "id": []}', b"[" * 10**5]
)
def test_a_damaged_line_is_ignored(tmp_path: Path, damage: bytes) -> None:
    logged = Logged(Recorded(Reply("one"), Reply("two")), tmp_path)
    logged.complete(ASKED)
    (path,) = tmp_path.rglob("*.jsonl")
    with path.open("ab") as file:
        file.write(damage)
    assert logged.complete(ASKED).text == "two"
    logged.accepted(ASKED)
    assert Logged(Recorded(), tmp_path).complete(ASKED).text == "two"


def test_a_reply_that_is_half_there_is_asked_anew(tmp_path: Path) -> None:
    logged = Logged(Recorded(Reply("one"), Reply("two")), tmp_path)
    logged.complete(ASKED)
    logged.accepted(ASKED)
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"text": "one"', b'"text": 1'))
    assert logged.complete(ASKED).text == "two"


def test_a_log_that_cannot_be_written_loses_no_reply(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    logged = Logged(Recorded(Reply("x", notes=("before",))), tmp_path / "file")
    reply = logged.complete(ASKED)
    assert reply.text == "x"
    assert reply.notes[0] == "before"
    assert "the reply couldn't be logged (" in reply.notes[1]
    logged.accepted(ASKED)


def test_a_failure_that_cannot_be_logged_is_still_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="no luck"):
        Logged(Recorded(ModelError("no luck")), tmp_path / "file").complete(ASKED)


FULL = """
import resource, signal, sys
from pathlib import Path
from compactor.replies import Logged
from test_replies import ASKED, Recorded, Reply
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
reply = Logged(Recorded(Reply("x" * 5000)), Path(sys.argv[1])).complete(ASKED)
print(len(reply.text), *reply.notes)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="files have no limit here")
def test_a_full_disk(tmp_path: Path) -> None:
    """A limit on the size of files stands for it, in a process of its own."""
    here = Path(__file__).parent
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(here.parent), str(here)))}
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert said.startswith("5000 the reply couldn't be logged (only a part could be written: ")
    assert Logged(Recorded(Reply("anew")), tmp_path).complete(ASKED).text == "anew"


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed here")
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    logged = Logged(Recorded(Reply("x")), tmp_path / "log")
    logged.complete(ASKED)
    logged.accepted(ASKED)
    (path,) = (tmp_path / "log").rglob("*.jsonl")
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    reply = Logged(Recorded(Reply("asked")), tmp_path / "log").complete(ASKED)
    assert reply.text == "asked"
    assert "couldn't be logged" in reply.notes[0]
    assert elsewhere.read_bytes() == before


def test_threads_write_whole_lines(tmp_path: Path) -> None:
    logged = Logged(Recorded(Reply("x" * 100_000)), tmp_path)
    threads = [threading.Thread(target=logged.complete, args=(ASKED,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(line["text"]) for line in lines(tmp_path)] == [100_000] * 8
