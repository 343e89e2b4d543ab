"""Whether rules and permissions are the words of those who may lay them down."""

import re
from collections.abc import Iterator

from compactor import words
from compactor.evidence import normal
from compactor.identifiers import plain_words
from compactor.snapshot import Authority, Constraint
from compactor.transcript import Part
from compactor.verify.case import Case
from compactor.verify.finding import Finding


def quotes_stand(given: Case) -> Iterator[Finding]:
    """A rule or permission quotes the cited entry, and the one named said it there."""
    for name, item in given.active():
        if not isinstance(item, Constraint | Authority) or given.elsewhere(item):
            continue
        speaker = item.said_by if isinstance(item, Constraint) else item.granted_by
        if not _spoken(given, item, speaker):
            message = f"{speaker or 'nobody named'} didn't say this there"
            cure = "quote the user or the system word for word, or make it a loop"
            yield Finding("quotes", "error", message, cure, name, item.id, item.evidence)


def _spoken(given: Case, item: Constraint | Authority, speaker: str) -> bool:
    quote = normal(item.quote)
    if speaker == "user":
        return bool(quote) and any(_whole(quote, normal(said)) for said in given.evidence.said(item.evidence))
    parts = [part for ref in item.evidence for part in given.evidence.parts(ref)]
    if speaker == "system":
        return bool(quote) and any(part.speaker == "system" and quote in normal(part.text) for part in parts)
    if speaker == "summary" and isinstance(item, Constraint) and item.basis == "reported":
        wanted = normal(item.text.removesuffix(" …"))
        return any(part.speaker == "summary" and wanted in normal(part.text) for part in parts)
    return False


def _whole(quote: str, said: str) -> bool:
    """Whether a quote stands there and is cut at neither end inside a word."""
    return re.search(rf"(?<!\w){re.escape(quote)}(?!\w)" if quote[0].isalnum() and quote[-1].isalnum()
                     else re.escape(quote), said) is not None  # fmt: skip


_DENIES = re.compile(r"\b(?:never|not|no|don'?t|can'?t|won'?t|mustn'?t|nicht|nie|kein\w*|nunca)\b|n['’]t\b", re.I)
_CONDITION = re.compile(r"\b(?:without|unless|except|before|until|if|wenn|bis|außer|ohne|si|hasta|salvo|sin)\b", re.I)
"""Words that turn into something else what stands in their clause, and what stands in their sentence."""
_CLAUSE = re.compile(r"[,;:.!?()—–]|\s-\s|\b(?:but|so|aber|pero)\b")


def quotes_are_whole(given: Case) -> Iterator[Finding]:
    """What is said of a quote is the quote; and it isn't cut out of a sentence that means something else."""
    for name, item in given.active():
        if not isinstance(item, Constraint | Authority) or not item.quote or given.elsewhere(item):
            continue
        if isinstance(item, Constraint) and normal(item.text) != normal(item.quote):
            message = "says something else than its quote"
            yield Finding("wording", "error", message, "use the words of the quote", name, item.id, item.evidence)
        if whole_sentence(given, item) != item.quote:
            message = "its quote is cut out of a sentence whose rest bears on it"
            yield Finding("cut", "error", message, "quote the whole sentence", name, item.id, item.evidence)


def whole_sentence(given: Case, item: Constraint | Authority) -> str:
    """The sentence that a quote is cut out of, where the rest of it turns its sense; else the quote."""
    quote = normal(item.quote)
    for said in given.evidence.said(item.evidence):
        for sentence in words.sentences(said):
            before, _, after = normal(sentence).partition(quote)
            rest, beside = f"{before} {after}", f"{_CLAUSE.split(before)[-1]} {_CLAUSE.split(after)[0]}"
            turned = bool(_CONDITION.search(rest) or _DENIES.search(beside))
            turned = turned or (isinstance(item, Authority) and words.is_question(sentence))
            if quote in normal(sentence) and len(rest.split()) > 0 and rest.strip(" .,;:!?") and turned:
                return sentence
    return item.quote


def rules_end_by_word(given: Case) -> Iterator[Finding]:
    """What the user or the system laid down ends only by their own words: else a tool's output could lift it."""
    for name, item in given.snapshot.items():
        if not isinstance(item, Constraint) or item.status == "active":
            continue
        parts = [part for ref in item.change for part in given.evidence.parts(ref)]
        at_hand = all(given.evidence.knows(ref) for ref in item.change)
        if at_hand and not any(part.speaker == "system" or _lifts(given, part, item) for part in parts):
            message = f"is {item.status}, and nobody who may says so there"
            yield Finding(
                "ended", "error", message, "cite the words that end it, or carry it", name, item.id, item.change
            )


def _lifts(given: Case, part: Part, rule: Constraint) -> bool:
    """Whether the user speaks there of the rule: in words that both have, or in one that takes its place."""
    replaced = any(other.id == rule.by for other in (*given.snapshot.constraints, *given.snapshot.authority))
    words_of_rule = plain_words(rule.quote or rule.text)
    return any(replaced or plain_words(said) & words_of_rule for said in part.said)


def permissions_are_narrow(given: Case) -> Iterator[Finding]:
    """A permission says no more than its quote, which permits; its scope and limits were said."""
    for name, item in given.active():
        if not isinstance(item, Authority) or given.elsewhere(item):
            continue
        if says_no(item.quote):
            yield Finding("denied", "error", "its quote says no", "it is a constraint", name, item.id, item.evidence)
            continue
        wide = sorted(plain_words(item.text) - plain_words(item.quote)) if item.text != item.quote else []
        if wide:
            message = f"says more than its quote: {', '.join(wide[:5])}"
            yield Finding("authority", "error", message, "use the words of the quote", name, item.id, item.evidence)
        if not _is_said(given, item):
            message = f"its scope isn't what was said: {item.scope!r}"
            cure = "quote the scope, or say `not stated`"
            yield Finding("authority", "error", message, cure, name, item.id, item.evidence)
        for limit in unsaid_limits(given, item):
            message = f"leaves out the limit said with it: {limit!r}"
            yield Finding("authority", "error", message, "put the limit into `excludes`", name, item.id, item.evidence)


def says_no(quote: str) -> bool:
    """Whether a quote denies or takes back what it would have to permit."""
    return words.is_denial(quote) or words.is_revocation(quote)


_NO_SCOPE = ("", "as quoted", "not stated", "once")


def _is_said(given: Case, item: Authority) -> bool:
    """Whether a permission's scope stands in the words of its speaker there, or in what they answer."""
    scope = _unmarked(item.scope.removeprefix("answering ").strip('"').removesuffix(" …"))
    parts = (part for ref in item.evidence for part in given.evidence.parts(ref))
    asked = (part.text for part in parts if part.speaker == "assistant" or (part.kind == "result" and part.said))
    said = given.evidence.said(item.evidence) if _unmarked(item.quote) in scope else ()  # more of the same sentence
    return item.scope in _NO_SCOPE or any(scope in _unmarked(text) for text in (item.quote, *said, *asked))


def _unmarked(text: str) -> str:
    """A text to compare, without emphasis: the ledger's sentences have none."""
    return normal(text.replace("**", ""))


def unsaid_limits(given: Case, item: Authority) -> Iterator[str]:
    """Limiting sentences of the same message that neither the item nor a constraint has."""
    stands = normal(" ".join((item.text, item.quote, item.excludes)))
    quote = normal(item.quote)
    for ref in item.evidence:
        spoken = [said for part in given.evidence.whole_message(ref) for said in part.said]
        if not any(quote in normal(said) for said in spoken):
            continue
        for said in spoken:
            for sentence in words.sentences(said):
                limit = normal(sentence)
                limits = words.is_rule(sentence) and words.has_limit(sentence)
                if limits and limit not in stands and not any(limit in rule or rule in limit for rule in given.rules):
                    yield sentence
