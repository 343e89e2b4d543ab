"""Which pieces of a told head go into one request."""

import re

from build import Talk, call
from hypothesis import given
from hypothesis import strategies as st
from strategies import talks

from compactor.head import Passage, tell
from compactor.ledger import extract
from compactor.split import pair, seams
from compactor.tokens import counter_for
from compactor.transcript import Entry, Source
from compactor.windows import Window, narrower, windows

SIZE = counter_for().text


def parts(source: Source, room: int) -> tuple[list[Window], list[Passage], list[Entry]]:
    story = list(source.transcripts[0].story())
    passages = list(tell(source.short, story, extract(source.short, story)).passages)
    return windows(passages, story, room, SIZE), passages, story


@given(talks(), st.integers(80, 900))
def test_every_window_fits_and_nothing_is_lost(talk: Talk, room: int) -> None:
    found, passages, _ = parts(talk.source(), room)
    assert all(SIZE(window.text) <= room for window in found)
    marks = r"\(\d+ of \d+ parts of .*?\)\n|\n\(It goes on in the next part: .*?\)"
    told = "".join(re.sub(marks, "", window.text) for window in found)
    assert re.sub(r"\s", "", told) == re.sub(r"\s", "", "".join(passage.text for passage in passages))


@given(talks(), st.integers(300, 900))
def test_a_window_ends_at_a_safe_place(talk: Talk, room: int) -> None:
    found, passages, story = parts(talk.source(), room)
    whole = [window for window in found if "parts of" not in window.text]
    safe = {*seams(story, pair(story))}
    position = {passage.label: passage.position for passage in passages}
    for window in whole:
        assert min(position[label] for label in window.labels) in safe | {min(position.values())}


def test_one_window_holds_all_that_fits() -> None:
    talk = Talk().user("One.").agent("Two.").user("Three.")
    found, passages, _ = parts(talk.source(), 10_000)
    assert [window.text for window in found] == ["\n\n".join(passage.text for passage in passages)]


def test_windows_are_about_equally_full() -> None:
    talk = Talk()
    for n in range(40):
        talk.user(f"Water bed {n} with {n * 7} ml of water, please, and tell me when it is done.").agent(
            f"Bed {n} is done."
        )
    sizes = [window.tokens for window in parts(talk.source(), 700)[0]]
    assert len(sizes) > 1
    assert min(sizes) > 0.6 * max(sizes)


def test_what_hangs_together_and_is_too_large_says_which_part_it_is() -> None:
    talk = Talk().user("Go.").agent("", call("a", "Bash", command="x"), call("b", "Bash", command="y"))
    talk.result("a", " ".join(f"fern{n}" for n in range(300))).result("b", " ".join(f"moss{n}" for n in range(300)))
    found, _, _ = parts(talk.source(), 220)
    labels = [re.findall(r"\((\d+) of (\d+) parts of what hangs together from \[2\] to \[5\]", w.text) for w in found]
    told = [label for one in labels for label in one]
    count = len(told)
    assert count > 1
    assert told == [(str(n), str(count)) for n in range(1, count + 1)]


def test_a_message_larger_than_a_window_is_spread_over_several() -> None:
    talk = Talk().user(" ".join(f"word{n}" for n in range(500)))
    found, _, _ = parts(talk.source(), 200)
    assert len(found) > 1
    assert "(2 of " in found[1].text
    assert "parts of [1], inside [1])" in found[1].text


def test_a_window_that_turns_out_too_large_is_told_in_smaller_ones() -> None:
    talk = Talk()
    for n in range(20):
        talk.user(f"Water bed {n} with {n * 7} ml of water, please.").agent(f"Bed {n} is done.")
    (window,) = parts(talk.source(), 5_000)[0]
    halves = narrower(window, window.tokens // 2, SIZE)
    assert len(halves) > 1
    assert all(half.tokens <= window.tokens // 2 for half in halves)
    assert frozenset[str]().union(*(half.labels for half in halves)) == window.labels
