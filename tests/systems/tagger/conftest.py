"""The tests of training want the extra `train`; those of what ships do not."""

from __future__ import annotations

from importlib.util import find_spec

# Their modules import torch at their head.
collect_ignore = (
    []
    if all(map(find_spec, ("torch", "onnx", "safetensors")))
    else ["test_network.py", "test_train.py"]
)
