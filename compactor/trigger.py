"""Is it time to compact."""

DEFAULT_AT = 0.65
LEAST_GROWTH = 0.10
"""After a compaction the next one needs at least this share of the budget in new tokens."""


def due(tokens: int, budget: int, at: float = DEFAULT_AT) -> str:
    """Empty when the conversation has reached `at` of the budget; else why it isn't time."""
    threshold = int(budget * at)
    return "" if tokens >= threshold else f"{tokens:,} tokens of {threshold:,} ({at:.0%} of {budget:,})"
