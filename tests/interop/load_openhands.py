"""Load events by OpenHands' own classes; prints what its view sends the model. Needs Python 3.12, `openhands-sdk`."""

import json
import sys
from pathlib import Path

from openhands.sdk.context.view import View  # type: ignore[import-not-found]
from openhands.sdk.event import Event, LLMConvertibleEvent  # type: ignore[import-not-found]

events = [Event.model_validate_json(line) for line in Path(sys.argv[1]).read_bytes().splitlines()]
sent = LLMConvertibleEvent.events_to_messages(View.from_events(events).events)
sys.stdout.write("\n" + json.dumps([part.text for message in sent for part in message.content]))
