import base64
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor import tokens
from compactor.tokens import BLOCK, CALL_TOKENS, FALLBACK, MEDIA_TOKENS, MESSAGE_TOKENS, counter_for
from compactor.transcript import Entry, Part


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing is cached from before, nothing stays cached after."""
    caches = (counter_for, tokens._load, tokens._intact)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


GOLDEN = {
    "": 0,
    "hello world": 2,
    "def f(x: int) -> int:\n    return x * 2\n": 16,
    "¿Dónde está la sesión?": 6,
    "不要改数据库结构": 4,
    "<|endoftext|>": 7,
    "\ud800": 1,
}


@pytest.mark.parametrize("text", GOLDEN)
def test_golden_counts(text: str) -> None:
    assert counter_for("gpt-4o").text(text) == GOLDEN[text]


@pytest.mark.parametrize(
    ("model", "name", "exact"),
    [
        ("gpt-4o", "tiktoken:o200k_base", True),
        ("openai/gpt-4.1-mini", "tiktoken:o200k_base", True),
        ("openrouter/openai/gpt-5", "tiktoken:o200k_base", True),
        ("azure/gpt-4-32k", "tiktoken:cl100k_base", True),
        ("gpt-4", "tiktoken:cl100k_base", True),
        ("gpt-oss-120b", "tiktoken:o200k_harmony", True),
        ("text-davinci-003", "tiktoken:p50k_base", True),
        ("davinci", "tiktoken:o200k_base (estimate)", False),  # its file isn't in the wheel
        ("claude-sonnet-4", "tiktoken:o200k_base (estimate)", False),
        ("gemini/gemini-2.5-pro", "tiktoken:o200k_base (estimate)", False),
        ("no-such-model", "tiktoken:o200k_base (estimate)", False),
        ("", "tiktoken:o200k_base (estimate)", False),
    ],
)
def test_counter_of_a_model(model: str, name: str, exact: bool) -> None:
    counter = counter_for(model)
    assert (counter.name, counter.exact) == (name, exact)
    assert counter.text("hello world") == 2


RANDOM = random.Random(5)
RUNS = {
    "letters": "a" * 5_000_000,
    "random letters": "".join(RANDOM.choices("abcdefghij", k=5_000_000)),
    "carets": "^" * 1_000_000,
    "spaces": " " * 5_000_000,
    "tabs before a word": "\t" * 3_000_000 + "x",
    "spaces and line ends": " \n" * 1_000_000,
    "chinese": "".join(chr(RANDOM.randrange(0x4E00, 0x9FA5)) for _ in range(1_500_000)),
    "base64": base64.b64encode(RANDOM.randbytes(3_750_000)).decode(),
    "run in text": "some words " * 10_000 + "=" * 1_000_000 + " and more" * 10_000,
}


@pytest.mark.parametrize("name", RUNS)
def test_long_runs_are_counted_fast(name: str) -> None:
    counter_for().text("warm")
    began = time.process_time()
    assert counter_for().text(RUNS[name]) > 1_000
    assert time.process_time() - began < 4  # about 1 s on an idle machine; uncut, the spaces end the process


def test_cutting_hardly_changes_the_count() -> None:
    encode = tokens._load("o200k_base").encode_ordinary
    normal = "".join(f"{n}: the value of {RANDOM.random()} was seen\n" for n in range(5_000))
    assert counter_for().text(normal) == len(encode(normal))
    run = normal + "".join(RANDOM.choices("abcdefghij", k=10 * BLOCK)) + normal
    exact = len(encode(run))
    assert abs(counter_for().text(run) - exact) <= 2 * 12


@given(st.lists(st.sampled_from(["word ", "a" * BLOCK, " " * BLOCK, "漢" * 900, "x" * 150]), max_size=12))
def test_pieces_are_the_text(chunks: list[str]) -> None:
    text = "".join(chunks)
    assert "".join(tokens._pieces(text)) == text


def test_windows_bound_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "WINDOW", 10 * BLOCK)
    text = "some words " * 30_000
    pieces = list(tokens._pieces(text))
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 11 * BLOCK


@given(st.text(st.characters(exclude_categories=())))  # lone surrogates too
def test_any_text_has_a_count(text: str) -> None:
    assert counter_for().text(text) >= bool(text)
    assert tokens.Counter(FALLBACK, exact=False).text(text) >= bool(text)


def entry(*parts: Part) -> Entry:
    return Entry(index=0, line=1, nth=1, raw=b"", parts=parts)


def test_entries_count_their_parts_and_their_wrapping() -> None:
    counter = counter_for()
    said = Part("text", "human", "hello world")
    call = Part("call", "assistant", '{"path":"a.py"}', call_id="c", name="Read")
    result = Part("result", "tool", "hello world", call_id="c", name="Read")
    image = Part("media", "human")
    assert counter.entry(entry(said)) == 2 + MESSAGE_TOKENS
    assert counter.entry(entry(call)) == counter.text("Read") + counter.text(call.text) + CALL_TOKENS + MESSAGE_TOKENS
    assert counter.entry(entry(result, image)) == 2 + CALL_TOKENS + MEDIA_TOKENS + MESSAGE_TOKENS
    assert counter.entry(entry()) == 0
    assert counter.entries([entry(said), entry(), entry(said)]) == 2 * (2 + MESSAGE_TOKENS)


@pytest.mark.usefixtures("fresh")
def test_counting_opens_no_socket_and_leaves_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **named: Any) -> Any:
        pytest.fail("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    for model in ("", "gpt-4", "davinci", "claude-sonnet-4"):
        assert counter_for(model).text("hello world") == 2
    assert "TIKTOKEN_CACHE_DIR" not in os.environ


@pytest.mark.usefixtures("fresh")
def test_a_damaged_file_in_the_users_folder_is_left_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790"
    damaged.write_bytes(b"cut off")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert counter_for("gpt-4o").text("hello world") == 2
    assert damaged.read_bytes() == b"cut off"
    assert os.environ["TIKTOKEN_CACHE_DIR"] == str(tmp_path)


@pytest.mark.usefixtures("fresh")
def test_with_no_file_at_all_bytes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_folders", lambda: iter([tmp_path]))
    counter = counter_for("gpt-4o")
    assert (counter.name, counter.exact) == (FALLBACK, False)
    assert counter.text("12345") == 2
    assert counter.text("ñ" * 4) == 2


def test_litellm_is_found_but_not_imported() -> None:
    code = """
import sys
from compactor.tokens import counter_for
assert not {"tiktoken", "litellm"} & set(sys.modules)
assert counter_for("gpt-4o").text("hello world") == 2
assert "litellm" not in sys.modules and "requests" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
