"""Compacts long agent transcripts. Importing it loads nothing else; each name is fetched when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Ask", "ConvState", "Result", "Snapshot", "acompact", "amaybe_compact", "compact", "maybe_compact",
    "render_context", "safe_split_point",
]  # fmt: skip
_HOMES = {"Snapshot": "snapshot", "Ask": "asking", "acompact": "awaited", "amaybe_compact": "awaited"}

if TYPE_CHECKING:
    from compactor.api import ConvState, Result, compact, maybe_compact, render_context, safe_split_point
    from compactor.asking import Ask
    from compactor.awaited import acompact, amaybe_compact
    from compactor.snapshot import Snapshot
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        home = import_module(f"compactor.{_HOMES.get(name, 'api')}")
        value = globals()[name] = getattr(home, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
