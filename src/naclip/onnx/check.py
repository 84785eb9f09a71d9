"""A graph is only written when onnxruntime gets from it what torch gets from the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from naclip.errors import OutputError

WITHIN = 2e-5  # of unit vectors' channels: what tests/parity asks of features


def largest_difference(graph: bytes, module: nn.Module, inputs: Sequence[Tensor]) -> float:
    """Over inputs whose batches differ in size."""
    session = _session(graph)
    (name,) = (one.name for one in session.get_inputs())
    differences = []
    with torch.inference_mode():
        for given in inputs:
            found = _run(session, {name: given.numpy()})
            expected = module(given).numpy()
            if found.shape != expected.shape:
                raise OutputError(
                    f"onnxruntime gives {found.shape} where torch gives {expected.shape}: "
                    "nothing was written; please report this"
                )
            differences.append(float(np.abs(found - expected).max()))
    return max(differences)


def require_agreement(what: str, difference: float) -> None:
    if not difference <= WITHIN:  # NaN, too, is no agreement
        raise OutputError(
            f"the {what} graph differs from torch by {difference:.1g}, expected at most "
            f"{WITHIN:.0g}: nothing was written; try another version of onnxruntime"
        )


def _run(session: Any, given: dict[str, NDArray[Any]]) -> NDArray[Any]:
    try:
        (found,) = session.run(None, given)
    except Exception as error:  # onnxruntime's errors have no common base
        reason = " ".join(str(error).split())
        raise OutputError(
            f"onnxruntime cannot run the graph: nothing was written ({reason})"
        ) from None
    return found


def _session(graph: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
