"""What a provider signed or sealed, and what becomes of it in what is kept.

Anthropic binds the signature of a thought to all that stood before it. Behind a block it leaves such thoughts out
(`prefix_binding_mismatch`, earendil-works/pi#9391) and goes on; what it refuses is a thought that was changed, or that
lost its signature. So in every format they are kept byte for byte, and that is said. OpenAI's `encrypted_content` and
Google's `thoughtSignature` aren't bound to what stood before: they stay with the item or the call that they belong to.
"""

import re
from collections.abc import Iterable, Iterator

import orjson

from compactor.formats import lines
from compactor.formats.blocks import string
from compactor.transcript import Entry, Note

_SIGNED = re.compile(rb'"(?:s|thinkingS)ignature"\s*:\s*"(?!REDACTED")[\w+/=-]+"')
_SEALED = re.compile(rb'"encrypted_content"\s*:\s*"([^"]+)"')
INVALID = ("", "REDACTED")
"""Signatures that no provider takes: none, and what scrubbing secrets leaves of one."""


def notes(kept: Iterable[Entry]) -> Iterator[Note]:
    """A word on the signed thoughts, and on the sealed items, among some entries that stay."""
    thoughts = [entry for entry in kept if any(_thinks(part.kind, part.speaker) for part in entry.parts)]
    if signed := [entry for entry in thoughts if _SIGNED.search(entry.raw)]:
        text = f"{len(signed)} messages keep thoughts signed behind what is gone: the provider may leave these out"
        yield Note(signed[0].line, text)
    sealed = [(entry, sum(map(len, _SEALED.findall(entry.raw)))) for entry in thoughts]
    if held := [(entry, size) for entry, size in sealed if size]:
        size = sum(size for _, size in held)
        yield Note(held[0][0].line, f"{len(held)} kept items hold {size:,} bytes that only the provider can read")


def _thinks(kind: str, speaker: str) -> bool:
    return kind == "thinking" or (kind == "opaque" and speaker in ("assistant", "summary"))


def unsigned(entries: Iterable[Entry]) -> Iterator[Note]:
    """A word on thoughts in Anthropic messages that lack a signature which the provider would take."""
    found = [entry for entry in entries if any(p.kind == "thinking" for p in entry.parts) and _is_unsigned(entry.raw)]
    if found:
        yield Note(found[0].line, f"{len(found)} thinking blocks without a valid signature")


def _is_unsigned(raw: bytes) -> bool:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        value = lines.editable(raw)
    content = value.get("content") if isinstance(value, dict) else None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return any(b.get("type") == "thinking" and string(b.get("signature")) in INVALID for b in blocks)
