"""Is it time to compact."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import orjson

DEFAULT_AT = 0.65
LEAST_GROWTH = 0.10
"""After a compaction the next one needs at least this share of the budget in new tokens."""


def due(tokens: int, budget: int, at: float = DEFAULT_AT) -> str:
    """Empty when the conversation has reached `at` of the budget; else why it isn't time."""
    threshold = int(budget * at)
    return "" if tokens >= threshold else f"{tokens:,} tokens of {threshold:,} ({at:.0%} of {budget:,})"


def window_of(model: str) -> int:
    """The context window of a model minus its output, by LiteLLM's price table (read as a file); 0 where unknown."""
    table = _table()
    entry = table.get(model) or table.get(model.rsplit("/", 1)[-1])
    if not isinstance(entry, dict):
        return 0
    window, output = entry.get("max_input_tokens"), entry.get("max_output_tokens")
    if not isinstance(window, int):
        return 0
    return window - output if isinstance(output, int) and output < window else window


@cache
def _table() -> dict[str, object]:
    found = find_spec("litellm")
    for place in (found and found.submodule_search_locations) or ():
        path = Path(place, "model_prices_and_context_window_backup.json")
        if path.exists():
            table = orjson.loads(path.read_bytes())
            return table if isinstance(table, dict) else {}
    return {}
