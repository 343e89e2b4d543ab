"""What a check found, and what comes of all of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
"""What is wrong, what may be, and what a reader may want to know of."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and the cure."""

    check: str
    severity: Severity
    message: str
    cure: str
    field: str = ""
    item: str = ""
    refs: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.field} {self.item}".strip()
        cited = f" ({', '.join(self.refs)})" if self.refs else ""
        return f"{self.check}: {place + ': ' if place else ''}{self.message}{cited}; {self.cure}"


@dataclass(frozen=True)
class Verdict:
    """All the findings on a snapshot and its output."""

    findings: tuple[Finding, ...] = ()
    repaired: tuple[Finding, ...] = ()
    """What was found first and mended by code."""
    carried: int = 0
    """Items whose evidence lies in sources that weren't at hand."""
    items: int = 0
    missing: tuple[Finding, ...] = ()
    """What the snapshot leaves out of what code knows: notes, none of which makes it wrong."""

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def ok(self) -> bool:
        return not self.errors

    def as_dict(self) -> dict[str, Any]:
        def plain(finding: Finding) -> dict[str, Any]:
            return {name: getattr(finding, name) for name in Finding.__dataclass_fields__}

        return {
            "ok": self.ok,
            "items": self.items,
            "carried": self.carried,
            "findings": [plain(f) for f in self.findings],
            "repaired": [plain(f) for f in self.repaired],
            "missing": [plain(f) for f in self.missing],
        }


def words_of(findings: Sequence[Finding]) -> str:
    """Findings as one line."""
    return re.sub(r"\s+", " ", "; ".join(str(finding) for finding in findings))
