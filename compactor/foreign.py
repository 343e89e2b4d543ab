"""Summaries that something else wrote: a text beside a transcript, or an agent's own compaction inside one."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from compactor import files, formats
from compactor.errors import InputError, UsageError
from compactor.ledger import extract
from compactor.redact import mask_of, redacted
from compactor.transcript import BLOCK_START, Entry, Source, Transcript
from compactor.verify import Prose


def session(raw: bytes, path: str) -> Source | None:
    """The session that the bytes are, secrets masked; None where they are none."""
    try:
        return redacted(formats.read(raw, path))
    except InputError:
        return None


def native(source: Source) -> Iterator[tuple[str, Prose]]:
    """Each summary that the session's own client wrote, with where it is; raises InputError where there is none."""
    found = [one for transcript in source.transcripts for one in _native(source, transcript)]
    if not found:
        cure = "give the .summary.json that `compact run` wrote"
        message = f"{files.shown(source.name)}: a session with no summary of its client's in it; {cure}"
        raise InputError(message)
    yield from found


def _native(source: Source, transcript: Transcript) -> Iterator[tuple[str, Prose]]:
    story = list(transcript.story())
    for entry in story:
        told = _BY_THE_CLIENT.sub("", "\n".join(part.text for part in entry.parts if part.speaker == "summary"))
        head = [other for other in story if other.index < entry.index]
        if told.strip() and head and not told.lstrip().startswith(BLOCK_START):
            yield f"{_name(source.name)}:{entry.line}", _prose(told, source, head)


_BY_THE_CLIENT = re.compile(r"(?<=transcript at: )\S+")
"""Where the record is kept, which the client says at the end and no conversation."""


def _name(path: str) -> str:
    """A file's name without its folder: a table has little room."""
    return files.shown(Path(path).name)


def of_text(raw: bytes, path: str, transcripts: Sequence[str]) -> Iterator[tuple[str, Prose]]:
    """A summary in prose, once for each conversation given. Raises UsageError where none is, InputError."""
    if not transcripts:
        message = f"{files.shown(path)}: a summary in prose doesn't say what it is of: give its transcript too"
        raise UsageError(message)
    text = _decoded(raw, path)
    for name in transcripts:
        source = formats.read(files.read_input(name)[0], name)
        mask, view = mask_of(source), redacted(source)
        for number, transcript in enumerate(view.transcripts, 1):
            select = f" #{number}" if len(view.transcripts) > 1 else ""
            where = _name(path) if len(transcripts) == 1 and not select else f"{_name(path)} of {_name(name)}{select}"
            yield where, _prose(mask.text(text), view, [*transcript.story()])


def _prose(text: str, source: Source, head: Sequence[Entry]) -> Prose:
    return Prose(text, head, extract(source.short, head))


def _decoded(raw: bytes, path: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"{files.shown(path)}: neither a summary, nor a session, nor a text in UTF-8 ({error.reason})"
        raise InputError(message) from error
