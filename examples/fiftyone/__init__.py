"""naclip as a FiftyOne operator: words in, a field with masks out. See docs/fiftyone.md."""

from __future__ import annotations

import functools
from typing import Any

import fiftyone as fo
import fiftyone.operators as foo
import naclip
from fiftyone.operators import types
from naclip.export.item import Item
from naclip.export.options import Options
from naclip.export.regions import Region, regions
from naclip.results import Segmentation
from naclip.vocabulary import parse_class

PARTS = Options(instances=True, min_pixels=16)  # each connected part is an object; no crumbs
KINDS = ("segmentation", "detections")

load = functools.lru_cache(maxsize=1)(naclip.load)  # the model stays for the next execution


class Segment(foo.Operator):
    @property
    def config(self) -> Any:
        return foo.OperatorConfig(
            name="segment",
            label="NACLIP: segment with words",
            allow_delegated_execution=True,
        )

    def resolve_input(self, ctx: Any) -> Any:
        inputs = types.Object()
        about = "One class after another with semicolons, its synonyms with commas"
        inputs.str("words", required=True, label="Words", description=about)
        inputs.str("field", required=True, default="naclip", label="Field to write")
        inputs.enum("kind", KINDS, required=True, default=KINDS[0], label="Masks as")
        inputs.str("model", required=True, default="ViT-B/16", label="Model")
        inputs.view_target(ctx)
        return types.Property(inputs, view=types.View(label="Segment with words"))

    def execute(self, ctx: Any) -> dict[str, int]:
        words = dict(parse_class(part) for part in ctx.params["words"].split(";"))
        segmenter, field = load(ctx.params["model"]), ctx.params["field"]
        make = segmentation if ctx.params["kind"] == "segmentation" else detections
        view = ctx.target_view()
        for sample in view.iter_samples(autosave=True, progress=True):
            # Words are seldom of everything that is in an image: the rest is background.
            sample[field] = make(segmenter(sample.filepath, words, background=True))
        if make is segmentation:
            ctx.dataset.mask_targets[field] = dict(enumerate(["background", *words]))
            ctx.dataset.save()
        ctx.trigger("reload_dataset")
        return {"samples": len(view)}


def segmentation(result: Segmentation) -> Any:
    """FiftyOne draws nothing where a mask is 0: that is our background."""
    return fo.Segmentation(mask=result.labels)


def detections(result: Segmentation) -> Any:
    item = Item.of(result)
    return fo.Detections(
        detections=[
            detection(region, item.classes.names[region.label]) for region in regions(item, PARTS)
        ]
    )


def detection(region: Region, label: str) -> Any:
    """The box in shares of the image, the mask within it."""
    (height, width), (left, top, wide, high) = region.size, region.box
    box = [left / width, top / height, wide / width, high / height]
    return fo.Detection(label=label, bounding_box=box, mask=region.mask, confidence=region.score)


def register(plugin: Any) -> None:
    plugin.register(Segment)
