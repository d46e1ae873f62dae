"""The mechanisms, pure and without I/O."""

import os

# Libraries that report their use to their makers are told not to before any of them is imported.
# Every part of the project imports this package; a value that the operator set stays.
for _name, _value in {
    "ORT_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "DO_NOT_TRACK": "1",
}.items():
    os.environ.setdefault(_name, _value)
