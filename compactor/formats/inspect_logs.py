"""Where the samples of an Inspect AI log are, and how they are unpacked.

An `.eval` is a zip with a member for each sample, deflated or by Zstandard; a `.json` is one object with `samples`
(UKGovernmentBEIS/inspect_ai, `src/inspect_ai/log/_recorders/eval.py` and `_util/zipfile.py`).
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from compactor.errors import InputError
from compactor.formats import lines

_ZIP = b"PK\x03\x04"
_MEMBER = re.compile(r"samples/[^/]+\.json|header\.json|_journal/start\.json")
_ZSTANDARD = 93
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
"""What a damaged zip raises; ValueError is also what is no UTF-8 or no JSON, RuntimeError a method not known."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD)


@dataclass(frozen=True)
class Sample:
    """One sample, or why it can't be read."""

    place: str
    value: dict[str, Any] = field(default_factory=dict)
    damage: str = ""

    @property
    def order(self) -> tuple[int, str]:
        """By epoch, then id: `sort_samples` in `log/_log.py`."""
        epoch, name = self.value.get("epoch"), self.value.get("id")
        return epoch if isinstance(epoch, int) else 0, name if isinstance(name, str) else str(name).zfill(20)


def is_log(raw: bytes, records: list[Any]) -> bool:
    """Whether the bytes are such a zip, or the values such objects."""
    if raw.startswith(_ZIP):
        return _is_eval(raw)
    return bool(records) and all(_is_log(record) for record in records)


def is_zip(raw: bytes) -> bool:
    return raw.startswith(_ZIP)


def samples(raw: bytes, name: str) -> list[Sample]:
    """The samples in Inspect's order, those that can't be read last; raises InputError where none can."""
    found = sorted(_zipped(raw, name) if is_zip(raw) else _listed(raw, name), key=lambda one: one.order)
    found.sort(key=lambda one: bool(one.damage))
    if found and found[0].damage:
        message = f"{name}: {found[0].place}: {found[0].damage}; take it from a backup, or run `inspect log recover`"
        raise InputError(message)
    if not found:
        message = f"{name}: an Inspect log without samples; give one written with log_samples on"
        raise InputError(message)
    return found


def _is_eval(raw: bytes) -> bool:
    try:
        return any(_MEMBER.fullmatch(info.filename) for info in zipfile.ZipFile(BytesIO(raw)).infolist())
    except _BROKEN:
        return False


def _is_log(record: Any) -> bool:
    return isinstance(record, dict) and isinstance(record.get("eval"), dict) and "status" in record


def _listed(raw: bytes, name: str) -> Iterator[Sample]:
    try:
        value = lines.parse(raw[lines.begin(raw) :].decode())
    except (ValueError, RecursionError) as error:
        message = f"{name}: an Inspect log with more than JSON in it ({error}); take it from a backup"
        raise InputError(message) from error
    for log in value if isinstance(value, list) else [value]:
        held = log.get("samples") if isinstance(log, dict) else None
        for number, one in enumerate(held if isinstance(held, list) else (), 1):
            if isinstance(one, dict):
                yield Sample(f"sample {number}", one)


def _zipped(raw: bytes, name: str) -> Iterator[Sample]:
    try:
        archive = zipfile.ZipFile(BytesIO(raw))
    except _BROKEN as error:
        message = f"{name}: a zip that was cut off or damaged ({error}); take it from a backup"
        raise InputError(message) from error
    for place, info in {info.filename: info for info in archive.infolist()}.items():  # of a name the last holds
        if place.startswith("samples/") and place.endswith(".json"):
            yield _sample(raw, archive, info)


def _sample(raw: bytes, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Sample:
    import zstandard

    try:
        value = lines.parse(_content(raw, archive, info).decode())
    except (*_BROKEN, zstandard.ZstdError) as error:
        return Sample(info.filename, damage=f"can't be unpacked ({error or type(error).__name__})")
    return Sample(info.filename, value) if isinstance(value, dict) else Sample(info.filename, damage="no JSON object")


def _content(raw: bytes, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A member's bytes. Zstandard, maybe in several frames, is unpacked here: zipfile knows it from Python 3.14 on."""
    if info.compress_type not in _METHODS:
        message = f"compressed by method {info.compress_type}, neither deflate nor Zstandard"
        raise ValueError(message)
    if info.compress_type != _ZSTANDARD:
        return archive.read(info)
    import zstandard

    if not 0 <= info.header_offset <= len(raw) - 30:
        message = "its place in the zip is wrong"
        raise ValueError(message)
    begin = info.header_offset + 30 + sum(struct.unpack_from("<HH", raw, info.header_offset + 26))
    unpacker = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    content = unpacker.decompress(raw[begin : begin + info.compress_size])
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        message = "its checksum is wrong"
        raise ValueError(message)
    return content
