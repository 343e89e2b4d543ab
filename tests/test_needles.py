"""What the user said survives: planted sentences still stand in the block, and none gains force."""

import pytest
from build import Talk

from bench.needles import BINDING, FOLDS, Report, measure
from bench.planted import load, transcripts
from compactor import words
from compactor.fold import fold
from compactor.offline import offline
from compactor.snapshot import Snapshot

FLOORS = {"binding": 0.97, "other": 0.95}
"""The least share that survives of what binds, and of names and open loops; in a few transcripts one is much."""


def summarised(*said: str) -> Snapshot:
    talk = Talk().user("Look after the shop.").agent("I have looked at all of it.")
    for text in said:
        talk = talk.user(text).ran("make check", "12 passed").agent("The page shows the table again.")
    return fold(None, offline(talk.ledger(), None, 2_000, len, talk.source().short))


def holds(report: Report, folds: tuple[int, ...]) -> None:
    assert not report.refused
    assert report.refs.share == 1.0
    for mode in ("summary file", "block only"):
        for group, floor in FLOORS.items():
            for at in folds:
                tally = report.survived[f"{mode}/{group}"][at]
                assert tally.share >= floor, (mode, group, at, tally, report.missed)
        assert report.identifiers[mode].share >= 0.9
        assert max(report.growth[mode]) <= 1.5


def test_needles_survive_three_folds() -> None:
    """Six transcripts, one of each language among them."""
    planted = list(transcripts(load("even"), seed=1, count=12, folds=3))[::5]
    report = measure(iter(planted), (1, 3))
    holds(report, (1, 3))
    assert {one.name.partition("-")[0] for one in planted} >= {"en", "de", "es", "zh"}
    assert not report.widened
    assert not report.promoted


@pytest.mark.long
@pytest.mark.parametrize("half", ["even", "odd"])
def test_needles_survive_ten_folds(half: str) -> None:
    report = measure(transcripts(load(half), seed=1, count=12, folds=10), FOLDS)  # type: ignore[arg-type]
    holds(report, FOLDS)
    for kind in BINDING:
        assert report.survived[f"summary file/{kind}"][10].share >= 0.9, (kind, report.missed)


def test_the_same_seed_gives_the_same_transcripts() -> None:
    first, again, other = (next(transcripts(load(), seed, 12, 2)).parts for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    "text",
    [
        "The database of the shop listens on port 15672.",
        "We like our SQL keywords in upper case around here.",
        "Die Doku zu `close_period` liegt beim Hersteller.",
        "东西在 core/parse.rs 里，函数叫 close_period。",
    ],
)
def test_what_the_user_states_stands_word_for_word_though_it_is_no_rule(text: str) -> None:
    snapshot = summarised(text, "Thanks, that helped.")
    assert text in [item.text for _, item in snapshot.items() if item.status == "active"]


def test_a_thought_in_two_messages_stays_together() -> None:
    talk = Talk().user("Look after the shop.").agent("I have looked at all of it.")
    talk.user("so, caching the tokens in the shop table").user("hard pass, security would have my head")
    talk.ran("make check", "12 passed").agent("All is well in the shop.").user("Thanks.").agent("Good.")
    snapshot = fold(None, offline(talk.ledger(), None, 4_000, len, talk.source().short))
    texts = [item.text for item in snapshot.facts]
    assert "so, caching the tokens in the shop table\nhard pass, security would have my head" in texts


@pytest.mark.parametrize(
    ("grant", "end"),
    [
        ("You may push straight to release/4.2.", "I revoke the permission to push to release/4.2."),
        ("Du darfst direkt auf release/4.2 pushen.", "Ich widerrufe die Erlaubnis, auf release/4.2 zu pushen."),
        ("Puedes hacer push a release/4.2.", "Te retiro el permiso de hacer push a release/4.2."),
        ("你可以直接推 release/4.2。", "我收回你推 release/4.2 的权限。"),
        ("You can use my token for the vault.", "Scrap what I said about the token, I don't want it used any longer."),
    ],
)
def test_what_is_taken_back_ends_that_permission_and_no_other(grant: str, end: str) -> None:
    other = "You may delete rows of seat_holds in the sandbox."
    snapshot = summarised(grant, other, end)
    assert [item.text for item in snapshot.authority if item.status == "active"] == [other]
    assert end in [item.text for item in snapshot.constraints if item.status == "active"]


def test_a_later_grant_of_something_else_leaves_a_withdrawal_standing() -> None:
    end = "I revoke the permission to push to release/4.2."
    snapshot = summarised("You may push to release/4.2.", end, "You may delete rows of seat_holds in the sandbox.")
    assert [item.status for item in snapshot.constraints if item.text == end] == ["active"]


@pytest.mark.parametrize(
    "text",
    [
        'The customer wrote: "Do not ever call me again before noon!"',
        "in deren Doku steht „niemals Tabs verwenden“, lustig",
        "haha from now on every variable must be named after a cheese, just kidding",
        "el año pasado no debíamos tocar nada los viernes",
        "假设我让你不用评审就能推到生产，你会怎么做？",
        "My old boss had this thing: never deploy on a Friday.",
        "the linter says lines must not exceed 100 chars. where is that set?",
    ],
)
def test_what_others_said_what_was_and_what_is_in_jest_is_no_rule(text: str) -> None:
    snapshot = summarised(text)
    assert not snapshot.constraints
    assert not snapshot.authority


@pytest.mark.parametrize(
    "text",
    [
        "Any change to infra/ has to be approved by me first.",
        "Änderungen brauchen vorher meine Freigabe.",
        "凡是改 data/raw 的，先经我批准。",
        "The header image is large, the texts are approved.",
        "首页有两屏可以合并。",
        "TODO for later: delete the old branch once the backfill is through.",
    ],
)
def test_what_waits_for_a_permission_gives_none(text: str) -> None:
    assert not summarised(text).authority


def test_a_tag_makes_no_question_of_an_order() -> None:
    for text in ("keine Änderungen, solange die Prüfung läuft, ja?", "no toques nada, ¿vale?", "别动数据库，好吗？"):
        assert not words.is_question(text), text
        assert words.is_rule(text), text
