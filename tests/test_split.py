"""Law 4: no cut parts what belongs together, and the tail is as long as asked."""

import dataclasses
from collections.abc import Sequence

import pytest
from build import Talk, answers, call, calls, conversation, entry, human, said
from hypothesis import assume, given, settings
from strategies import CONVERSATIONS, KEEPS

from compactor.split import Cut, Keep, Size, choose, cuts, pair, safe_positions, starts_turn
from compactor.transcript import Entry, Transcript

# The oracle: the same rules, written once more, slowly and without the code under test


def live(transcript: Transcript) -> list[Entry]:
    return [transcript.entries[index] for index in transcript.live]


def places(entries: Sequence[Entry], kind: str) -> list[tuple[int, str]]:
    return [(at, part.call_id) for at, e in enumerate(entries) for part in e.parts if part.kind == kind]


def partners(entries: Sequence[Entry]) -> tuple[list[tuple[int, int]], set[int]]:
    """Each result with its call, and the positions of the calls that are left over.

    A result answers the latest call of its id before it that is free, else (where there was none at all yet) the
    first free one behind it; a further result goes with the latest call before it.
    """
    made = places(entries, "call")
    taken: set[int] = set()
    pairs = []
    for at, name in places(entries, "result"):
        mine = [k for k, (_, other) in enumerate(made) if other == name]
        before = [k for k in mine if made[k][0] < at]
        free = [k for k in before if k not in taken]
        behind = [k for k in mine if made[k][0] > at and k not in taken] if not before else []
        chosen = free[-1:] or before[-1:] or behind[:1]
        taken.update(chosen)
        pairs += [(made[k][0], at) for k in chosen]
    return pairs, {at for k, (at, _) in enumerate(made) if k not in taken}


def is_open(entries: Sequence[Entry], at: int) -> bool:
    """Whether nothing but results, bookkeeping and its own message's pieces follows the call at that place."""
    own = entries[at].message
    return all(
        all(part.kind == "result" for part in later.parts) or (bool(own) and later.message == own)
        for later in entries[at + 1 :]
    )


def is_safe(transcript: Transcript, position: int) -> bool:
    entries = live(transcript)
    pairs, unanswered = partners(entries)
    names = {e.message for e in entries if e.message}
    torn_pair = any(min(pair) < position <= max(pair) for pair in pairs)
    torn_message = any(
        any(e.message == name for e in entries[:position]) and any(e.message == name for e in entries[position:])
        for name in names
    )
    left_open = any(at < position and is_open(entries, at) for at in unanswered)
    return transcript.first <= position and not (torn_pair or torn_message or left_open)


def length(transcript: Transcript, tokens: Sequence[int], position: int) -> Size:
    """How long the tail from that position is."""
    tail = live(transcript)[position:]
    results = sum(part.kind == "result" for e in tail for part in e.parts)
    whole = {e.message or e.index for e in tail if not e.parts or any(part.kind != "result" for part in e.parts)}
    turns = sum(any(p.speaker == "human" and p.kind == "text" for p in e.parts) for e in tail)
    return Size(results + len(whole), turns, sum(tokens[position:]))


def long_enough(keep: Keep, size: Size) -> bool:
    wanted = (keep.messages, keep.turns, keep.tokens)
    asked = (8, None, None) if wanted == (None, None, None) else wanted
    return all(have >= (want or 0) for want, have in zip(asked, dataclasses.astuple(size), strict=True))


# The law


@given(CONVERSATIONS)
@settings(max_examples=200)
def test_exactly_the_positions_that_part_nothing_are_safe(transcript: Transcript) -> None:
    expected = [at for at in range(len(transcript.live) + 1) if is_safe(transcript, at)]
    assert safe_positions(transcript) == expected


@given(CONVERSATIONS)
def test_a_call_with_an_id_of_its_own_stays_with_all_its_results(transcript: Transcript) -> None:
    entries = live(transcript)
    made, got = places(entries, "call"), places(entries, "result")
    ids = [name for _, name in made]
    for position in safe_positions(transcript):
        for at, name in made:
            if ids.count(name) == 1:
                assert all((at < position) == (result < position) for result, other in got if other == name)


@given(CONVERSATIONS)
def test_sizes_of_tails_are_counted_as_the_model_sees_them(transcript: Transcript) -> None:
    tokens = list(range(1, len(transcript.live) + 1))
    for cut in cuts(transcript, tokens):
        assert cut.tail == length(transcript, tokens, cut.at)


@given(CONVERSATIONS, KEEPS)
def test_the_tail_is_at_least_as_long_as_asked_or_the_nearest_shorter_one(transcript: Transcript, keep: Keep) -> None:
    tokens = [7 * len(e.parts) for e in live(transcript)]
    at_all = [at for at in range(transcript.first + 1, len(transcript.live) + 1) if is_safe(transcript, at)]
    fitting = [at for at in at_all if long_enough(keep, length(transcript, tokens, at))]
    cut = choose(transcript, tokens, keep)
    if fitting:
        assert cut is None if cut is None and transcript.ours else cut is not None
        if cut:
            assert cut.at in fitting
            assert not cut.note
    elif cut:
        assert cut.at == at_all[0]
        assert cut.tail.messages > 0
        assert not transcript.ours
        assert f"kept {cut.tail.messages} messages" in cut.note
    else:
        assert transcript.ours or not at_all or length(transcript, tokens, at_all[0]).messages == 0


@given(CONVERSATIONS, KEEPS)
def test_more_than_the_shortest_fitting_tail_is_kept_only_for_a_near_turn(transcript: Transcript, keep: Keep) -> None:
    tokens = [7 * len(e.parts) for e in live(transcript)]
    cut = choose(transcript, tokens, keep)
    assume(cut is not None and not cut.note)
    assert cut
    fitting = [c for c in cuts(transcript, tokens) if long_enough(keep, c.tail)]
    if cut.at == fitting[-1].at:
        return
    wanted = (8, 0, 0) if keep == Keep() else (keep.messages or 0, keep.turns or 0, keep.tokens or 0)
    within = [have <= 1.5 * want for want, have in zip(wanted, dataclasses.astuple(cut.tail), strict=True) if want]
    assert any(within)
    assert cut.at == len(transcript.live) or starts_turn(live(transcript)[cut.at])


@given(CONVERSATIONS, KEEPS)
def test_cutting_what_was_cut_already_finds_nothing_to_do(transcript: Transcript, keep: Keep) -> None:
    tokens = [7 * len(e.parts) for e in live(transcript)]
    cut = choose(transcript, tokens, keep)
    assume(cut is not None)
    assert cut
    kept = [*live(transcript)[: transcript.fixed], entry(0, said("[compact record]")), *live(transcript)[cut.at :]]
    after = conversation([dataclasses.replace(e, index=at) for at, e in enumerate(kept)], transcript.fixed, block=True)
    assert choose(after, [7 * len(e.parts) for e in live(after)], keep) is None


@given(CONVERSATIONS)
def test_keep_0_keeps_only_open_calls(transcript: Transcript) -> None:
    cut = choose(transcript, [1] * len(transcript.live), Keep(messages=0))
    _, unanswered = partners(live(transcript))
    if cut and cut.at < len(transcript.live):
        assert any(at >= cut.at and is_open(live(transcript), at) for at in unanswered)
        later = range(cut.at + 1, len(transcript.live) + 1)
        assert not any(is_safe(transcript, at) for at in later)


# Cases


def at(transcript: Transcript, keep: Keep) -> Cut | None:
    return choose(transcript, [10] * len(transcript.live), keep)


def naive(entries: Sequence[Entry], keep: int) -> int:
    """What many tools do: count from the end, then step over tool messages."""
    position = max(0, len(entries) - keep)
    while position < len(entries) and any(part.kind == "result" for part in entries[position].parts):
        position += 1
    return position


def test_a_long_parallel_batch_at_the_end_is_kept_whole_where_the_naive_rule_keeps_nothing() -> None:
    batch = [call(f"p{k}", command=f"ls {k}") for k in range(10)]
    talk = Talk().user("Look.").agent("I look.").user("Everywhere.").agent("", *batch)
    for one in batch:
        talk.result(one.id, "files")
    transcript = talk.transcript("openai")
    assert naive(live(transcript), 4) == len(transcript.live)
    cut = at(transcript, Keep(messages=4))
    assert cut
    assert [entry.role for entry in live(transcript)[cut.at :]] == ["assistant", *["tool"] * 10]


def test_a_loop_of_tool_pairs_with_no_user_message_can_be_cut() -> None:
    talk = Talk().user("Run them all.")
    for k in range(200):
        talk.ran(f"make part-{k}", "ok")
    cut = at(talk.transcript("openai"), Keep())
    assert cut == Cut(401 - 8, Size(8, 0, 80), starts_turn=False)


def test_a_turn_that_starts_near_is_where_the_tail_begins() -> None:
    talk = Talk().user("One.").agent("1").user("Two.").agent("2").user("Three.").agent("3")
    near, far = at(talk.transcript("openai"), Keep(messages=3)), at(talk.transcript("openai"), Keep(messages=1))
    assert near
    assert (near.at, near.tail.messages, near.starts_turn) == (2, 4, True)
    assert far
    assert (far.at, far.tail.messages, far.starts_turn) == (5, 1, False)  # two would be more than half as much again


@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        (Keep(messages=4), 6),
        (Keep(turns=2), 6),
        (Keep(tokens=40), 6),
        (Keep(messages=2, turns=3), 4),
        (Keep(messages=6, tokens=20), 4),
        (Keep(), 2),
    ],
)
def test_the_largest_measure_wins(keep: Keep, expected: int) -> None:
    talk = Talk()
    for k in range(5):
        talk.user(f"Do {k}.").agent("Done.")
    cut = at(talk.transcript("openai"), keep)
    assert cut
    assert cut.at == expected


def test_where_the_asked_tail_leaves_no_head_a_shorter_one_is_kept_and_said() -> None:
    talk = Talk().user("Look.").agent("", call("a"), call("b")).result("a").result("b").agent("Seen.")
    cut = at(talk.transcript("openai"), Keep(messages=20))
    assert cut
    assert (cut.at, cut.tail.messages) == (1, 4)
    assert cut.note == "the tail asked for would leave no head; kept 4 messages instead"


def test_behind_a_block_a_tail_as_long_as_asked_or_shorter_is_left_alone() -> None:
    entries = [entry(0, said("[compact record]"))] + [entry(k, human()) for k in range(1, 7)]
    assert at(conversation(entries, block=True), Keep(messages=6)) is None
    assert at(conversation(entries, block=True), Keep(messages=9)) is None
    grown = at(conversation([*entries, entry(7, human())], block=True), Keep(messages=6))
    assert grown
    assert grown.tail.messages == 6


def test_a_tail_that_reached_back_to_a_turn_is_not_cut_again() -> None:
    entries = [entry(0, said("[compact record]")), entry(1, human()), *(entry(k, said()) for k in range(2, 6))]
    assert at(conversation(entries, block=True), Keep(messages=4)) is None  # 5 were kept for the turn


def test_nothing_can_be_cut_where_one_unit_spans_everything() -> None:
    entries = [entry(0, calls("a")), entry(1, human()), entry(2, said()), entry(3, answers("a"))]
    assert safe_positions(conversation(entries)) == [0, 4]
    assert at(conversation(entries), Keep(messages=2)) is None
    assert at(conversation([]), Keep()) is None


@pytest.mark.parametrize("keep", [Keep(messages=0), Keep(turns=0), Keep(tokens=0), Keep(0, 0, 0)])
def test_keep_0_takes_everything_up_to_the_open_calls(keep: Keep) -> None:
    done = Talk().user("Look.").ran("ls", "a").agent("Seen.")
    cut = at(done.transcript("openai"), keep)
    assert cut
    assert cut.at == 4
    open_call = done.user("And b?").agent("", call("x"), call("y")).result("x", "b").transcript("openai")
    cut = at(open_call, keep)
    assert cut
    assert [e.role for e in live(open_call)[cut.at :]] == ["assistant", "tool"]


def test_a_call_that_was_never_answered_bars_no_cut_once_the_talk_went_on() -> None:
    transcript = Talk().user("Look.").agent("", call("a")).user("Forget it.").agent("Fine.").transcript("openai")
    assert safe_positions(transcript) == [0, 1, 2, 3, 4]
    assert pair(live(transcript)).unanswered == {1}


def test_the_pieces_of_a_split_message_stay_together_and_count_once() -> None:
    pieces = [
        entry(0, human()),
        entry(1, said(), message="m"),
        entry(2, calls("a"), message="m"),
        entry(3, answers("a")),
        entry(4, calls("b"), message="m"),
        entry(5, answers("b")),
        entry(6, human()),
    ]
    assert safe_positions(conversation(pieces)) == [0, 1, 6, 7]
    assert [cut.tail.messages for cut in cuts(conversation(pieces), [1] * 7)] == [5, 4, 1, 0]


def test_every_further_result_of_a_call_stays_with_it() -> None:
    entries = [
        entry(0, calls("a")),
        entry(1, answers("a", "started")),
        entry(2, human()),
        entry(3, answers("a", "done")),
    ]
    assert safe_positions(conversation(entries)) == [0, 4]


def test_with_a_repeated_id_a_late_result_bars_only_its_own_call() -> None:
    twice = [
        entry(0, calls("a")),
        entry(1, answers("a")),
        entry(2, human()),
        entry(3, calls("a")),
        entry(4, answers("a")),
    ]
    assert safe_positions(conversation(twice)) == [0, 2, 3, 5]


def test_all_pieces_of_a_message_with_open_calls_are_kept() -> None:
    pieces = [entry(k, part, message="m") for k, part in enumerate([calls("a"), calls("b"), said("Both run.")], 1)]
    assert safe_positions(conversation([entry(0, human()), *pieces])) == [0, 1]


def test_words_in_a_result_start_no_turn() -> None:
    refusal = dataclasses.replace(answers("a", "No, said the user: not now"), said=("not now",))
    assert not starts_turn(entry(0, refusal))
    assert starts_turn(entry(0, answers("a"), human("Not now.")))
