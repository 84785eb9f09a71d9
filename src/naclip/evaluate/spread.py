"""An evaluation on many machines: each image's line is computed by an actor on Ray.

Images are encoded one by one, as on one machine, and their counts are whole numbers, so that sums
do not depend on who computed what.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from naclip.bulk.cluster import RayCluster, connected, stopped, unless_stopped
from naclip.bulk.worker import ModelChoice
from naclip.errors import NaclipError
from naclip.evaluate.jobs import Job
from naclip.evaluate.record import Line
from naclip.evaluate.run import Options, lines
from naclip.pipeline import Segmenter
from naclip.vocabulary import Vocabulary

IMAGES_AT_ONCE = 8  # of one call of an actor


@dataclass(frozen=True)
class Shipped:
    """What every actor needs, once."""

    model: ModelChoice
    weights: str
    jobs: Sequence[Job]
    texts: Mapping[Vocabulary, Tensor]
    options: Options


@dataclass(frozen=True)
class Spread:
    """`naclip.evaluate.run.lines`, in any order, on a cluster."""

    machines: RayCluster
    model: ModelChoice

    def ran_on(self) -> dict[str, str]:
        return self.model.ran_on()

    def __call__(
        self,
        segmenter: Segmenter,
        jobs: Sequence[Job],
        texts: Mapping[Vocabulary, Tensor],
        indices: Sequence[int],
        options: Options,
    ) -> Iterator[Line]:
        if not indices:
            return
        words = {vocabulary: text.cpu() for vocabulary, text in texts.items()}
        here = replace(options, spread=None)
        needed = Shipped(self.model, segmenter.model.fingerprint, jobs, words, here)
        rows = [{"index": index} for index in indices]
        with connected(self.machines.address) as ray:
            shipped = ray.put(needed)
            answers = self.machines.mapped(
                ray.data.from_items, rows, Evaluator, shipped, IMAGES_AT_ONCE
            )
            for answer in answers:
                yield Line.decoded(json.dumps(unless_stopped(json.loads(answer["line"]))).encode())


class Evaluator:
    def __init__(self, shipped: Any) -> None:
        import ray

        self._all: Shipped = ray.get(shipped) if isinstance(shipped, ray.ObjectRef) else shipped
        self._segmenter: Segmenter | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        needed = self._all
        indices = [int(index) for index in batch["index"]]
        try:
            self._segmenter = self._segmenter or needed.model.open(needed.weights)
            texts = {w: text.to(self._segmenter.device) for w, text in needed.texts.items()}
            found = lines(self._segmenter, needed.jobs, texts, indices, needed.options)
            return {"line": [line.encoded().decode() for line in found]}
        except NaclipError as error:
            return {"line": [json.dumps(stopped(error))]}
