"""Which pieces of a text are secrets.

Tokens of known providers are found by detect-secrets and by a table of those it misses; passwords and keys by the name
they are assigned to, in source, JSON, YAML, environment files, headers, flags and prose; private keys and the passwords
of connection strings by their form. Entropy alone proves nothing here: hashes and ids are what a snapshot lives on.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Leak:
    """A secret's place in a text."""

    start: int
    end: int
    kind: str
    sure: bool = True
    """Whether the value is a secret wherever it stands; a weak one, like `admin`, is one only in this place."""


def leaks(text: str) -> Sequence[Leak]:
    """The secrets of a text, in order, none within another."""
    found = sorted({*_provided(text), *_formed(text), *_assigned(text)}, key=lambda leak: (leak.start, -leak.end))
    kept: list[Leak] = []
    for leak in found:
        if not kept or leak.start >= kept[-1].end:
            kept.append(leak)
    return kept


# Tokens of known providers

_MARKS = (
    "AKIA", "ASIA", "ABIA", "ACCA", "aws", "AWS", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "gldt-", "glft-",
    "glsoat-", "glrt-", "GR1348941", "glcbt-", "glimt-", "glptt-", "glagent-", "gloas-", "xox", "hooks.slack.com",
    "k_live_", "T3BlbkFJ", "AccountKey=", "_authToken", "pypi-Ag", "SG.", "sq0csp-", "api.softlayer.com",
)  # fmt: skip
"""What a line holds in which one of the library's detectors may find something: they are slow on every line."""

_DETECTORS = {
    "aws": "AWSKeyDetector", "github_token": "GitHubTokenDetector", "gitlab_token": "GitLabTokenDetector",
    "slack": "SlackDetector", "stripe": "StripeDetector", "openai": "OpenAIDetector", "npm": "NpmDetector",
    "azure_storage_key": "AzureStorageKeyDetector", "pypi_token": "PypiTokenDetector", "sendgrid": "SendGridDetector",
    "square_oauth": "SquareOAuthDetector", "softlayer": "SoftlayerDetector",
}  # fmt: skip


@cache
def _detectors() -> Sequence[Any]:
    from importlib import import_module  # they bring an HTTP client along, which most texts never need

    return [getattr(import_module(f"detect_secrets.plugins.{file}"), name)() for file, name in _DETECTORS.items()]


def _provided(text: str) -> Iterator[Leak]:
    """What the library finds, line by line as it wants it."""
    marked = {at for mark in _MARKS for at in _places(text, mark)}
    for start in {text.rfind("\n", 0, at) + 1 for at in marked}:
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)]
        for form in (form for detector in _detectors() for form in detector.denylist):
            for match in form.finditer(line):  # `analyze_string` gives the groups, which may be a mere prefix
                group = max(range(form.groups + 1), key=lambda n: (16 <= len(match[n] or "") < len(match[0]), -n))
                yield _leak(start + match.start(group), match[group], "token")


def _leak(start: int, value: str, kind: str, sure: bool = True) -> Leak:
    return Leak(start, start + len(value), kind, sure)


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


# What has a form of its own

_FORMS: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("-----BEGIN ", "private key", re.compile(
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:\\r|\\n|[\s\"'+,])*(?:[\w-]+: [^\n\\]*|[A-Za-z0-9+/=]{16,}|=?[A-Za-z0-9+/=]{1,15}(?![A-Za-z0-9])))*"
        r"(?:(?:\\r|\\n|[\s\"'+,])*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?"
    )),
    ("://", "password", re.compile(
        r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,100}:([^\s@/\"'<>{}$*]{3,200})@", re.I
    )),
    ("eyJ", "token", re.compile(r"(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?")),
    ("sk-", "key", re.compile(
        r"(?<![\w-])sk-(?:(?:ant|proj|or|svcacct|admin|lf)-[\w-]{16,}|[A-Za-z0-9]{32,}(?![\w-]))"
    )),
    ("github_pat_", "token", re.compile(r"(?<!\w)github_pat_\w{22,}")),
    ("AIza", "key", re.compile(r"(?<!\w)AIza[\w-]{35}(?![\w-])")),
    ("ya29.", "token", re.compile(r"(?<!\w)ya29\.[\w-]{20,}")),
    ("hf_", "token", re.compile(r"(?<!\w)hf_[A-Za-z0-9]{30,}(?!\w)")),
    ("npm_", "token", re.compile(r"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)")),
    ("xapp-", "token", re.compile(r"(?<!\w)xapp-\d-[\w-]{20,}")),
    ("whsec_", "secret", re.compile(r"(?<!\w)whsec_[A-Za-z0-9+/=]{20,}")),
    ("shp", "token", re.compile(r"(?<!\w)shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}")),
    ("_v1_", "token", re.compile(r"(?<!\w)do[opr]_v1_[0-9a-f]{64}")),
    ("dckr_pat_", "token", re.compile(r"(?<!\w)dckr_pat_[\w-]{20,}")),
    ("lin_api_", "key", re.compile(r"(?<!\w)lin_api_[A-Za-z0-9]{32,}")),
    ("gl", "token", re.compile(r"(?<!\w)glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}")),
    ("AGE-SECRET-KEY-", "key", re.compile(r"AGE-SECRET-KEY-1[0-9A-Z]{50,}")),
    ("-us", "key", re.compile(r"(?<!\w)[0-9a-f]{32}-us\d{1,2}(?!\w)")),
    ("X-Amz-S", "token", re.compile(r"X-Amz-(?:Signature|Security-Token)=([^&\s\"'<>\\]{16,})")),
    ("sig=", "token", re.compile(r"[?&]sig=([A-Za-z0-9%+/=_-]{20,})")),
    ("earer ", "token", re.compile(r"\b[Bb]earer ([A-Za-z0-9._~+/=-]{16,})(?![A-Za-z0-9._~+/=-]*[(\[{<])")),
    ("asic ", "password", re.compile(r"[Aa]uthorization\W{1,6}[Bb]asic ([A-Za-z0-9+/=]{8,})")),
    ("-u ", "password", re.compile(r"\bcurl\b[^\n]{0,400}? -u ['\"]?[^\s:'\"]{1,100}:([^\s'\"$<{]{3,200})")),
)  # fmt: skip
"""A literal that must be there, what it is, and its form; the first group, if any, is the secret."""


def _formed(text: str) -> Iterator[Leak]:
    for mark, kind, form in _FORMS:
        if mark not in text:
            continue
        for match in form.finditer(text):
            group = 1 if form.groups else 0
            value = match[group]
            if group == 0 or not _is_example(value):
                yield _leak(match.start(group), value, kind, sure=_is_sure(value))


# What is assigned to a telling name

_PASSWORDS = ("password", "passwd", "passphrase", "passwort", "kennwort", "contraseña", "contrasena", "pwd", "_pass",
              "密码", "口令")  # fmt: skip
_KEYS = ("key", "密钥")
_TOKENS = ("token", "secret", "credential", "credentials", "authorization")
NAMES = (*_PASSWORDS, *_KEYS, *_TOKENS)
_KEY_OF = re.compile(r"(?:api|access|auth|private|secret|encryption|signing|account|client|master)[ _-]?\Z")
"""What makes a key a secret one, right before the word: most keys are those of maps and tables."""

_BINDS = re.compile(
    r"(?P<close>\\?[\"'`]?\]?)[ \t]{0,4}"
    r"(?::=|=>|={1,3}|!==?|:|：|[ \t](?:is|was|ist|war|lautet|es|est)[ \t]|是|为|[ \t](?=[^\s-]))[ \t]{0,4}@?"
    r"(?P<open>\\?[\"'`]|\*\*|)"
)
_TAGGED = re.compile(r">\s?(?P<value>[^<>\s]{4,200})</")
_BARE = re.compile(r"[^\s\"'`,;<>(){}\[\]\\|&。，；]{4,200}")
_REFERENCE = re.compile(r"\$|%[\w(]|<|\{|\[|(?:os|process|env|self|this|config|settings|args|ctx|req|request)\.", re.I)
_EXAMPLES = re.compile(
    r"example|changeme|change_me|your[-_ ]|my[-_](?:password|secret|token|key)|placeholder|redacted|x{4,}|\*{3,}|"
    r"\.{3}|…|dummy|sample|not[-_ ]set|unset|insert|<[^>]*>|\[secret",
    re.I,
)
_NO_VALUES = frozenset((
    "none", "null", "true", "false", "undefined", "string", "str", "bool", "bytes", "password", "passwd", "secret",
    "token", "optional", "required", "text", "hidden", "bearer", "basic", "empty", "missing", "invalid", "expired",
    "number", "object", "value", "default", "wrong", "correct",
))  # fmt: skip


def _assigned(text: str) -> Iterator[Leak]:
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when lowered, and places would no longer agree
        low = "".join(lowered if len(lowered := character.lower()) == 1 else character for character in text)
    for name in NAMES:
        for at in _places(low, name):
            if name == "key" and not _KEY_OF.search(low, max(at - 12, 0), at):
                continue
            yield from _bound(text, at + len(name), name, at)


def _bound(text: str, at: int, name: str, begins: int) -> Iterator[Leak]:
    """The value that stands behind a telling name, where one does."""
    kind = "password" if name in _PASSWORDS else "key" if name in _KEYS else "token"
    if tagged := _TAGGED.match(text, at):
        if is_secret(tagged["value"], name, quoted=True):
            yield _leak(tagged.start("value"), tagged["value"], kind, _is_sure(tagged["value"]))
        return
    binds = _BINDS.match(text, at)
    if not binds:
        return
    start, opened = binds.end(), binds["open"]
    value = (
        _quoted(text, start, opened)
        if opened
        else (bare[0].rstrip(".!?:") if (bare := _BARE.match(text, start)) else "")
    )
    after = text[start + len(value) : start + len(value) + 1]
    loose = binds[0].isspace() or not re.search(r"[=:：]", binds[0])
    if loose and not binds[0].strip() and not _flag(text, begins):
        return
    if loose and binds["close"] and binds[0].strip() == binds["close"]:
        return
    plain = not opened and not (_is_environment(text, begins, at, binds[0]))
    if value and after not in tuple("([{") and is_secret(value, name, quoted=not plain and not loose):
        yield _leak(start, value, kind, _is_sure(value))


def _quoted(text: str, start: int, mark: str) -> str:
    end = text.find(mark, start, start + 400)
    value = text[start:end] if end >= 0 else ""
    return "" if "\n" in value or (" " in value.strip() and len(value.split()) > 6) else value


def _flag(text: str, begins: int) -> bool:
    """Whether the name is a command's option, whose value may stand behind a blank."""
    start = begins
    while start and (text[start - 1].isalnum() or text[start - 1] in "-_"):
        start -= 1
    return text.startswith("--", start)


def _is_environment(text: str, begins: int, ends: int, binds: str) -> bool:
    """Whether it is a line of an environment file: an upper-case name, `=`, no blanks."""
    start = begins
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return binds == "=" and text[start:ends].isupper()


def is_secret(value: str, name: str, quoted: bool) -> bool:
    """Whether a value assigned to such a name is one; in code a bare word is a reference, a quoted one a value."""
    low = value.lower()
    if len(value) < 4 or low in _NO_VALUES or low == name or _is_example(value) or _REFERENCE.match(value):
        return False
    digits, letters = (any(map(test, value)) for test in (str.isdigit, str.isalpha))
    if re.search(r"\s", value) and not (name in _PASSWORDS and quoted and digits):
        return False
    if "/" in value[:2] or value.startswith(("./", "~", "http://", "https://")):
        return False
    mixed = digits and letters and not re.fullmatch(r"[A-Za-z_]+\d{0,2}", value)
    odd = bool(re.search(r"[^\w.\-/:]", value)) and letters
    if name in _PASSWORDS:
        return quoted or mixed or odd
    if name in _KEYS:
        return (digits and len(value) >= 12) or (quoted and len(value) >= 20 and " " not in value and mixed)
    return mixed and len(value) >= (12 if quoted else 16)


def _is_example(value: str) -> bool:
    return bool(_EXAMPLES.search(value)) or any(len(set(part)) <= 2 for part in (value,)) or _is_sequence(value)


def _is_sequence(value: str) -> bool:
    """Whether each character follows on the one before, as in `abcdefgh` or `12345678`."""
    return len(value) >= 6 and all(ord(b) - ord(a) == 1 for a, b in pairwise(value))


def _is_sure(value: str) -> bool:
    """Whether a value can't be an ordinary word that also stands elsewhere."""
    return len(value) >= 8 and bool(re.search(r"\d|[^\w.\-]|[a-z][A-Z]", value)) and not re.fullmatch(r"[\d.]+", value)
