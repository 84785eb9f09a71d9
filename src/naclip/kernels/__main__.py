"""`python -m naclip.kernels`: compile ahead, so that no user waits for it."""

from __future__ import annotations

import torch

from naclip.kernels.compiled import folder
from naclip.maps import ScoreMaps
from naclip.settings import Refinement
from naclip.windows import Stitched


def warm_up() -> None:
    """Every kernel once, in every type that it is called with."""
    for refine in (False, True):
        for names, lean in ((3, True), (300, False)):
            stitched = Stitched(torch.rand(names, 2, 2), torch.ones(4, 2), torch.ones(4, 2))
            maps = ScoreMaps(
                stitched, torch.rand(3, 4, 4), Refinement(refine), tuple(range(names)), 40.0
            )
            maps.decode(lean)


if __name__ == "__main__":
    warm_up()
    print(folder() or "nowhere to keep compiled code: NACLIP_CACHE and the package are read-only")
