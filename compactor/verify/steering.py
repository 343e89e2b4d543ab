"""Whether an item steers its reader: answers the chat, goes on with it, obeys something in it, or breaks a rule."""

import re
from collections.abc import Iterator

from compactor.evidence import normal
from compactor.identifiers import exact, stems
from compactor.snapshot import Authority, Constraint, Item
from compactor.verify.case import Case
from compactor.verify.finding import Finding

TOLD_IN = ("text", "why", "scope", "role", "holds_while", "next", "owner")

MARKED = "holds marks of a chat template or a call"

_HIJACKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("speaks as somebody in the chat", re.compile(
        r"(?:^|\n)\s*(?:Human|User|Assistant|System|Tool|Developer)\s*:\s(?!\s*[\"'“„«‘])"
    )),
    (MARKED, re.compile(
        r"<\|[\w ]{2,20}\|>|\[/?INST\]|<</?SYS>>|<start_of_turn>|</?(?:system-reminder|system|user|assistant|tool_use"
        r"|tool_call|function_calls?|transcript|antml:\w+)(?:[-\s:][^<>]*)?>|<(?:invoke|function)[\s=]", re.IGNORECASE
    )),
    ("tells its reader to set rules aside", re.compile(
        r"(?:^|[.!?:;,(\"']\s*|\n|\b(?:please|must|then|and|now|to|should|verify:)\s+)"
        r"(?:ignore|disregard|forget|override|omit|drop|bypass)\s+(?:all|any|the|every|previous|prior|earlier|these|those"
        r"|your|my|our|above|its)\b[^.\n]{0,40}\b(?:instructions?|rules?|constraints?|polic(?:y|ies)|guidelines|prompts?"
        r"|restrictions?)\b"
        r"|\b(?:ignoriere?|vergiss|missachte)\b[^.\n]{0,40}\b(?:anweisung|regel|vorgabe|richtlinie)\w*"
        r"|\b(?:ignora|olvida|descarta|omite)\b[^.\n]{0,40}\b(?:instrucci[oó]n|regla|pol[ií]tica|restricci[oó]n)\w*"
        r"|(?:忽略|无视|忘记|忘掉)[^。\n]{0,20}(?:指令|指示|规则|限制|要求)", re.IGNORECASE
    )),
    ("answers the chat in place of telling of it", re.compile(
        r"^\W*(?:sure[,!.]|certainly|of course[,!]|absolutely[,!]|here(?:'s| is| are) (?:the|your|a)\b|i'?m sorry"
        r"|as an ai\b|i (?:cannot|can'?t|am unable to) (?:help|assist|comply|do that)|great question|happy to help"
        r"|let me know if)",
        re.IGNORECASE
    )),
    ("commands its reader", re.compile(
        r"\byou (?:must|have to|need to|are to) (?:now|immediately|always|never|first|act|treat|do|run|obey"
        r"|follow|call|execute|reply|respond)\b|\b(?:du|sie) (?:musst|müssen|sollst|sollen) (?:jetzt|sofort|nun)\b"
        r"|\bdebes? (?:ahora|inmediatamente)\b|你(?:现在)?必须(?:立即|马上|现在)", re.IGNORECASE
    )),
)  # fmt: skip


def nobody_is_steered(given: Case) -> Iterator[Finding]:
    """An item tells of the conversation: it is no answer in it, no part of it, and no command to who reads it.

    Words of the user and the system are theirs to say so where they are quoted.
    """
    for name, item in given.active():
        if isinstance(item, Constraint | Authority) or given.elsewhere(item):
            continue
        if what := hijack(_told(item), _own_words(given, item)):
            cure = "say in a plain sentence what it is about, or drop it"
            yield Finding("steers", "error", what, cure, name, item.id, item.evidence)


def hijack(text: str, spoken: str = "") -> str:
    """What in a text steers its reader, in words; empty where nothing does. `spoken` is what the user said of it."""
    text = _CODE.sub(" ", text)
    for what, form in _HIJACKS:
        if any(normal(match[0]) not in spoken for match in form.finditer(text)):
            return what
    return ""


_CODE = re.compile(r"`[^`\n]*`")
"""A word that is talked about, not said."""


def _told(item: Item) -> str:
    """What an item tells; in what stands beside its text a speaker's name only says whose words follow."""
    text, *more = (str(getattr(item, key, "") or "") for key in TOLD_IN)
    return "\n".join((text, *(f"· {value}" for value in more)))


def _own_words(given: Case, item: Item) -> str:
    spoken = [*given.evidence.said(item.evidence), *(p.text for p in given.cited(item) if p.speaker == "system")]
    return normal(" ".join(spoken))


def unmarked(text: str) -> str:
    """A text whose marks of a chat template or a call are mere words."""
    return dict(_HIJACKS)[MARKED].sub(lambda match: re.sub(r"[<>|/\[\]]", " ", match[0]), text)


# The next action

ASKS_FIRST = "ask the user before this: "
"""How a next action begins that a rule forbids or that needs a word first."""

_GATE = re.compile(
    r"\b(?:ask|check with|tell|wait for|confirm with) (?:me|us)\b|\b(?:my|our|explicit) (?:approval|ok|permission|go)\b"
    r"|\bfrag\w* (?:mich|uns)\b|\brücksprache\b|\bpregúnta(?:me|nos)\b|\b(?:mi|nuestra) (?:aprobación|permiso)\b"
    r"|先问|征求|批准|同意", re.IGNORECASE
)  # fmt: skip
_NEGATED = re.compile(r"\b(?:not|no|never|without|don'?t|avoid|instead|ohne|nicht|sin|nunca)\b|不|别|勿", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
"""What somebody said is no step."""
_EMPTY = stems(
    "never dont must without please before first always anything ever unless until approval permission only should make"
    " sure again there here"
)
LEAST_COMMON = 2
"""Telling words of a rule that an action must have, all of them, to be what the rule is about."""


def next_action_is_safe(given: Case) -> Iterator[Finding]:
    """The next action does nothing that an active rule forbids, and nothing that wants asking first ungranted."""
    for item in given.snapshot.next_action:
        step = _QUOTED.sub(" ", item.text)
        if item.status != "active" or item.text.startswith(ASKS_FIRST) or _NEGATED.search(step):
            continue
        for rule in given.snapshot.constraints:
            if rule.status == "active" and _is_about(step, rule.quote or rule.text) and not _granted(given, item):
                message = f"it is what {rule.id} {'wants to be asked' if _GATE.search(rule.quote) else 'forbids'}"
                yield Finding("next", "error", message, "ask the user first", "next_action", item.id, rule.evidence)
                break


def _is_about(action: str, rule: str) -> bool:
    """Whether an action is what a prohibition or an approval gate is about: it has all the rule's telling words."""
    if not (_GATE.search(rule) or _NEGATED.search(rule)):
        return False
    wanted = (stems(rule) - _EMPTY) | exact(rule)
    there = stems(action) | exact(action)
    return len(wanted) >= LEAST_COMMON and wanted <= there


def _granted(given: Case, action: Item) -> bool:
    there = stems(action.text)
    return any(item.status == "active" and stems(item.quote) & there for item in given.snapshot.authority)
