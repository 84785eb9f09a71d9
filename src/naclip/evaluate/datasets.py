"""The benchmarks' data sets by name: what they are, where they lie, and their ground truth.

A data set is a list of samples that read themselves when asked, its words, and the settings that
the paper uses on it. Two data sets with the same `images` can share passes of the vision tower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from naclip import images, vocabulary
from naclip.errors import DataError, SettingsError, no_such
from naclip.evaluate import labels
from naclip.evaluate.labels import LabelMap
from naclip.evaluate.layouts import Layout, Pair, find, locate, read_index_mask
from naclip.evaluate.metric import Truth
from naclip.images import Picture
from naclip.settings import Settings, find_preset
from naclip.vocabulary import Vocabulary


class Sample(Protocol):
    """One image with its ground truth, read when asked for; several threads may ask."""

    @property
    def name(self) -> str: ...
    def picture(self) -> Picture: ...
    def truth(self) -> Truth: ...


@dataclass(frozen=True)
class DataSet:
    name: str
    words: Vocabulary
    settings: Settings
    samples: Sequence[Sample]
    root: str  # where it was read from
    images: str  # the same text: the same images under the same names
    official: int = 0  # images of the whole: the official split, or all of a folder

    def limited(self, limit: int | None) -> DataSet:
        """The first `limit` samples; the words and settings stay."""
        if limit is not None and limit < 1:
            raise SettingsError(f"limit is {limit}: use at least 1 image")
        return replace(self, samples=self.samples[:limit])

    def sample(self, name: str) -> Sample:
        for sample in self.samples:
            if sample.name == name:
                return sample
        raise DataError(f"{self.root}: has no image {name!r}")


@dataclass(frozen=True)
class FileSample:
    pair: Pair
    read_mask: Callable[[Path], Truth]

    @property
    def name(self) -> str:
        return self.pair.name

    def picture(self) -> Picture:
        return images.load(self.pair.image)

    def truth(self) -> Truth:
        return self.read_mask(self.pair.mask)


def read_labels(label_map: LabelMap, path: Path) -> Truth:
    """A mask of indices, translated."""
    return label_map(read_index_mask(path), path)


@dataclass(frozen=True)
class Family:
    """Images that one or two benchmarks share, as their owner distributes them."""

    title: str
    images: int  # of the split that benchmarks use
    size: str  # of the downloads
    licence: str
    page: str
    homes: tuple[str, ...]  # where archives unpack to, under the folder that is given
    tree: str
    layouts: tuple[Layout, ...]


@dataclass(frozen=True)
class Benchmark:
    name: str
    family: str
    short: str  # the paper's abbreviation
    label_maps: Mapping[str, LabelMap]  # by what the masks' names end in


RAW, TRAIN_IDS = ".png", "_labelTrainIds.png"
CITY_IDS, CITY_TRAIN_IDS = "_gtFine_labelIds.png", "_gtFine_labelTrainIds.png"
_COCO_LAYOUTS = tuple(
    Layout(image_folder, mask_folder, mask_suffix=suffix)
    for suffix in (RAW, TRAIN_IDS)
    for image_folder in ("images/val2017", "val2017")
    for mask_folder in ("annotations/val2017", "stuffthingmaps/val2017")
)

FAMILIES: dict[str, Family] = {
    "voc": Family(
        "PASCAL VOC 2012, segmentation val",
        1449,
        "2 GB",
        "no licence of its own: Flickr's terms of use for the images",
        "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/",
        ("VOC2012", "voc2012", "VOCdevkit/VOC2012"),
        """VOC2012/
  ImageSets/Segmentation/val.txt
  JPEGImages/2007_000033.jpg ...
  SegmentationClass/2007_000033.png ...   (palette PNG: 0..20, 255 void)""",
        (Layout("JPEGImages", "SegmentationClass", split="ImageSets/Segmentation/val.txt"),),
    ),
    "context": Family(
        "PASCAL Context, val",
        5105,
        "1.3 GB of images, 30 MB of annotations",
        "no licence of its own: Flickr's terms of use for the images",
        "https://cs.stanford.edu/~roozbeh/pascal-context/",
        ("VOC2010", "voc2010", "VOCdevkit/VOC2010", "pascal_context"),
        """VOC2010/
  ImageSets/SegmentationContext/val.txt
  JPEGImages/2008_000002.jpg ...
  SegmentationClassContext/2008_000002.png ...   (0 background, 1..59)""",
        (
            Layout(
                "JPEGImages",
                "SegmentationClassContext",
                split="ImageSets/SegmentationContext/val.txt",
            ),
        ),
    ),
    "coco": Family(
        "COCO 2017 val with COCO-Stuff's pixel maps",
        5000,
        "1 GB of images, 659 MB of annotations",
        "annotations CC BY 4.0; Flickr's terms of use for the images",
        "https://github.com/nightrome/cocostuff",
        ("coco_stuff164k", "coco", "dataset"),
        """coco_stuff164k/
  images/val2017/000000000139.jpg ...        (or val2017/)
  annotations/val2017/000000000139.png ...   (or stuffthingmaps/val2017/; 0..181, 255 void;
                                              or *_labelTrainIds.png: 0..170, 255 void)""",
        _COCO_LAYOUTS,
    ),
    "cityscapes": Family(
        "Cityscapes, val",
        500,
        "11 GB of images, 241 MB of annotations",
        "non-commercial; registration needed",
        "https://www.cityscapes-dataset.com/",
        ("cityscapes",),
        """cityscapes/
  leftImg8bit/val/frankfurt/frankfurt_000000_000294_leftImg8bit.png ...
  gtFine/val/frankfurt/frankfurt_000000_000294_gtFine_labelIds.png ...
                                             (or *_gtFine_labelTrainIds.png)""",
        tuple(
            Layout("leftImg8bit/val", "gtFine/val", "_leftImg8bit.png", suffix)
            for suffix in (CITY_IDS, CITY_TRAIN_IDS)
        ),
    ),
    "ade20k": Family(
        "ADE20K, scene parsing challenge 2016, validation",
        2000,
        "923 MB",
        "images: non-commercial research; annotations: BSD 3-clause",
        "http://sceneparsing.csail.mit.edu/",
        ("ADEChallengeData2016", "ade/ADEChallengeData2016", "ade20k"),
        """ADEChallengeData2016/
  images/validation/ADE_val_00000001.jpg ...
  annotations/validation/ADE_val_00000001.png ...   (0 void, 1..150)""",
        (Layout("images/validation", "annotations/validation"),),
    ),
}

_BENCHMARKS = [
    Benchmark("voc21", "voc", "V21", {RAW: labels.VOC21}),
    Benchmark("context60", "context", "PC60", {RAW: labels.CONTEXT60}),
    Benchmark(
        "coco_object",
        "coco",
        "C-Obj",
        {RAW: labels.COCO_OBJECT, TRAIN_IDS: labels.COCO_OBJECT_TRAIN_IDS},
    ),
    Benchmark("voc20", "voc", "V20", {RAW: labels.VOC20}),
    Benchmark(
        "cityscapes",
        "cityscapes",
        "City",
        {CITY_IDS: labels.CITYSCAPES, CITY_TRAIN_IDS: labels.CITYSCAPES_TRAIN_IDS},
    ),
    Benchmark("context59", "context", "PC59", {RAW: labels.CONTEXT59}),
    Benchmark("ade20k", "ade20k", "ADE", {RAW: labels.ADE20K}),
    Benchmark(
        "coco_stuff",
        "coco",
        "C-Stf",
        {RAW: labels.COCO_STUFF, TRAIN_IDS: labels.COCO_STUFF_TRAIN_IDS},
    ),
]
BENCHMARKS: dict[str, Benchmark] = {b.name: b for b in _BENCHMARKS}  # in the paper's order


def find_benchmark(name: str) -> Benchmark:
    if name not in BENCHMARKS:
        raise SettingsError(no_such("data set", name, BENCHMARKS, "naclip datasets"))
    return BENCHMARKS[name]


def is_there(name: str, folder: Path) -> bool:
    """Do the files of a benchmark lie in a folder?"""
    family = FAMILIES[find_benchmark(name).family]
    return find(folder, family.homes, family.layouts) is not None


def open_benchmark(name: str, folder: Path) -> DataSet:
    """One of the eight, from the files as their owner distributes them."""
    benchmark = find_benchmark(name)
    family = FAMILIES[benchmark.family]
    root, layout = locate(name, folder, family.homes, family.layouts)
    label_map = benchmark.label_maps[layout.mask_suffix]
    read_mask = partial(read_labels, label_map)
    samples = [FileSample(pair, read_mask) for pair in layout.pairs(root)]
    return DataSet(
        name,
        vocabulary.load(name),
        find_preset(name),
        samples,
        root=str(root.resolve()),
        images=f"{benchmark.family} {root.resolve()}",
        official=family.images,
    )
