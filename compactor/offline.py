"""Ledger -> Update, within a budget: the summary that needs no model.

What binds comes first and always: the user's rules, grants, choices and criteria in their own words, what is in hand,
what is open. The room that is left is filled with the items worth most per token: a step's outcome, a file with its
role and last change, a command that worked, a line of output, a finding. Worth is the expected later use of the
identifiers an item is the first to bring, less where no plain words tie them to what they mean. Deterministic.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from compactor import words
from compactor.candidates import beside, offers, one_line, single, telling, words_of
from compactor.choose import Choice
from compactor.fold import fold
from compactor.identifiers import exact, identifiers, plain_words, stems
from compactor.ledger import APPROVAL_LIMIT, Command, Ledger, Line, Said, Turn, proper
from compactor.render import line_of, render, shown
from compactor.snapshot import (
    FIELDS,
    Added,
    Approval,
    Authority,
    Close,
    Constraint,
    Decision,
    DoneCriterion,
    Fact,
    InProgress,
    Item,
    NextAction,
    Objective,
    OpenLoop,
    Snapshot,
    Supersede,
    Update,
)
from compactor.spoken import begun, spoken
from compactor.transcript import Ref
from compactor.verify.later import FLUFF
from compactor.verify.steering import TOLD_IN, unmarked

Size = Callable[[str], int]

PROSE_RULES = 8
"""How many restrictions are carried at most from a prose summary."""
ROUNDS, WORTHWHILE = 3, 40
"""Lines are rated by rough sizes: what the exact size leaves free is filled again, while it's worth it."""

LEAST_NEW = 0.4
"""The share of the budget that new items get at least, when a previous snapshot fills the block already."""
UNBOUND_BESIDE, FURTHER_BESIDE = 0.8, 1.0
"""What a line without plain words, and each further line of a file, keep of their worth beside an account by somebody
else, which tells what they are about. natural.py on three sessions answered by hand: bFUR +0.03."""
NEAR, TELLING = 60, 2
"""An account tells what a name is where so many plain words stand so many characters around it at most."""
SPOKEN_OF = 0.6
"""The share of a rule's telling words that an item must have to speak of it."""
WORTH_BESIDE = 0.01
"""With less worth per token a line only makes that account longer."""
ENOUGH, VAGUE = 2, 2
"""Telling words that an end and a permission must share where the end is one by its tone only; with fewer than so many
of its own, words that take something back speak of the last permission."""
SPOKEN_SHARE = 0.35
"""The share of the budget that the user's words get which are no rule, grant or choice by their form."""
TELLING_SHARE = 0.15
"""The share of the room that decisions, rejections, finished steps and risks get before the rest competes."""


def offline(ledger: Ledger, previous: Snapshot | None, budget: int, size: Size, newest: str) -> Update:
    """The update that the ledger alone gives, its block within `budget` tokens as far as what binds allows."""
    bound = _Binding(ledger, previous)
    least = int(budget * LEAST_NEW) if previous else 0

    def left(held: Snapshot) -> int:
        return max(budget - size(render(shown(held), newest)), least)

    room = min(left(fold(previous, bound.update())), int(budget * SPOKEN_SHARE))
    bound.spoken(spoken(ledger), room, size)
    held = fold(previous, update := bound.update())
    room = left(held)
    choice = Choice(room, size, ledger.weight, _told(held))
    told = list(telling(ledger))
    choice.take(told, (), {}, int(room * TELLING_SHARE))
    lines, groups = offers(ledger)
    pool = [*single(ledger), *(replace(candidate, base=0.0) for candidate in told)]
    for _ in range(ROUNDS):
        choice.take(pool, lines, groups, choice.room)
        update = bound.update(choice)
        room = budget - size(render(shown(fold(previous, update)), newest))
        if room < WORTHWHILE or previous:
            break
        choice.room = room
    return update


def left_out(ledger: Ledger, held: Snapshot) -> Update:
    """The user's rules that no item of a snapshot speaks of: of what binds, code would rather say too much."""
    spoken = [_telling_pieces(words_of(item)) for _, item in held.items()]
    quotes = [quote for _, item in held.items() if (quote := getattr(item, "quote", ""))]
    rules = []
    for said in ledger.said:
        pieces = _telling_pieces(said.text)
        known = any(quote in said.text for quote in quotes)
        known = known or any(len(pieces & others) >= SPOKEN_OF * len(pieces) for others in spoken)
        if said.kind == "rule" and pieces and not known:
            rules.append(
                Constraint(text=said.text, quote=said.text, said_by="user", evidence=(said.ref,), basis="stated")
            )
    return Update(add=Added(constraints=tuple(rules)))


def _telling_pieces(text: str) -> set[str]:
    """What is compared of two texts: their telling words, or pairs of letters where they have none."""
    letters = re.sub(r"\W+", "", text.casefold())
    return plain_words(text) or {letters[at : at + 2] for at in range(len(letters) - 1)}


def supplement(ledger: Ledger, held: Snapshot, budget: int, size: Size, newest: str) -> Update:
    """What the ledger knows and a snapshot doesn't say, its block within `budget` tokens with what it holds.

    The working set, by worth per token: files, commands that worked, findings, lines of code and output; no rules,
    decisions or steps, which the snapshot's author has judged. Of files that it names already only lines are added.
    """
    choice = Choice(0, size, ledger.weight, _told(held), UNBOUND_BESIDE, FURTHER_BESIDE, WORTH_BESIDE)
    pool, lines, groups = beside(ledger, {item.path for item in held.artifacts})
    update = Update()
    for _ in range(ROUNDS):
        room = budget - size(render(shown(fold(held, update)), newest))
        if room < WORTHWHILE:
            break
        choice.room = room
        choice.take(pool, lines, groups, room)
        fields: dict[str, list[Item]] = {}
        for candidate in choice.items():
            fields.setdefault(candidate.field, []).append(candidate.item)
        update = Update(add=Added.model_validate({name: _unmarked(name, items) for name, items in fields.items()}))
    return update


def _told(snapshot: Snapshot) -> set[str]:
    """The identifiers of which an account says what they are; one that it only lists isn't told yet."""
    texts = [words_of(item) for _, item in shown(snapshot).items()]
    return {found for text in texts for found in set(identifiers(text)) if _is_told(found, text)}


def _is_told(name: str, text: str) -> bool:
    at = text.find(name)
    around = f"{text[max(0, at - NEAR) : at]} {text[at + len(name) : at + len(name) + NEAR]}"
    return len(plain_words(around, identifiers(around))) >= TELLING


# -- what binds


class _Binding:
    """The items that stand in the summary whatever they cost."""

    def __init__(self, ledger: Ledger, previous: Snapshot | None) -> None:
        self.ledger, self.previous = ledger, previous or Snapshot()
        self.fields: dict[str, list[Any]] = {name: [] for name in FIELDS}
        self.close: list[Close] = []
        self.begun = begun(ledger)
        self.supersede: list[Supersede] = []
        self.standing = next((a.id for a in reversed(self.previous.authority) if a.status == "active"), "")
        """The last permission, or the withdrawal of it: what a withdrawal, or a new grant, replaces."""
        for said in ledger.said:
            self._said(said)
        for line in ledger.prose:
            self._prose(line)
        self._objective()
        self._answered()
        self._revoked_by_refusal()
        self._approved()
        self._plan()
        self._open()
        self._close_previous()
        self._next()

    def update(self, choice: Choice | None = None) -> Update:
        """These items and those that were chosen."""
        fields = {name: list(items) for name, items in self.fields.items()}
        for candidate in choice.items() if choice else ():
            fields[candidate.field].append(candidate.item)
        add = Added(**{name: _unmarked(name, items) for name, items in fields.items()})
        return Update(add=add, close=tuple(self.close), supersede=tuple(self.supersede))

    def spoken(self, found: Iterable[Sequence[Said]], room: float, size: Size) -> None:
        """What was said, as far as the room goes that earlier such words leave, where no item tells it whole."""
        held = [item for item in self.previous.facts if item.status == "active" and item.basis == "stated"]
        room = max(room - sum(size(line_of("facts", item)) for item in held), room * LEAST_NEW)
        ended = {closing.id for closing in self.close}
        told = "\n".join(words_of(item) for name, item in self._added() if name not in ended)
        for several in found:
            fresh = [said for said in several if said.text not in told]
            text, refs = "\n".join(said.text for said in fresh), tuple(dict.fromkeys(said.ref for said in fresh))
            item = Fact(text=text, value=text, evidence=refs, basis="stated")
            cost = size(line_of("facts", item)) + 1 if fresh else 0
            if fresh and cost <= room:
                self._add("facts", item)
                room -= cost
                told += f"\n{text}"

    def _added(self) -> Iterator[tuple[str, Item]]:
        """What is added so far, each by the name that an update has for it."""
        return ((f"{name}[{at}]", item) for name, items in self.fields.items() for at, item in enumerate(items))

    def _add(self, name: str, item: Item) -> str:
        self.fields[name].append(item)
        return f"{name}[{len(self.fields[name]) - 1}]"

    def _said(self, said: Said) -> None:
        text, refs = said.text, (said.ref,)
        if said.kind == "criterion":
            self._add("done_criteria", DoneCriterion(text=text, evidence=refs, basis="stated"))
        anew = self._withdrawal_of(text) if words.is_approval(text) else ""
        grants_anew = said.kind == "rule" and bool(anew)
        revoked = said.kind not in ("question", "request") and words.is_revocation(words.own(text))
        revoked = revoked or (said.kind != "question" and bool(self._ended(said)))
        if revoked or (said.kind in ("rule", "criterion") and not grants_anew):
            self._rule(said, revoked)
        acts = said.outward and said.kind in ("request", "rule", "approval") and not revoked
        offered = said.kind == "approval" and said.answering and _offers(said.answering.text)
        if grants_anew or said.kind == "permission" or acts or offered:
            self._grant(said)
        elif said.kind == "choice" or (
            said.kind == "approval" and len(text.split()) > 2 and len(text) <= APPROVAL_LIMIT
        ):
            if said is not self.ledger.said[0]:
                self._add("decisions", _user_decision(said))
        elif said.kind == "correction" and not revoked:
            self._add("facts", Fact(text=text, value=text, evidence=refs, basis="stated"))

    def _rule(self, said: Said, revoked: bool) -> None:
        cited = (said.ref, said.answering.ref) if said.answering and said.kind == "rule" else (said.ref,)
        rule = Constraint(text=said.text, quote=said.text, said_by="user", evidence=cited, basis="stated")
        new = self._add("constraints", rule)
        if revoked or words.is_denial(said.text):
            self._withdraw(new, said)

    def _grant(self, said: Said) -> None:
        new = self._add("authority", _authority(said))
        if gone := self._withdrawal_of(said.text):
            self.supersede.append(Supersede(id=gone, by=new, evidence=(said.ref,)))
        self.standing = new

    def _withdrawal_of(self, text: str) -> str:
        """The last withdrawal, where a later permission is about the same, or says of nothing that it is about it."""
        if not self.standing.startswith("constraints"):
            return ""
        withdrawal = self.fields["constraints"][int(self.standing[len("constraints[") : -1])].text
        return self.standing if _undoes(withdrawal, text) or not _about(text) else ""

    def _withdraw(self, new: str, said: Said) -> None:
        """What is taken back is superseded by the words that take it: what they are about, else the last permission."""
        vague = words.is_revocation(said.text) and len(_about(said.text)) < VAGUE
        for gone in self._ended(said) or ([self.standing] if self.standing and vague else []):
            self.supersede.append(Supersede(id=gone, by=new, evidence=(said.ref,)))
        self.standing = new

    def _ended(self, said: Said) -> list[str]:
        """The permissions so far that what is said ends: it speaks of an end, or forbids, and each is about the same.

        Where the agent hadn't answered yet, the user goes on from the message before.
        """
        own = words.own(said.text)
        surely = words.is_revocation(own) or words.is_denial(own) or words.ends_and_denies(own)
        ending = [s for s in words.sentences(own) if surely or words.ends(s) or words.forbids(s)]
        if not ending:
            return []
        text = " ".join([*(before.text for before in self.begun.get(said.turn, ())), *ending])
        gone = [name for name, grant in self._granted() if len(_shared(text, grant)) >= (1 if surely else ENOUGH)]
        return [
            *gone,
            *(name for name, chosen in self._so_far("decisions") if words.is_revocation(own) and _undoes(text, chosen)),
        ]

    def _granted(self) -> Iterator[tuple[str, str]]:
        """What was permitted so far: where it stands, and the sentences that permit."""
        for name, text in self._so_far("authority"):
            permits = [s for s in words.sentences(text) if words.is_permission(s) or words.is_outward(s)]
            yield name, " ".join(permits) or text

    def _so_far(self, field: str) -> Iterator[tuple[str, str]]:
        held = ((item.id, item.text) for item in self.previous.of(field) if item.status == "active")
        return chain(held, ((f"{field}[{at}]", item.text) for at, item in enumerate(self.fields[field])))

    def _prose(self, line: Line) -> None:
        """Restrictions may be carried from an earlier prose summary; permissions and completed steps never."""
        text = words.clip(re.sub(r"^(?:[-*•]|\d+[.)])\s+", "", line.text), 300)
        if line.position > 0:
            return
        restricts = re.search(r"\b(?:user|must|never|always|don't|do not|only)\b", text, re.IGNORECASE)
        if words.is_rule(text) and restricts and len(self.fields["constraints"]) < PROSE_RULES:
            self._add("constraints", Constraint(text=text, said_by="summary", evidence=(line.ref,), basis="reported"))

    def _objective(self) -> None:
        if any(item.status == "active" for item in self.previous.objective):
            return
        said = [s for s in self.ledger.said if s.kind not in ("approval", "correction")]
        asks = [s for s in said if words.length(s.text) > 12] or [s for s in said if s.kind == "request"]
        if asks:
            later = [
                s
                for s in asks[1:]
                if s.first and s.turn > asks[0].turn and words.length(s.text) >= 40 and s.kind != "word"
            ]
            text, refs = words.clip(f"{asks[0].text} {asks[0].shows}".strip(), 320), [asks[0].ref]
            standing = {item.text for name in ("constraints", "authority", "decisions") for item in self.fields[name]}
            if later and later[-1].text not in standing:
                text, refs = f"{text} Later: {words.clip(later[-1].text, 240)}", [asks[0].ref, later[-1].ref]
            self._add("objective", Objective(text=text, evidence=tuple(refs), basis="stated"))
            return
        wanted = [
            line for line in self.ledger.prose if re.search(r"\b(?:request|asked|wants?|goal|task)\b", line.text, re.I)
        ]
        for line in (wanted or list(self.ledger.prose))[:1]:
            text = words.clip(line.text, 320)
            self._add("objective", Objective(text=text, evidence=(line.ref,), basis="reported"))

    def _answered(self) -> None:
        """What was asked is on record: closed by what proves or answers it, else open to be verified."""
        for turn in self.ledger.turns:
            going_on = turn is self.ledger.turns[-1] and self.ledger.ahead is not None
            for said in turn.asked[1 if going_on else 0 :]:
                if said.kind in ("request", "question") and not (said.outward and said.kind == "request"):
                    self._asked(said, turn, going_on)

    def _asked(self, said: Said, turn: Turn, going_on: bool) -> None:
        fell_short = bool(turn.answer and words.falls_short(turn.answer.text))
        told = turn.answer.ref if turn.answer and words.asks_to_tell(said.text) else ""
        end = "" if going_on or fell_short or turn.failed else (turn.proof or told)
        doubt = "" if going_on or end or not turn.answer else "verify: "
        text = f'{doubt}asked: "{said.text}"'
        new = self._add("open_loops", OpenLoop(text=text, owner="agent", evidence=(said.ref,), basis="stated"))
        if end:
            self.close.append(Close(id=new, evidence=(end,)))

    def _approved(self) -> None:
        for plan in self.ledger.approved:
            approval = Approval(who="user", ref=plan.ref)
            decision = Decision(text=f"plan approved: {plan.text}", approved_by=approval,
                                evidence=(plan.about_ref, plan.ref), basis="stated")  # fmt: skip
            self._add("decisions", decision)

    def _revoked_by_refusal(self) -> None:
        """A refused call of a kind that was permitted before ends that permission."""
        for position, item in enumerate(self.fields["authority"]):
            for refusal in self.ledger.refusals:
                if _line_of(refusal.ref) > _line_of(item.evidence[0]) and words.acts(item.text) & words.acts(
                    refusal.text
                ):
                    self.close.append(Close(id=f"authority[{position}]", evidence=(refusal.ref,)))

    def _plan(self) -> None:
        for todo in self.ledger.plan:
            if todo.status == "in_progress":
                item = InProgress(
                    text=todo.text,
                    owner="agent",
                    evidence=tuple(dict.fromkeys((todo.origin, todo.ref))),
                    basis="reported",
                )
                self._add("in_progress", item)
            elif todo.status == "pending":
                loop = OpenLoop(
                    text=f"planned: {todo.text}",
                    owner="agent",
                    evidence=tuple(dict.fromkeys((todo.origin, todo.ref))),
                    basis="reported",
                )
                self._add("open_loops", loop)

    def _open(self) -> None:
        for job in self.ledger.jobs:
            text = f"job started and not seen finished: {job.text}"
            self._add("open_loops", OpenLoop(text=text, owner="agent", next="look at its output",
                                             evidence=(job.about_ref, job.ref), basis="observed"))  # fmt: skip
        last: dict[str, Command] = {proper(c.text): c for c in self.ledger.commands if c.is_test}
        failing = [c for c in last.values() if not c.ok and not c.fixed_by]
        for command in failing[-3:]:
            text = f"`{one_line(command.text, 120)}` fails: {command.told}"
            self._add("open_loops", OpenLoop(text=text, owner="agent", next="make it pass",
                                             evidence=(command.ref, command.result), basis="observed"))  # fmt: skip

    def _close_previous(self) -> None:
        """What the plan has finished, or a later run mended, is open no more."""
        done = {_plain(todo.text): todo for todo in self.ledger.plan if todo.status == "completed"}
        passed = {c.text: c for c in self.ledger.commands if c.ok}
        proof = next((turn.proof for turn in self.ledger.turns if turn.proof), "") if not self.ledger.ahead else ""
        for name in ("in_progress", "open_loops"):
            for item in self.previous.of(name):
                if item.status != "active":
                    continue
                todo = done.get(_plain(item.text.removeprefix("planned: ")))
                run = next((c for text, c in passed.items() if f"`{one_line(text, 120)}` fails" in item.text), None)
                if todo:
                    self.close.append(Close(id=item.id, evidence=(todo.proof or todo.ref,)))
                elif run:
                    self.close.append(Close(id=item.id, evidence=(run.result,)))
                elif name == "in_progress" and item.text.startswith("asked: ") and proof:
                    self.close.append(Close(id=item.id, evidence=(proof,)))

    def _next(self) -> None:
        turn = self.ledger.turns[-1] if self.ledger.turns else None
        asked = [s for s in turn.asked if s.kind != "approval"] if turn else []
        current = next((t for t in self.ledger.plan if t.status == "in_progress"), None)
        last = self.ledger.sentences[-1] if self.ledger.sentences else None
        ahead = self.ledger.ahead
        if asked and turn and (ahead or not turn.answer):
            quote = words.clip(asked[0].text, 200)
            step = words.clip(ahead.text, 200) if ahead else ""
            refs = (asked[0].ref, *((ahead.ref,) if ahead else ()))
            item = InProgress(text=f'asked: "{quote}"', owner="agent", next=step, evidence=refs)
            self._add("in_progress", item)
        if current:
            text, refs = f"in the plan: {current.text}", tuple(dict.fromkeys((current.origin, current.ref)))
        elif ahead:
            text, refs = f"the agent was about to: {words.clip(ahead.text, 200)}", (ahead.ref,)
        elif asked and last:
            request, end = words.clip(asked[0].text, 160), words.clip(last.text, 160)
            text = f'the last request was "{request}"; the agent ended with: {end}'
            refs = (asked[0].ref, last.ref)
        elif last:
            text, refs = f"the agent ended with: {words.clip(last.text, 200)}", (last.ref,)
        elif self.ledger.said:
            text, refs = f'unanswered: "{words.clip(self.ledger.said[-1].text, 200)}"', (self.ledger.said[-1].ref,)
        else:
            return
        self._add("next_action", NextAction(text=text, evidence=refs, basis="reported"))


def _unmarked(name: str, items: Iterable[Item]) -> tuple[Any, ...]:
    """Items whose words hold no marks of a chat template or a call; quotes stay what was said."""
    return tuple(items) if name in ("constraints", "authority") else tuple(map(_without_marks, items))


def _without_marks(item: Item) -> Item:
    told = ((key, getattr(item, key, "")) for key in TOLD_IN)
    changed = {key: plain for key, value in told if value and (plain := unmarked(value)) != value}
    return item.model_copy(update=changed) if changed else item


def _about(text: str) -> set[str]:
    """What a permission, or its end, speaks of: names, numbers, acts, the beginnings of telling words."""
    return _names(text) | stems(" ".join(words.acts(text))) | (stems(text) - FLUFF)


def _names(text: str) -> set[str]:
    """Names and numbers; among Chinese signs each word in other letters is a name."""
    return exact(text) | (set(re.findall(r"[A-Za-z]{3,}", text)) if re.search(r"[\u3400-\u9fff]", text) else set())


def _shared(text: str, other: str) -> set[str]:
    """What two texts both speak of; nothing where both have names and none in common."""
    mine, others = _names(text), _names(other)
    return set() if mine and others and not mine & others else _about(text) & _about(other)


def _undoes(text: str, chosen: str) -> bool:
    """Whether words that take something back are about a choice: a name of it, or half of all that they speak of."""
    shared = _shared(text, chosen)
    return bool(shared & _names(chosen)) or 2 * len(shared) >= max(len(_about(text)), 1)


def _offers(text: str) -> bool:
    """Whether an agent's line asks or proposes something that a short yes can permit."""
    if re.search(
        r"\b(?:do you (?:know|have|see|remember)|did (?:you|it)|was (?:it|that)|is (?:it|that)|are you)\b", text, re.I
    ):
        return False
    return words.is_question(text) or words.decides(text) or words.looks_ahead(text) or text.endswith(":")


def _authority(said: Said) -> Authority:
    refs, scope = [said.ref], "as quoted"
    if said.answering and words.is_approval(said.text):
        scope = f'answering "{words.clip(said.answering.text, 160)}"'
        refs.append(said.answering.ref)
    return Authority(text=said.text, quote=said.text, granted_by="user", scope=scope, evidence=tuple(refs),
                     basis="stated")  # fmt: skip


def _user_decision(said: Said) -> Decision:
    text, refs = said.text, [said.ref]
    if said.answering and len(said.text) < 60:
        text = f'{said.text} (to: "{words.clip(said.answering.text, 120)}")'
        refs.append(said.answering.ref)
    why = words.reason(said.text) if len(said.text) > 120 else ""
    approval = Approval(who="user", ref=said.ref)
    evidence = tuple(dict.fromkeys(refs))
    return Decision(text=text, why=why, approved_by=approval, evidence=evidence, basis="stated")


def _line_of(text: str) -> int:
    return Ref.parse(text).line


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()
