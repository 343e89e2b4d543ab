"""The library for callers that await: the same calls, each in a thread of its own.

A call that is cancelled waits for no model any more and asks nothing further; a request that is on its way ends by
itself, unheard. What was given to it isn't changed then either.
"""

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Event, Thread
from typing import Any, TypeVar, overload

from compactor import api
from compactor.api import ConvState, Message, Result

T = TypeVar("T")


async def acompact(messages: Sequence[Message], *arguments: Any, **named: Any) -> Result:
    """Compact a list of messages now; takes, gives and raises what `compact` does."""
    return await _threaded(api.compact, messages, *arguments, **named)


@overload
async def amaybe_compact(state: ConvState, *arguments: Any, **named: Any) -> ConvState: ...
@overload
async def amaybe_compact(state: Sequence[Message], *arguments: Any, **named: Any) -> list[Message]: ...
async def amaybe_compact(
    state: ConvState | Sequence[Message], *arguments: Any, **named: Any
) -> ConvState | list[Message]:
    """Compact when it is time to; takes, gives and raises what `maybe_compact` does."""
    call: Callable[..., ConvState | list[Message]] = api.maybe_compact
    return await _threaded(call, state, *arguments, **named)


async def _threaded(call: Callable[..., T], *arguments: Any, cancel: Event | None = None, **named: Any) -> T:
    """The call in a daemon thread: neither the loop's end nor the program's waits for one that was given up."""
    stop, future = cancel or Event(), Future[T]()
    future.set_running_or_notify_cancel()  # so that giving it up leaves the thread to end by itself
    context = contextvars.copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(call, *arguments, cancel=stop, **named))
        except BaseException as error:  # the awaiting caller's to handle, whatever it is
            future.set_exception(error)

    Thread(target=work, name="compact", daemon=True).start()
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        stop.set()
        raise
