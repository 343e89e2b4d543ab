"""What in a text is an identifier: a path, name, number, hash, version, address that may not be paraphrased."""

import re
from collections.abc import Iterable
from functools import lru_cache

_TOKEN = re.compile(r"https?://[^\s'\"<>)\]\\`]+|[\w.+-]{1,64}@[\w-]+\.[\w.]+|[\w./~$#-]{3,}")
_EXTENSION = re.compile(
    r"[\w-]+\.(?:py|js|ts|tsx|jsx|json|jsonl|ya?ml|toml|md|txt|cfg|ini|sh|go|rs|c|h|cc|cpp|java|kt|rb|php|swift|sql"
    r"|html|css|scss|ipynb|lock|mod|sum|csv|xml|proto|env|log)"
)
# possessive, since runs of a million letters come in base64 and minified code
_NAME = re.compile(
    r"[A-Za-z0-9]++(?:_[A-Za-z0-9]++)++"  # snake_case and CONSTANTS
    r"|[a-z][a-z0-9]*+[A-Z]\w+"  # camelCase
    r"|[A-Z]++[a-z0-9]++[A-Z][A-Za-z0-9]*+"  # PascalCase
)
_CODE = re.compile(r"(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]{2,}(?:-[A-Z0-9]+)*")
_NUMBER = re.compile(r"[$#]?\d+(?:[.,]\d+)+|[$#]\d+|\d{3,}|\d{4}-\d\d-\d\d")
_ANY_NUMBER = re.compile(r"(?<![\w.])\d++(?:[.,:]\d++)*+(?:%|(?=[A-Za-z]{0,3}(?!\w)))")
"""Also a short one, with or without a unit."""
_HASH = re.compile(r"(?=[a-f]*\d)[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAIN = re.compile(r"[A-Za-z]{4,}")
_STOP = frozenset(
    [
        "this",
        "that",
        "with",
        "from",
        "have",
        "will",
        "your",
        "been",
        "were",
        "they",
        "them",
        "then",
        "than",
        "when",
        "what",
        "which",
        "would",
        "could",
        "should",
        "there",
        "here",
        "into",
        "about",
        "just",
        "like",
        "some",
        "more",
        "also",
        "does",
        "only",
        "each",
        "such",
        "very",
        "make",
        "made",
        "used",
        "using",
        "user",
        "assistant",
        "please",
        "true",
        "false",
        "null",
        "none",
        "name",
        "type",
        "function",
        "arguments",
        "command",
        "description",
        "content",
        "input",
        "output",
    ]
)


@lru_cache(maxsize=200_000)
def _parts(token: str) -> tuple[str, ...]:
    """The identifiers that one token holds."""
    token = token.strip(".-/~") if not token.startswith(("./", "../", "/", "~/")) else token.rstrip(".-/~")
    if len(token) < 2:
        return ()
    if token.startswith("http") or "@" in token[1:]:
        return (token.rstrip(".,;:!?"),)
    if "/" in token.strip("/") or (token.startswith(("/", "~/")) and len(token) > 3):
        return (token,)
    if _EXTENSION.fullmatch(token) or _NUMBER.fullmatch(token) or _HASH.fullmatch(token):
        return (token,)
    pieces = re.split(r"[./~$#]+", token) if not _NUMBER.fullmatch(token) else [token]
    return tuple(found for piece in pieces if (found := _name(piece.strip("-"))))


def _name(piece: str) -> str:
    whole = _NAME.fullmatch(piece) or _HASH.fullmatch(piece) or _NUMBER.fullmatch(piece) or _CODE.fullmatch(piece)
    return piece if whole and len(piece) > 2 else ""


def identifiers(text: str) -> list[str]:
    """The identifiers of a text in order, doubles included."""
    return [found for token in _TOKEN.findall(text) for found in _parts(token)]


def exact(text: str) -> set[str]:
    """What a checker must find again verbatim: the identifiers, and every other number of a text."""
    return set(identifiers(text)) | set(_ANY_NUMBER.findall(text))


def plain_words(text: str, found: Iterable[str] = ()) -> set[str]:
    """The telling plain words of a text, identifiers apart, in lower case."""
    for identifier in found:
        text = text.replace(identifier, " ")
    return {word.lower() for word in _PLAIN.findall(text)} - _STOP


_STEM = 4
"""Letters that two words have in common when one is a form of the other."""
_SIGNS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]+")


def stems(text: str) -> set[str]:
    """By what two texts are compared that say the same in other forms: beginnings of words, pairs of Chinese signs."""
    pairs = {signs[at : at + 2] for signs in _SIGNS.findall(text) for at in range(len(signs) - 1)}
    return {word[:_STEM] for word in plain_words(text)} | pairs
