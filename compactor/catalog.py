"""What is known of a model before it is asked: its window and its prices, by the table in LiteLLM's wheel.

The table is read as a file: importing litellm takes seconds and would fetch a newer one from the network.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Entry:
    """What the table says of one model; tokens, and US dollars per token. Unknown is 0, or None for a price."""

    window: int = 0
    """Tokens of input and output together."""
    output: int = 0
    """Tokens that it can write at most."""
    input_price: float | None = None
    cached_price: float | None = None
    output_price: float | None = None

    def cost(self, tokens_in: int, tokens_out: int, cached: int = 0) -> float | None:
        """What an exchange costs in US dollars; None where the price is unknown. `cached` is part of `tokens_in`."""
        if self.input_price is None or self.output_price is None:
            return None
        read = self.input_price if self.cached_price is None else self.cached_price
        return (tokens_in - cached) * self.input_price + cached * read + tokens_out * self.output_price


def lookup(model: str) -> Entry:
    """What is known of a model named as LiteLLM does; an empty entry where the table doesn't have it."""
    table = _table()
    found = table.get(model) or table.get(model.rsplit("/", 1)[-1])
    if not isinstance(found, dict):
        return Entry()
    return Entry(
        window=_tokens(found.get("max_input_tokens")),
        output=_tokens(found.get("max_output_tokens")),
        input_price=_price(found.get("input_cost_per_token")),
        cached_price=_price(found.get("cache_read_input_token_cost")),
        output_price=_price(found.get("output_cost_per_token")),
    )


def window_of(model: str) -> int:
    """The context window of a model minus its output; 0 where unknown."""
    entry = lookup(model)
    return entry.window - entry.output if 0 < entry.output < entry.window else entry.window


def _tokens(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _price(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None


@cache
def _table() -> dict[str, object]:
    found = find_spec("litellm")
    for place in (found and found.submodule_search_locations) or ():
        path = Path(place, "model_prices_and_context_window_backup.json")
        if path.exists():
            table = orjson.loads(path.read_bytes())
            return table if isinstance(table, dict) else {}
    return {}
