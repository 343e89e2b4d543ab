"""What can go wrong, and the exit code of each.

    CompactError
    ├── UsageError        2   the command or the call was wrong
    ├── InputError        3   the input is missing, unreadable or of unknown format
    ├── RefusedError      1   the checks refused the result
    ├── ModelError        4   a model failed
    │   ├── TooLongError      the request doesn't fit into the model's window
    │   ├── CutOffError       the reply broke off at the output limit
    │   └── CostError         the next call might pass the most that may be spent
    └── OutputError       5   an output or the archive couldn't be written

Callers catch `CompactError`; its text says what happened, where and the cure, on one line.
"""

from typing import Any, ClassVar


class CompactError(Exception):
    """Base of every error this package raises on purpose."""

    exit_code: ClassVar[int] = 1


class UsageError(CompactError):
    """The command or the call was wrong."""

    exit_code = 2


class InputError(CompactError):
    """The input is missing, unreadable or of unknown format."""

    exit_code = 3


class RefusedError(CompactError):
    """The checks refused the result; nothing was written."""

    exit_code = 1


class ModelError(CompactError):
    """A model failed."""

    exit_code = 4
    paid: Any = None
    """What was spent all the same, as `exchange.Usage`; None where nothing is known of it."""


class TooLongError(ModelError):
    """The request doesn't fit into the model's window; a smaller one may."""


class CutOffError(ModelError):
    """The reply broke off at the output limit; with more room, or less to tell, it may not."""


class CostError(ModelError):
    """The next call might pass the most that may be spent; nothing was asked."""


class OutputError(CompactError):
    """An output or the archive couldn't be written."""

    exit_code = 5
