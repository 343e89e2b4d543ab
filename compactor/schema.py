"""The published JSON Schemas."""

from typing import Any

from compactor.snapshot import SCHEMA_VERSION, Snapshot, Update


def schemas() -> dict[str, dict[str, Any]]:
    """The schema of the summary file and that of an update, by name."""
    return {"summary": _summary(), "update": Update.model_json_schema()}


def _summary() -> dict[str, Any]:
    snapshot = Snapshot.model_json_schema(mode="serialization")
    definitions = snapshot.pop("$defs")
    one = {
        "snapshot": {"$ref": "#/$defs/Snapshot"},
        "provenance": {"type": "object"},
        "verdict": {"type": "object"},
    }
    version = {"schema_version": {"const": SCHEMA_VERSION}}
    several = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"select": {"type": "integer", "minimum": 1}, **one},
            "required": ["select", *one],
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Summary file",
        "oneOf": [
            {"type": "object", "properties": version | one, "required": ["schema_version", *one]},
            {
                "type": "object",
                "properties": version | {"conversations": several},
                "required": ["schema_version", "conversations"],
            },
        ],
        "$defs": definitions | {"Snapshot": snapshot},
    }
