"""Chat histories of aider: `.aider.chat.history.md`.

Lines, not JSON: `# aider chat started at` begins a session, `#### ` is the user, `> ` what a tool or aider itself put
out, anything else the assistant (Aider-AI/aider, `aider/utils.py`, `split_chat_history_markdown`). The form is lossy: a
line of the assistant's that begins with `> ` can't be told from an output.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from compactor.errors import InputError
from compactor.formats.base import Embedded
from compactor.formats.voice import prompt
from compactor.transcript import ACKNOWLEDGEMENT, Entry, Part, Source, Transcript, is_block

STARTS = b"# aider chat started at"
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_BYTES = "surrogateescape"


class Aider:
    """Sessions in Markdown, one after another."""

    name = "aider"
    title = "aider chat history (Markdown)"
    block_role = "user"

    def sniff(self, raw: bytes, records: list[Any]) -> bool:
        return raw.lstrip().startswith(STARTS) or b"\n" + STARTS in raw[:10_000]

    def read(self, raw: bytes, name: str) -> Source:
        found = tuple(_transcript(raw, start, end, line) for start, end, line in _sessions(raw))
        if not found:
            message = f"{name}: holds no session of aider's; each begins with {STARTS.decode()!r}; leave --format out"
            raise InputError(message)
        return Source(name, raw, self.name, found)

    def embed(
        self, source: Source, transcript: Transcript, cut: int, block: str, *, role: str = "", session: str = ""
    ) -> Embedded:
        entries = transcript.entries
        fixed = [entries[index] for index in transcript.live[: transcript.fixed]]
        tail = [entries[index] for index in transcript.live[cut:]]
        said = "".join(f"#### {line}\n" for line in block.split("\n")).encode("utf-8", _BYTES)
        acknowledged = bool(tail) and tail[0].role == "user"
        answer = f"\n{ACKNOWLEDGEMENT}\n\n".encode() if acknowledged else b"\n"
        chunks = [*(_ended(entry.raw) for entry in fixed), said, answer, *(_ended(entry.raw) for entry in tail)]
        return Embedded(b"".join(chunks), acknowledged=acknowledged)

    def same(self, before: Entry, after: Entry) -> bool:
        return before.raw.strip() == after.raw.strip()


def _ended(raw: bytes) -> bytes:
    return raw if raw.endswith(b"\n") else raw + b"\n"


def _sessions(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Where each session begins and ends, and on which line."""
    starts = [m.start() for m in re.finditer(rb"^" + re.escape(STARTS), raw, re.MULTILINE)]
    at, line = 0, 1
    for start, end in pairwise([*starts, len(raw)]):
        line += raw.count(b"\n", at, start)
        at = start
        yield start, end, line


def _transcript(raw: bytes, start: int, end: int, line: int) -> Transcript:
    runs: list[tuple[str, int, int]] = []
    for match in _LINE.finditer(raw, start, end):
        kind = _kind(match[0], first=not runs) or runs[-1][0]
        if not runs or kind != runs[-1][0]:
            runs.append((kind, match.start(), line))
        line += 1
    ends = [*(at for _, at, _ in runs[1:]), end]
    entries = [
        _told(Entry(index, at_line, 1, raw[begin:stop], role="" if kind == "header" else kind), kind)
        for index, ((kind, begin, at_line), stop) in enumerate(zip(runs, ends, strict=True))
    ]
    summarised = 0
    if len(entries) > 1 and is_block(entries[1].text):
        summarised = 2 if len(entries) > 2 and entries[2].text == ACKNOWLEDGEMENT else 1
    entries[1 : 1 + summarised] = map(_summary, entries[1 : 1 + summarised])
    live = tuple(range(len(entries)))
    return Transcript(
        tuple(entries), live, fixed=1, summarised=summarised, ours=summarised > 0, start=start, end=end
    )  # fmt: skip


def _kind(text: bytes, first: bool) -> str:
    """Who wrote a line; empty for a blank one, which goes with the line before it."""
    if first:
        return "header"
    if not text.strip():
        return ""
    return "user" if text.startswith(b"####") else "tool" if text.startswith(b">") else "assistant"


def _told(entry: Entry, kind: str) -> Entry:
    """The entry with what the model reads in it, without the marks before its lines."""
    if kind == "header":
        return entry
    lines = entry.raw.decode("utf-8", "replace").split("\n")
    mark = {"user": "####", "tool": ">"}.get(kind, "")
    text = "\n".join(line.removeprefix(mark).removeprefix(" ").rstrip() if mark else line for line in lines).strip()
    part = prompt(text) if kind == "user" else Part("text", "tool" if kind == "tool" else "assistant", text)
    return Entry(entry.index, entry.line, 1, entry.raw, role=entry.role, parts=(part,))


def _summary(entry: Entry) -> Entry:
    return Entry(entry.index, entry.line, 1, entry.raw, role=entry.role, parts=(Part("text", "summary", entry.text),))


FORMAT = Aider()
