"""Everything that determines a result, typed once; options of the command line derive from it.

Settings are grouped as the stages are: Windowing, Method, Refinement, Decoding. The fields' names
are unique over the groups, so `settings.updated(sigma=3, threshold=0.1)` finds where each belongs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from naclip.errors import SettingsError, no_such

Similarity = Literal["qk", "kk", "qq", "vv", "qq+kk", "gem", "none", "self"]
Neighbours = Literal["off", "gaussian", "scaled"]
BlockKind = Literal["reduced", "vanilla", "dual"]
Scoring = Literal["cosine", "surgery"]
Refiner = Literal["pamr", "guided", "crf"]
Precision = Literal["auto", "fp32", "bf16", "fp16", "int8"]
Engine = Literal["auto", "torch", "compile", "openvino"]
Device = Literal["auto", "cpu", "cuda", "mps"]


def option(default: Any, help: str, opposite: str = "") -> Any:
    """A field that users can set; the help text serves the command line and the docs.

    `opposite` names the flag that switches a boolean off where `--no-...` would not be clear.
    """
    return field(default=default, metadata={"help": help, "opposite": opposite})


def _require(sound: bool, message: str) -> None:
    if not sound:
        raise SettingsError(message)


def _require_one_of(name: str, value: str, choices: Any) -> None:
    known = get_args(choices)
    _require(value in known, f"{name} is {value!r}: use one of {', '.join(known)}")


def _require_kinds(group: Any) -> None:
    """Every field holds the kind of value that its default is; numpy's numbers become Python's."""
    for part in dataclasses.fields(group):
        value = getattr(group, part.name)
        value = value.item() if hasattr(value, "item") else value
        object.__setattr__(group, part.name, _of_kind(part.name, value, part.default))


def _of_kind(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, bool):
        _require(isinstance(value, bool), f"{name} is {value!r}: use True or False")
    elif isinstance(default, int):
        whole = isinstance(value, int) and not isinstance(value, bool)
        _require(whole, f"{name} is {value!r}: use a whole number")
    elif isinstance(default, float):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        _require(number, f"{name} is {value!r}: use a number")
        return float(value)
    elif isinstance(default, tuple):
        several = isinstance(value, (tuple, list))
        _require(several, f"{name} is {value!r}: use several whole numbers, e.g. {default}")
        return tuple(_of_kind(name, one, default[0]) for one in value)
    else:
        _require(isinstance(value, str), f"{name} is {value!r}: use a text")
    return value


@dataclass(frozen=True)
class Windowing:
    """How the image is resized and cut. Section 5.1 of the paper: short side 336, 224 by 112."""

    short_side: int = option(336, "Resize the image's short side to this many pixels")
    long_side: int = option(2048, "Never let the long side grow beyond this many pixels")
    whole: bool = option(False, "The whole image at once instead of windows", "windows")
    window: int = option(224, "Side of the sliding window")
    stride: int = option(112, "Step of the sliding window")

    def __post_init__(self) -> None:
        _require_kinds(self)
        for name in ("short_side", "long_side", "window", "stride"):
            _require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}: use at least 1")
        _require(
            self.whole or self.stride <= self.window,
            f"stride {self.stride} exceeds window {self.window}: pixels would be skipped; "
            f"use a stride of at most {self.window}",
        )


@dataclass(frozen=True)
class Method:
    """How the last block(s) of the vision tower are read. The table of them: naclip.methods."""

    name: str = "naclip"
    similarity: Similarity = option("kk", "Vectors that the attention compares")
    neighbours: Neighbours = option("gaussian", "Gaussian added to the attention's logits")
    block: BlockKind = option("reduced", "What surrounds the attention in the last block(s)")
    sigma: float = option(5.0, "Standard deviation of the Gaussian, in patches")
    depth: int = option(6, "Last blocks that a dual path runs through")
    scoring: Scoring = option("cosine", "How patches are compared with words")

    def __post_init__(self) -> None:
        _require_kinds(self)
        _require_one_of("similarity", self.similarity, Similarity)
        _require_one_of("neighbours", self.neighbours, Neighbours)
        _require_one_of("block", self.block, BlockKind)
        _require_one_of("scoring", self.scoring, Scoring)
        _require(
            0 < self.sigma < float("inf"),
            f"sigma is {self.sigma}: use a positive number of patches",
        )
        _require(self.depth >= 1, f"depth is {self.depth}: use at least 1 block")
        _require(
            self.neighbours == "off" or self.similarity not in ("self", "gem"),
            f"similarity {self.similarity!r} has no logits to add neighbours to: "
            "use neighbours 'off' with it",
        )

    @property
    def reads(self) -> int:
        """Last blocks whose input the method needs."""
        return self.depth if self.block == "dual" else 1


@dataclass(frozen=True)
class Refinement:
    """Section 5.1 "Implementation details": PAMR. The others are not the paper's."""

    refine: bool = option(True, "Sharpen the masks along the image's edges")
    refine_steps: int = option(10, "Steps of the refinement")
    refine_dilations: tuple[int, ...] = option((8, 16), "Distances of the neighbours it looks at")
    refiner: Refiner = option("pamr", "What sharpens them; pamr is the paper's")

    def __post_init__(self) -> None:
        _require_kinds(self)
        _require_one_of("refiner", self.refiner, Refiner)
        _require(self.refine_steps >= 1, f"refine_steps is {self.refine_steps}: use at least 1")
        _require(
            bool(self.refine_dilations) and all(d >= 1 for d in self.refine_dilations),
            f"refine_dilations is {self.refine_dilations}: use one or more distances of at least 1",
        )


@dataclass(frozen=True)
class Decoding:
    """From cosines to labels."""

    logit_scale: float = option(40.0, "Factor on the cosines before the softmax")
    threshold: float = option(0.0, "Below this probability a pixel is background")

    def __post_init__(self) -> None:
        _require_kinds(self)
        _require(
            0 < self.logit_scale <= 1e6,
            f"logit_scale is {self.logit_scale}: use a positive number up to a million",
        )
        _require(
            0 <= self.threshold < 1,
            f"threshold is {self.threshold}: use a number from 0 to below 1",
        )


@dataclass(frozen=True)
class Settings:
    windowing: Windowing = Windowing()
    method: Method = Method()
    refinement: Refinement = Refinement()
    decoding: Decoding = Decoding()

    def updated(self, **changes: Any) -> Settings:
        """A copy with fields of the groups changed by name; `method` takes a Method or its name.

        A name chooses what the table says: similarity, neighbours and block; sigma, depth and
        scoring stay as they are.
        """
        method = changes.pop("method", self.method)
        if isinstance(method, str):
            now = self.method
            method = dataclasses.replace(
                find_method(method), sigma=now.sigma, depth=now.depth, scoring=now.scoring
            )
        if not isinstance(method, Method):
            raise SettingsError(
                f"method is {method!r}: use a name (see naclip methods) or a Method"
            )
        groups: dict[str, Any] = {
            "windowing": self.windowing,
            "method": method,
            "refinement": self.refinement,
            "decoding": self.decoding,
        }
        owners = {f.name: group for group, f in options()}
        for name in changes:
            if name not in owners:
                raise SettingsError(
                    no_such("setting", name, ["method", *owners], "naclip.Settings")
                )
        for group, part in groups.items():
            mine = {name: value for name, value in changes.items() if owners[name] == group}
            groups[group] = dataclasses.replace(part, **mine)
        return Settings(**groups)

    def flat(self) -> dict[str, Any]:
        """Every option's value by name, ready for JSON: what a result says was done."""
        values = {f.name: getattr(getattr(self, group), f.name) for group, f in options()}
        return {"method": self.method.name, **values}


def options() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    """(group, field) of every option, in reading order."""
    for group in dataclasses.fields(Settings):
        for part in dataclasses.fields(getattr(Settings(), group.name)):
            if "help" in part.metadata:
                yield group.name, part


_METHODS = [  # name, similarity, neighbours, block; then what it is
    (Method("naclip", "kk", "gaussian", "reduced"), "NACLIP: similar keys and neighbours"),
    (Method("clip", "qk", "off", "vanilla"), "CLIP as trained"),
    (Method("maskclip", "self", "off", "reduced"), "values only, reduced block"),
    (Method("maskclip-vanilla", "self", "off", "vanilla"), "MaskCLIP's own: block as trained"),
    (Method("sclip", "qq+kk", "off", "vanilla"), "SCLIP: similar queries plus similar keys"),
    (Method("clearclip", "qq", "off", "reduced"), "ClearCLIP: similar queries"),
    (Method("kk", "kk", "off", "reduced"), "similar keys without neighbours"),
    (Method("neighbours", "none", "gaussian", "reduced"), "neighbours alone, Eq. (og)"),
    (Method("neighbours-scaled", "none", "scaled", "reduced"), "the same as the program scales it"),
    (Method("clip-surgery", "vv", "off", "dual"), "CLIP Surgery: similar values, second path"),
    (Method("gem", "gem", "off", "dual"), "GEM: q, k and v each with itself, second path"),
]
METHODS: dict[str, Method] = {method.name: method for method, _ in _METHODS}
METHODS_ABOUT: dict[str, str] = {method.name: about for method, about in _METHODS}

# The benchmarks' own settings: those of the paper's program, which uses the whole image for VOC.
PRESETS: dict[str, Settings] = {
    "voc21": Settings(Windowing(whole=True), decoding=Decoding(threshold=0.1)),
    "voc20": Settings(Windowing(whole=True)),
    "context60": Settings(decoding=Decoding(threshold=0.1)),
    "context59": Settings(),
    "coco_object": Settings(decoding=Decoding(threshold=0.1)),
    "coco_stuff": Settings(),
    "cityscapes": Settings(Windowing(short_side=560)),
    "ade20k": Settings(),
}


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise SettingsError(no_such("method", name, METHODS, "naclip methods"))
    return METHODS[name]


def find_preset(name: str) -> Settings:
    if name not in PRESETS:
        raise SettingsError(no_such("preset", name, PRESETS, "naclip vocabularies"))
    return PRESETS[name]
