"""Rules of formats whose own packages need a newer Python than ours: as strict as theirs, field by field.

Where those packages can be installed, `make interop` holds the same files to the packages themselves.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _is_time(text: str) -> str:
    datetime.fromisoformat(text.replace("Z", "+00:00"))
    return text


Time = Annotated[str, AfterValidator(_is_time)]


# Harbor: docs/rfcs/0001-trajectory-format.md and src/harbor/models/trajectories


class Reference(Strict):
    trajectory_id: str | None = None
    session_id: str | None = None
    trajectory_path: str | None = None
    extra: dict[str, Any] | None = None


class Result(Strict):
    source_call_id: str | None = None
    content: str | None = None
    subagent_trajectory_ref: list[Reference] | None = None
    extra: dict[str, Any] | None = None


class Observation(Strict):
    results: list[Result]


class ToolCall(Strict):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class Step(Strict):
    step_id: int = Field(ge=1)
    timestamp: Time | None = None
    source: Literal["system", "user", "agent"]
    model_name: str | None = None
    reasoning_effort: str | float | None = None
    message: str
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: dict[str, Any] | None = None
    is_copied_context: bool | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def only_agents_reason_and_call(self) -> "Step":
        told = (self.model_name, self.reasoning_effort, self.reasoning_content, self.tool_calls, self.metrics)
        assert self.source == "agent" or told == (None,) * 5
        return self

    @model_validator(mode="after")
    def results_answer_calls_of_the_same_step(self) -> "Step":
        made = {call.tool_call_id for call in self.tool_calls or ()}
        answered = {result.source_call_id for result in (self.observation.results if self.observation else ())}
        assert answered - {None} <= made
        return self


class Agent(Strict):
    name: str
    version: str
    model_name: str | None = None
    extra: dict[str, Any] | None = None


class Trajectory(Strict):
    schema_version: str = Field(pattern=r"^ATIF-v1\.[0-8]$")
    session_id: str | None = None
    agent: Agent
    steps: list[Step] = Field(min_length=1)
    notes: str | None = None
    final_metrics: dict[str, Any] | None = None
    continued_trajectory_ref: str | None = None
    extra: dict[str, Any] | None = None

    @model_validator(mode="after")
    def steps_are_numbered_without_a_gap(self) -> "Trajectory":
        assert [step.step_id for step in self.steps] == list(range(1, len(self.steps) + 1))
        return self


# OpenHands: openhands-sdk/openhands/sdk/event of OpenHands/software-agent-sdk


class Text(Strict):
    type: Literal["text"] = "text"
    text: str
    cache_prompt: bool = False


class Event(Strict):
    id: str
    timestamp: Time
    source: Literal["agent", "user", "environment", "hook"]
    parent_id: str | None = None


class SystemPromptEvent(Event):
    kind: Literal["SystemPromptEvent"]
    system_prompt: Text
    tools: list[dict[str, Any]]
    dynamic_context: Text | None = None


class LLMMessage(Strict):
    role: Literal["user", "system", "assistant", "tool"]
    content: list[Text]


class MessageEvent(Event):
    kind: Literal["MessageEvent"]
    llm_message: LLMMessage
    llm_response_id: str | None = None
    activated_skills: list[str] = []
    extended_content: list[Text] = []
    sender: str | None = None


class MadeCall(Strict):
    id: str
    name: str
    arguments: str
    origin: Literal["completion", "responses"]


class ActionEvent(Event):
    kind: Literal["ActionEvent"]
    thought: list[Text]
    reasoning_content: str | None = None
    thinking_blocks: list[dict[str, Any]] = []
    action: dict[str, Any] | None = None
    tool_name: str
    tool_call_id: str
    tool_call: MadeCall
    llm_response_id: str


class ObservationEvent(Event):
    kind: Literal["ObservationEvent"]
    tool_name: str
    tool_call_id: str
    observation: dict[str, Any]
    action_id: str


class Condensation(Event):
    kind: Literal["Condensation"]
    forgotten_event_ids: list[str] = []
    summary: str | None = None
    summary_offset: int | None = Field(default=None, ge=0)
    llm_response_id: str


OpenHandsEvent = Annotated[
    SystemPromptEvent | MessageEvent | ActionEvent | ObservationEvent | Condensation, Field(discriminator="kind")
]


# OpenTelemetry: docs/gen-ai/gen-ai-input-messages.json of semantic-conventions; its parts take further fields


class OTelText(BaseModel):
    type: Literal["text", "reasoning"]
    content: str


class OTelCall(BaseModel):
    type: Literal["tool_call"]
    id: str | None = None
    name: str
    arguments: JsonValue = None


class OTelResponse(BaseModel):
    type: Literal["tool_call_response"]
    id: str | None = None
    response: JsonValue


class OTelMessage(BaseModel):
    role: str
    parts: list[Annotated[OTelText | OTelCall | OTelResponse, Field(discriminator="type")]]


# Vercel: packages/ai/src/ui/validate-ui-messages.ts of vercel/ai


class UIText(Strict):
    type: Literal["text", "reasoning"]
    text: str
    state: Literal["streaming", "done"] | None = None
    providerMetadata: dict[str, Any] | None = None


class UITool(Strict):
    type: str = Field(pattern="^tool-")
    toolCallId: str
    state: Literal["input-streaming", "input-available", "output-available", "output-error"]
    input: JsonValue
    output: JsonValue = None
    errorText: str | None = None


class UIMessage(Strict):
    id: str
    role: Literal["system", "user", "assistant"]
    metadata: JsonValue = None
    parts: list[UIText | UITool] = Field(min_length=1)
