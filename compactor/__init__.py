"""Compacts long agent transcripts. Importing it loads nothing else; each name is fetched when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["ConvState", "Result", "Snapshot", "compact", "maybe_compact", "render_context", "safe_split_point"]

if TYPE_CHECKING:
    from compactor.api import ConvState, Result, compact, maybe_compact, render_context, safe_split_point
    from compactor.snapshot import Snapshot
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        home = "compactor.snapshot" if name == "Snapshot" else "compactor.api"
        value = globals()[name] = getattr(import_module(home), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
