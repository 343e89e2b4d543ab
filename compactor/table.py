"""Findings as a table that a person reads."""

import io
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compactor.recheck import Row
from compactor.terminal import harmless
from compactor.words import clip

ABOUT = 120
"""Characters of an item that are shown."""
STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def findings(rows: Sequence[Row], width: int, terminal: bool) -> str:
    """What was found, a row each, so many columns wide; in colour where a terminal reads it. Empty without rows."""
    if not rows:
        return ""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("", "check", "about", "what", "lines"):
        table.add_column(name, overflow="fold", no_wrap=name in ("", "check"))
    for row in rows:
        table.add_row(*(Text(harmless(cell), style=STYLES.get(cell, "")) for cell in _cells(row)))
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=terminal, highlight=False).print(table)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _cells(row: Row) -> tuple[str, ...]:
    found = row.finding
    place = " ".join(filter(None, (row.where, found.field, found.item)))
    about = f"{place}\n{clip(row.text, ABOUT)}" if row.text else place
    return found.severity, found.check, about, f"{found.message}\n→ {found.cure}", "\n".join(found.refs)
