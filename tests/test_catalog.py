"""What the table in LiteLLM's wheel says of a model."""

import pytest

from compactor.catalog import Entry, lookup, window_of


def test_a_known_model_has_window_and_prices() -> None:
    entry = lookup("gpt-4o")
    assert (entry.window, entry.output) == (128_000, 16_384)
    assert window_of("gpt-4o") == 128_000 - 16_384
    assert entry.cost(1_000_000, 0) == pytest.approx(2.5)


@pytest.mark.parametrize("name", ["openai/gpt-4o", "azure/eu/gpt-4o"])
def test_a_provider_before_the_name_is_understood(name: str) -> None:
    assert lookup(name).window == 128_000


def test_of_an_unknown_model_nothing_is_claimed() -> None:
    assert lookup("openai/unheard-of") == Entry()
    assert window_of("openai/unheard-of") == 0
    assert Entry().cost(1_000, 1_000) is None


def test_cached_tokens_cost_their_own_price() -> None:
    entry = Entry(input_price=2.0, cached_price=0.5, output_price=3.0)
    assert entry.cost(10, 1, cached=4) == 6 * 2.0 + 4 * 0.5 + 3.0
    assert Entry(input_price=2.0, output_price=3.0).cost(10, 1, cached=4) == 10 * 2.0 + 3.0
