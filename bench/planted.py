"""Transcripts with sentences planted in them that must survive, and with some that must not become rules.

The sentences are `fixtures/needles/phrasings.json`, the work around them is made: files read and written, commands and
their output, the agent's prose, small talk. Seeded: the same seed gives the same bytes.
"""

import json
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.generate import Session

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))  # where conversations are told in few words

from build import FORMS, Form, Talk, line, records, whole  # noqa: E402

PHRASINGS = ROOT / "fixtures" / "needles" / "phrasings.json"
LANGUAGES = ("en", "de", "es", "zh")
FIRST = 3
"""The turn from which on needles are planted."""
BARE_TURNS, LATER_TURNS = 6, 10
"""Turns without needles after the last one of the first part, and in each later part."""
MIXED = 6
"""How many transcripts have all languages in them."""

Half = Literal["even", "odd", "all"]
_SLOT = re.compile(r"\{([a-z0-9_]+)\}")


@dataclass(frozen=True)
class Needle:
    """A sentence, or a few, as it was planted."""

    kind: str
    lang: str
    style: str
    text: tuple[str, ...]
    must: tuple[str, ...]
    also: tuple[tuple[str, str], ...] = ()
    """What else is known of it: its `scope`, what it `rejected` or `revoked`, when it `expires`."""
    values: tuple[str, ...] = ()

    def of(self, name: str) -> list[str]:
        return [value for key, value in self.also if key == name]


@dataclass(frozen=True)
class Negative:
    """Words that must not become a rule, a permission or an accepted decision."""

    lang: str
    who: str
    text: str
    forbidden: tuple[str, ...]
    pinned: tuple[str, str] = ("", "")
    """A slot and the value that a needle with such a slot must have: the text holds one that looks like it."""


@dataclass(frozen=True)
class Phrasings:
    needles: Mapping[str, Sequence[Mapping[str, Any]]]
    negatives: Mapping[str, Sequence[Negative]]
    fillers: Mapping[tuple[str, str], Sequence[str]]


@dataclass
class Planted:
    """A conversation in parts: each is what is new since the one before."""

    name: str
    form: Form
    needles: list[Needle]
    negatives: list[Negative]
    parts: list[bytes]
    said: list[str] = field(default_factory=list)
    """All that the user says in it."""


def load(half: Half = "all") -> Phrasings:
    """The phrasings of that half: of each language every other needle and negative."""
    told = json.loads(PHRASINGS.read_text("utf-8"))
    needles, negatives = (
        {lang: _half(told[name], lang, half) for lang in LANGUAGES} for name in ("needles", "negatives")
    )
    fillers = {
        (lang, who): [f["text"] for f in told["fillers"] if (f["lang"], f["who"]) == (lang, who)]
        for lang in LANGUAGES for who in ("user", "assistant")
    }  # fmt: skip
    return Phrasings(needles, {lang: [_negative(n) for n in negatives[lang]] for lang in LANGUAGES}, fillers)


def _half(told: Sequence[Mapping[str, Any]], lang: str, half: Half) -> list[Mapping[str, Any]]:
    own = [one for one in told if one["lang"] == lang]
    return own if half == "all" else own[half == "odd" :: 2]


def _negative(told: Mapping[str, Any]) -> Negative:
    near = told.get("near", {})
    pinned = (near.get("slot", ""), near.get("value", ""))
    return Negative(told["lang"], told["who"], told["text"], tuple(told["forbidden"]), pinned)


def transcripts(phrasings: Phrasings, seed: int, count: int, folds: int) -> Iterator[Planted]:
    """Transcripts that plant every needle once, `count` in each, and some more of all languages mixed."""
    number = 0
    for lang in (*LANGUAGES, *("mixed",) * MIXED):
        here, chance = LANGUAGES if lang == "mixed" else (lang,), random.Random(f"{seed} {number}")
        pool = [needle for language in here for needle in phrasings.needles[language]]
        wrong = [negative for language in here for negative in phrasings.negatives[language]]
        chance.shuffle(pool)
        chance.shuffle(wrong)
        size = count if lang == "mixed" else len(pool)
        for at in range(0, size, count):
            share = -(-len(wrong) * count // max(len(pool), 1))
            form = FORMS[number % len(FORMS)]
            name = f"{lang}-{number}"
            wrong_here = _slice(wrong, at // count, share)
            own = random.Random(f"{seed} {name}")
            yield _planted(name, form, pool[at : at + count], wrong_here, phrasings, folds, own)
            number += 1


def _slice(negatives: Sequence[Negative], number: int, share: int) -> list[Negative]:
    """The negatives of a transcript; one of its two near values for a slot, as a slot has one value."""
    taken: dict[str, Negative] = {}
    for at, negative in enumerate(negatives[number * share : (number + 1) * share]):
        taken.setdefault(negative.pinned[0] or str(at), negative)
    return list(taken.values())


def _planted(
    name: str, form: Form, told: Sequence[Mapping[str, Any]], negatives: list[Negative], phrasings: Phrasings,
    folds: int, chance: random.Random,
) -> Planted:  # fmt: skip
    pinned = dict(negative.pinned for negative in negatives)
    needles = [_filled(needle, pinned, chance) for needle in told]
    work = _Work(chance, phrasings, list(dict.fromkeys(needle.lang for needle in needles)))
    ends = [work.first(needles, negatives)]
    ends += [work.later() for _ in range(folds - 1)]
    said = [step.text for step in work.talk.steps if step.role == "user"]
    return Planted(name, form, needles, negatives, list(_stored(form, work.talk, ends)), said)


def _filled(told: Mapping[str, Any], pinned: Mapping[str, str], chance: random.Random) -> Needle:
    values = {
        slot: pinned[slot] if pinned.get(slot) in pool else chance.choice(pool) for slot, pool in told["slots"].items()
    }

    def fill(text: str) -> str:
        return _SLOT.sub(lambda match: values[match[1]], text)

    also = tuple((key, fill(value)) for one in told["also"] for key, value in one.items())
    text, must = (tuple(map(fill, told[key])) for key in ("text", "must"))
    exact = tuple(v for slot, v in values.items() if re.search(r"\d|[_/.]", v) and any(v in one for one in must))
    return Needle(told["kind"], told["lang"], told["style"], text, must, also, exact)


def _stored(form: Form, talk: Talk, ends: Sequence[int]) -> Iterator[bytes]:
    """The records of each part, as they are appended to the file one part after another."""
    assert whole(form, []) is None
    held, steps, before = records(form, talk), talk.steps, 0
    for end in ends:
        part = Talk()
        part.steps = steps[:end]
        upto = len(records(form, part))
        yield b"".join(map(line, held[before:upto]))
        before = upto


class _Work:
    """A conversation in the making."""

    def __init__(self, chance: random.Random, phrasings: Phrasings, langs: Sequence[str]) -> None:
        self.chance, self.langs = chance, langs
        self.session = Session(chance.getrandbits(32))
        self.talk = Talk().system("You are an engineer's agent in a terminal.")
        self.fillers: dict[tuple[str, str], list[str]] = {}
        self.phrasings = phrasings

    def first(self, needles: Sequence[Needle], negatives: Sequence[Negative]) -> int:
        """The part that has them all, and bare turns behind; where it ends."""
        for _ in range(FIRST - 1):
            self.turn()
        queue: list[tuple[int, Needle | Negative]] = [(0, n) for n in needles] + [(0, n) for n in negatives]
        self.chance.shuffle(queue)
        grants = [(1, n) for n in needles if n.kind == "revocation"]
        later = list(self.chance.sample(grants, len(grants)))
        for stage, one in (*queue, *later):
            if isinstance(one, Negative):
                self.wrong(one)
            elif one.kind == "revocation":
                self.needle(one, one.text[:1] if stage == 0 else one.text[1:])
            else:
                self.needle(one, one.text)
            if self.chance.random() < 0.4:
                self.turn()
        for _ in range(BARE_TURNS):
            self.turn()
        return len(self.talk.steps)

    def later(self) -> int:
        for _ in range(LATER_TURNS):
            self.turn()
        return len(self.talk.steps)

    def needle(self, needle: Needle, messages: Sequence[str]) -> None:
        for message in messages:
            self.talk.user(message)
        self.answer(needle.lang)

    def wrong(self, negative: Negative) -> None:
        if negative.who == "user":
            self.talk.user(negative.text)
            self.answer(negative.lang)
        elif negative.who == "tool":
            self.talk.user(self.filler(negative.lang, "user"))
            self.step(negative.text)
            self.talk.agent(self.filler(negative.lang, "assistant"))
        else:
            self.talk.user(self.filler(negative.lang, "user"))
            self.step()
            self.talk.agent(negative.text)
            self.talk.user(self.asking(negative.lang))
            self.answer(negative.lang)

    def turn(self) -> None:
        lang = self.chance.choice(self.langs)
        self.talk.user(self.filler(lang, "user"))
        self.answer(lang)

    def answer(self, lang: str) -> None:
        self.talk.agent(self.filler(lang, "assistant"))
        for _ in range(self.chance.randint(1, 3)):
            self.step()
        self.talk.agent(self.filler(lang, "assistant"))

    def step(self, shows: str = "") -> None:
        """A call with its result; `shows` stands somewhere in it."""
        path = self.chance.choice(self.session.paths)
        match "run" if shows else self.chance.choice(("read", "run", "edit", "search")):
            case "read":
                self.talk.read(path, self.session.code(self.chance.randint(1, 3)))
            case "edit":
                self.talk.edited(path, self.session.code(1), self.session.code(1))
            case "search":
                self.talk.tool("Grep", self.session.search()[1], pattern=self.session.word())
            case _:
                lines = self.session.log().split("\n")
                lines[self.chance.randrange(len(lines)) : 0] = [shows] if shows else []
                self.talk.ran(f"make {self.session.word()}", "\n".join(lines[-12:] if not shows else lines))

    def filler(self, lang: str, who: str) -> str:
        """Small talk, none twice before all were had."""
        held = self.fillers.setdefault((lang, who), [])
        if not held:
            held += self.chance.sample(self.phrasings.fillers[lang, who], len(self.phrasings.fillers[lang, who]))
        return held.pop()

    def asking(self, lang: str) -> str:
        """A question: what stands after a proposal and takes nothing up."""
        return next(f for f in iter(lambda: self.filler(lang, "user"), "") if f.endswith(("?", "？")))
