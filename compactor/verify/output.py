"""Whether the block says what the snapshot shows, in its budget."""

from collections.abc import Iterator

from compactor.render import parse, shown
from compactor.snapshot import Snapshot
from compactor.verify.finding import Finding

NEVER_ALLOWED = frozenset(("block", "output", "pairs"))
"""The checks on what is written: with one of these errors nothing is, whatever the user allows."""


def block_stands(snapshot: Snapshot, block: str, short: bool) -> Iterator[Finding]:
    """The block, read again, says what it shows of the snapshot."""
    parsed = parse(block)
    if parsed.snapshot != shown(snapshot, short) or parsed.unread:
        yield Finding("block", "error", "it doesn't read back as the snapshot", "report this as a bug")


def within_budget(tokens: int, limit: int, only_binding: bool) -> Iterator[Finding]:
    """The block fits its budget; over it through what binds alone is a warning."""
    if tokens <= limit:
        return
    if only_binding:
        message = f"the block takes {tokens} tokens of {limit}: what binds doesn't fit"
        yield Finding("budget", "warning", message, f"give --max-summary {tokens} or more")
    else:
        yield Finding("budget", "error", f"the block takes {tokens} tokens of {limit}", "report this as a bug")
