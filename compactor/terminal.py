"""What may go to a terminal, and how wide it is."""

import re
import shutil

NO_TERMINAL = 120
"""Columns where nobody's terminal says how many."""


def harmless(text: str) -> str:
    """A text with nothing that a terminal obeys but line breaks and tabs."""
    return re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", lambda m: f"\\x{ord(m[0]):02x}", text
    )


def width(terminal: bool) -> int:
    """How many columns a table may take; COLUMNS wins."""
    return shutil.get_terminal_size((NO_TERMINAL, 24)).columns if terminal else NO_TERMINAL
