"""Load a trajectory by Harbor's own models; prints the messages of its steps. Needs Python 3.12 and `harbor`."""

import json
import sys
from pathlib import Path

from harbor.models.trajectories.trajectory import Trajectory  # type: ignore[import-not-found]

loaded = Trajectory.model_validate_json(Path(sys.argv[1]).read_bytes())
sys.stdout.write(json.dumps([step.message for step in loaded.steps]))
