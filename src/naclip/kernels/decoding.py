"""From tensors to the kernels and back: what ScoreMaps.decode runs on a CPU."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from naclip.decode import Decoded
from naclip.kernels import fused, refined
from naclip.settings import Refinement
from naclip.windows import Stitched


def decode(
    stitched: Stitched,
    guide: Tensor | None,
    refinement: Refinement,
    class_of: tuple[int, ...],
    logit_scale: float,
    lean: bool,
) -> Decoded:
    """`guide` (3, H, W) where PAMR is to refine the scores; `lean` as in ScoreMaps.decode."""
    of_names = np.asarray(class_of)
    ends = np.append(of_names[1:] != of_names[:-1], True)
    planes = _planes(stitched.size, max(class_of), lean, bool(ends.all()), refinement.refine)
    a_y, a_x = stitched.a_y.numpy(), stitched.a_x.numpy()
    grid = fused.grids(stitched.cells_NYX.numpy(), a_y, a_x, logit_scale)
    labels = of_names.astype(np.float32)
    if guide is None:
        fused.decode(grid, ends, labels, planes)
    else:
        refined.decode(grid, a_x, guide.numpy(), refinement, ends, labels, planes)
    score, probability, margin, log_classes = (
        torch.from_numpy(plane) if plane.size else None for plane in planes.parts()
    )
    assert score is not None
    found = torch.from_numpy(planes.labels)
    if probability is None:  # one name a class: the same numbers
        probability = score
    return Decoded(found, score, probability, margin, log_classes)


def _planes(
    size: tuple[int, int], last_label: int, lean: bool, one_name_a_class: bool, refine: bool
) -> fused.Planes:
    def plane(wanted: bool) -> fused.Floats:
        return np.empty(size if wanted else (0, 0), np.float32)

    return fused.Planes(
        labels=np.empty(size, np.uint8 if last_label < 256 else np.int16),
        score=plane(True),
        probability=plane(not one_name_a_class),
        margin=plane(not lean),
        log_classes=plane(not lean or refine),
    )
