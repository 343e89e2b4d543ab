"""How big is it.

No network, ever: the encodings come from the files that the litellm wheel ships, or from the folder that the user
names in TIKTOKEN_CACHE_DIR. An encoding whose file is in neither isn't asked for, since tiktoken would fetch it.
"""

import hashlib
import os
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from compactor.transcript import Entry, Part

if TYPE_CHECKING:
    import tiktoken

DEFAULT = "o200k_base"
FALLBACK = "estimate:bytes/4"

MESSAGE_TOKENS = 4
"""Role and delimiters of a message: OpenAI documents 3, and 1 more for a name; Anthropic doesn't say."""
CALL_TOKENS = 8
"""Wrapping and id of a call or of a result; an assumption, measured nowhere."""
MEDIA_TOKENS = 1_500
"""An image: Anthropic's largest costs about 1,600, OpenAI's 1024 x 1024 at high detail 765. A document costs more."""

BLOCK = 4_000
"""Runs without a space (or of nothing but spaces) are cut to this many characters: tiktoken is slow on longer ones, and
on a million spaces it panics."""
WINDOW = 1_000_000
"""Other text is cut to about this many characters, which bounds the memory that its tokens take."""

_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_FILES = {
    "o200k_base": ("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    "o200k_harmony": ("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
    "cl100k_base": ("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    "p50k_base": ("p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "p50k_edit": ("p50k_base", "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069"),
    "r50k_base": ("r50k_base", "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930"),
}
"""Of each encoding, the name and SHA-256 of the file that tiktoken builds it from."""


@dataclass(frozen=True)
class Counter:
    """Counts tokens; each count is made anew."""

    name: str
    exact: bool
    """Whether it is the encoding of the model that was asked for; if not, the name says that it's an estimate."""
    encoding: str = ""
    """Which of tiktoken's encodings it counts with; empty for bytes/4."""

    def text(self, text: str) -> int:
        """The tokens of a text; what looks like a special token is text like any other."""
        if not text:
            return 0
        if not self.encoding:
            return -(-len(text.encode("utf-8", "replace")) // 4)
        encode = _load(self.encoding).encode_ordinary
        if len(text) <= BLOCK:
            return len(encode(text))
        return sum(times * len(encode(piece)) for piece, times in Tally(_pieces(text)).items())

    def part(self, part: Part) -> int:
        """The tokens of a part, wrapping included."""
        match part.kind:
            case "call":
                return self.text(part.name) + self.text(part.text) + CALL_TOKENS
            case "result":
                return self.text(part.stub or part.text) + CALL_TOKENS
            case "media":
                return self.text(part.text) + MEDIA_TOKENS
            case _:
                return self.text(part.text)

    def entry(self, entry: Entry) -> int:
        """The tokens of an entry as the model reads it; bookkeeping has none."""
        return sum(map(self.part, entry.parts)) + MESSAGE_TOKENS if entry.parts else 0

    def entries(self, entries: Iterable[Entry]) -> int:
        return sum(map(self.entry, entries))


@cache
def counter_for(model: str = "") -> Counter:
    """The counter for a model named as LiteLLM does; where its own isn't at hand, o200k_base, marked as an estimate."""
    own = _encoding_of(model)
    if own and _folder(own):
        return Counter(f"tiktoken:{own}", exact=True, encoding=own)
    if _folder(DEFAULT):
        return Counter(f"tiktoken:{DEFAULT} (estimate)", exact=False, encoding=DEFAULT)
    return Counter(FALLBACK, exact=False)


def _encoding_of(model: str) -> str:
    try:
        from tiktoken.model import encoding_name_for_model

        return encoding_name_for_model(model.rsplit("/", 1)[-1])
    except (ImportError, KeyError):
        return ""


def _folder(encoding: str) -> Path | None:
    """Where the encoding's file lies whole, under the name that tiktoken looks for."""
    if encoding not in _FILES or find_spec("tiktoken") is None:
        return None
    stem, digest = _FILES[encoding]
    name = hashlib.sha1(_URL.format(stem).encode(), usedforsecurity=False).hexdigest()
    return next((folder for folder in _folders() if _intact(folder / name, digest)), None)


def _folders() -> Iterator[Path]:
    if chosen := os.environ.get("TIKTOKEN_CACHE_DIR"):
        yield Path(chosen)
    litellm = find_spec("litellm")  # finds the wheel without importing it, which would take seconds
    for place in (litellm and litellm.submodule_search_locations) or ():
        yield Path(place, "litellm_core_utils", "tokenizers")


@cache
def _intact(path: Path, digest: str) -> bool:
    # tiktoken deletes a file with another hash and fetches it anew
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False


_loading = Lock()


@cache
def _load(encoding: str) -> "tiktoken.Encoding":
    import tiktoken

    folder = _folder(encoding)
    if folder is None:
        message = f"the file of encoding {encoding} is gone"
        raise FileNotFoundError(message)
    with _loading, _environment("TIKTOKEN_CACHE_DIR", str(folder)):
        return tiktoken.get_encoding(encoding)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _pieces(text: str) -> Iterator[str]:
    """The text in order: normal text whole (up to a window), runs in blocks.

    Whatever is cut may count one token more per cut. Equal blocks of one run are counted once by the caller.
    """
    start = 0
    for at in range(0, len(text), BLOCK):
        block = text[at : at + BLOCK]
        if _is_run(block):
            yield text[start:at]
            yield block
            start = at + len(block)
        elif at - start >= WINDOW:
            yield text[start:at]
            start = at
    yield text[start:]


def _is_run(block: str) -> bool:
    # both tests stop at the first character that decides: linear, and next to nothing on normal text
    return block.isspace() or len(block.split(None, 1)[0]) == len(block)
