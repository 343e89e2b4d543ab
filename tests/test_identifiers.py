"""What may not be paraphrased."""

import pytest
from hypothesis import given
from strategies import TEXTS

from compactor.identifiers import exact, identifiers, plain_words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I edited src/orders/hooks.py.", ["src/orders/hooks.py"]),
        ("See ./run.sh and ~/.config/app.conf, then /etc/hosts.", ["./run.sh", "~/.config/app.conf", "/etc/hosts"]),
        (
            "handle_event takes eventId, MAX_RETRIES and OrderStore",
            ["handle_event", "eventId", "MAX_RETRIES", "OrderStore"],
        ),
        ("Commit 1a2b3c4 fixes #482 in 2.10.3", ["1a2b3c4", "#482", "2.10.3"]),
        ("Open https://example.org/a?b=1, mail me@example.org", ["https://example.org/a?b=1", "me@example.org"]),
        ("It costs $12.50 on 2026-01-02", ["$12.50", "2026-01-02"]),
        ("plain words, nothing more", []),
        ("不要改 orders_v2 表", ["orders_v2"]),
    ],
)
def test_identifiers_are_found_whole_and_in_order(text: str, found: list[str]) -> None:
    assert identifiers(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3 passed in 0.12s", {"3", "0.12"}),
        ("waits 12ms, 50% of it", {"12", "50%"}),
        ("at 10:30, version 1.5.", {"10:30", "1.5"}),
        ("v2 of 3f2a9c1d", {"3f2a9c1d"}),
        ("no number", set()),
    ],
)
def test_short_numbers_must_be_found_again_too(text: str, found: set[str]) -> None:
    assert {name for name in exact(text) if any(sign.isdigit() for sign in name)} == found


@given(TEXTS)
def test_what_is_found_stands_in_the_text(text: str) -> None:
    assert all(name and name in text for name in exact(text))


def test_plain_words_are_the_telling_ones() -> None:
    text = "The handler handle_event should lock the orders row"
    assert plain_words(text, identifiers(text)) == {"handler", "lock", "orders"}
