"""Which formats there are, and which one some bytes are in."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any

from compactor.errors import InputError
from compactor.formats import (
    aider,
    anthropic,
    atif,
    claude_code,
    cline,
    codex,
    copilot,
    gemini,
    goose,
    inspect_ai,
    kimi,
    langchain,
    mini_swe_agent,
    openai,
    opencode,
    openhands,
    openhands_sdk,
    otel,
    pi,
    responses,
    roo,
    sample,
    sharegpt,
    swe_agent,
    vercel,
)  # fmt: skip
from compactor.formats.base import Embedded, Format
from compactor.transcript import Source

__all__ = ["FORMATS", "Embedded", "Format", "detect", "formats", "read"]

_BUILT_IN: tuple[Format, ...] = (
    claude_code.FORMAT, codex.FORMAT, gemini.FORMAT, gemini.LEGACY, pi.FORMAT, opencode.FORMAT, anthropic.FORMAT,
    openai.FORMAT, responses.FORMAT, langchain.FORMAT, vercel.FORMAT, otel.FORMAT, swe_agent.FORMAT, atif.FORMAT,
    sharegpt.FORMAT, openhands.FORMAT, openhands_sdk.FORMAT, copilot.FORMAT, kimi.FORMAT, goose.FORMAT, aider.FORMAT,
    inspect_ai.FORMAT, roo.FORMAT, cline.FORMAT, mini_swe_agent.FORMAT,
)  # fmt: skip
FORMATS: dict[str, Format] = {form.name: form for form in _BUILT_IN}
"""The built-in formats, by the name that `--format` takes."""

ENTRY_POINTS = "compactor.formats"
"""Where an installed package offers more of them."""


def formats() -> Mapping[str, Format]:
    """All formats: the built-in ones, and those that installed packages offer."""
    return {**{point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}, **FORMATS}


def read(raw: bytes, name: str, format: str | None = None) -> Source:
    """Read some bytes; `name` is what to call them in messages, `format` says what they are when the user knows.

    Raises InputError where that can't be done.
    """
    if not raw.strip():
        return Source(name, raw, format or "empty", ())
    _refuse_foreign_bytes(raw, name)
    with sample.kept(), _uncollected():
        if format is None:
            return detect(raw, name).read(raw, name)
        return replace(_named(format, name).read(raw, name), guesses=())


@contextmanager
def _uncollected() -> Iterator[None]:
    """While nothing is looked for that could be thrown away: a reader makes hundreds of thousands of objects to stay.

    The collector would go through all of them again and again: a fifth of the time on 100 MB.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def detect(raw: bytes, name: str) -> Format:
    """The one format whose records the bytes hold; raises InputError where none or several do."""
    records = sample.first_values(raw)
    found = [form for form in FORMATS.values() if form.sniff(raw, records)]
    found = found or [form for form in formats().values() if form.sniff(raw, records)]
    if len(found) == 1:
        return found[0]
    if not records and b"\0" in raw:
        message = f"{name}: binary data, no JSON in it; give a transcript, one JSON object per line or a JSON list"
        raise InputError(message)
    shown = f"looks like {' and '.join(form.name for form in found)}" if found else f"unknown format ({_seen(records)})"
    message = f"{name}: {shown}; considered {', '.join(FORMATS)}; say which with --format {'|'.join(FORMATS)}"
    raise InputError(message)


def _named(format: str, name: str) -> Format:
    known = FORMATS if format in FORMATS else formats()
    if format not in known:
        message = f"{name}: no format {format!r}; --format takes {', '.join(sorted(known))}"
        raise InputError(message)
    return known[format]


def _refuse_foreign_bytes(raw: bytes, name: str) -> None:
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        message = f"{name}: not UTF-8 but UTF-16; save it as UTF-8 and try again"
        raise InputError(message)
    if not raw.strip(b"\0 \t\r\n"):
        message = f"{name}: {raw.count(0)} NUL bytes and nothing else, it was never written out; use a backup of it"
        raise InputError(message)


def _seen(records: list[Any]) -> str:
    """What the first record is, for the one who has to say what it is."""
    if not records:
        return "no JSON object in it"
    first = records[0]
    if not isinstance(first, dict):
        return f"begins with a JSON {type(first).__name__}"
    kind = f"type {first['type']!r}, " if isinstance(first.get("type"), str) else ""
    return f"its first record has {kind}keys {', '.join(list(first)[:6])}"
