"""Which candidates are worth their tokens."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from compactor.candidates import LINE_OVERHEAD, UNBOUND, Candidate, Group, Offer, joined, short_about, words_of
from compactor.identifiers import plain_words
from compactor.render import line_of
from compactor.snapshot import Artifact

Size = Callable[[str], int]

JOINED_OVERHEAD = 3
"""Tokens that a further line costs beside its text in an item that is there already."""
FURTHER_LINE = 0.9
"""What each further line of the same file or result keeps of its worth: a few lines tell what it is about."""
LEAST = 12
"""With fewer tokens left nothing is taken any more."""
CHARACTERS_PER_TOKEN = 3.5


class Choice:
    """Candidates taken while there is room, each rated by what it is the first to bring per token.

    Lazy greedy: worth only falls as more is covered, so the best is rated anew when it comes up, and taken if it is
    still the best. Where a group is opened its lines become cheaper and are rated again.
    """

    def __init__(
        self, room: int, size: Size, weight: Mapping[str, float], covered: Iterable[str],
        unbound: float = UNBOUND, further: float = FURTHER_LINE, least_worth: float = 0.0,
    ) -> None:  # fmt: skip
        self.least_worth = least_worth
        """What is worth no more than this per token isn't taken, though there is room."""
        self.room, self.weight, self.unbound, self.further = room, weight, unbound, further
        self.size = cache(size)
        self.covered = set(covered)
        self.taken: list[Candidate] = []
        self.open: dict[str, Group] = {}
        self.full: list[Group] = []
        self.lines: Counter[str] = Counter()

    def take(self, pool: Sequence[Candidate], lines: Sequence[Offer], groups: Mapping[str, Group], room: int) -> None:
        """Fill up to `room` tokens of what is left, best worth first."""
        bids = _Bids(self, pool, lines, groups)
        least = self.room - room + LEAST
        heap = [(-bids.worth(k, exact=False), k) for k in range(len(pool) + len(lines))]
        heapq.heapify(heap)
        while heap and self.room >= least:
            _, k = heapq.heappop(heap)
            worth = bids.worth(k, exact=True)
            if worth <= self.least_worth:
                continue
            if heap and worth < -heap[0][0] - 1e-9:
                heapq.heappush(heap, (-worth, k))
            elif bids.cost(k, exact=True) <= self.room - least + LEAST:
                for other in bids.take(k):
                    heapq.heappush(heap, (-bids.worth(other, exact=False), other))

    def value(self, found: Iterable[str], base: float = 0.0) -> float:
        """What some identifiers are worth, those that stand in the summary already apart."""
        return base + sum(self.weight.get(i, 0.0) for i in found if i not in self.covered)

    def single(self, candidate: Candidate, cost: float) -> None:
        """Take an item of its own, unless it is there already."""
        known = isinstance(candidate.item, Artifact) and f"file:{candidate.item.path}" in self.open
        if known or any(candidate is other for other in self.taken):
            return
        self.taken.append(candidate)
        self.covered |= candidate.found
        self.room -= int(cost)

    def line(self, offer: Offer, group: Group, cost: float) -> bool:
        """Take a line into its group; whether that opened the group."""
        opened = offer.group not in self.open
        group = self.open.setdefault(offer.group, group)
        if not group.takes(offer):
            self.full.append(group)
            about = group.about or short_about(group.path)
            group = self.open[offer.group] = Group(None, about, group.position, most=group.most, refs=group.refs)
        group.lines.append(offer)
        self.lines[offer.group] += 1
        self.covered |= offer.found | (group.base.found if group.base else frozenset())
        self.room -= int(cost) + 1
        return opened

    def items(self) -> list[Candidate]:
        """What was taken, in the order of the conversation."""
        alone = [c for c in self.taken if not (isinstance(c.item, Artifact) and f"file:{c.item.path}" in self.open)]
        together = [joined(group) for group in (*self.full, *self.open.values()) if group.lines]
        return sorted([*alone, *together], key=lambda candidate: candidate.position)


class _Bids:
    """Candidates and lines under one numbering, with what each is worth and costs right now."""

    def __init__(self, choice: Choice, pool: Sequence[Candidate], lines: Sequence[Offer], groups: Mapping[str, Group]):
        self.choice, self.pool, self.lines, self.groups = choice, pool, lines, groups
        texts = [words_of(candidate.item) for candidate in pool]
        self.rough = [len(text) / CHARACTERS_PER_TOKEN + LINE_OVERHEAD for text in texts]
        self.exact: dict[int, float] = {}
        told = (len(plain_words(text, c.found)) >= 2 for text, c in zip(texts, pool, strict=True))
        self.bound = [1.0 if tells else choice.unbound for tells in told]
        self.members: dict[str, list[int]] = {}
        for k, offer in enumerate(lines, len(pool)):
            self.members.setdefault(offer.group, []).append(k)

    def worth(self, k: int, exact: bool) -> float:
        """Worth per token."""
        cost = self.cost(k, exact) + 3
        if k < len(self.pool):
            candidate = self.pool[k]
            return candidate.factor * self.bound[k] * self.choice.value(candidate.found, candidate.base) / cost
        offer = self.lines[k - len(self.pool)]
        base = None if offer.group in self.choice.open else self.groups[offer.group].base
        factor = offer.factor * (1.0 if offer.bound else self.choice.unbound)
        factor *= self.choice.further ** self.choice.lines[offer.group]
        return factor * self.choice.value(offer.found | base.found if base else offer.found) / cost

    def cost(self, k: int, exact: bool) -> float:
        """Tokens it takes; roughly, from its length, where not exact."""
        if k < len(self.pool):
            return self._exact(k) if exact else self.rough[k]
        offer = self.lines[k - len(self.pool)]
        text = self.choice.size(offer.text) if exact else len(offer.text) / CHARACTERS_PER_TOKEN
        return text + (JOINED_OVERHEAD if offer.group in self.choice.open else _opening(self.groups[offer.group]))

    def _exact(self, k: int) -> float:
        if k not in self.exact:
            self.exact[k] = self.choice.size(line_of(self.pool[k].field, self.pool[k].item)) + 4
        return self.exact[k]

    def take(self, k: int) -> Sequence[int]:
        """Take it; which others to rate again."""
        cost = self.cost(k, exact=True)
        if k < len(self.pool):
            self.choice.single(self.pool[k], cost)
            return ()
        offer = self.lines[k - len(self.pool)]
        opened = self.choice.line(offer, self.groups[offer.group], cost)
        return self.members[offer.group] if opened else ()


def _opening(group: Group) -> float:
    """Tokens that opening a group costs before its first line."""
    if group.base:
        return len(words_of(group.base.item)) / CHARACTERS_PER_TOKEN + LINE_OVERHEAD + 8
    return len(group.about) / CHARACTERS_PER_TOKEN + LINE_OVERHEAD + 2
