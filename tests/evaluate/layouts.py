"""Data made in each official layout, and the official label definitions, written out here.

The definitions are typed from their owners' files (cityscapesScripts labels.py, COCO-Stuff
labels.txt, the VOC and ADE20K development kits) and share nothing with naclip.evaluate.labels.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

VOID = 65535

# id of Cityscapes' labelIds -> trainId; every other id is ignored in evaluation
CITYSCAPES_TRAIN_ID = {
    7: 0,  # road
    8: 1,  # sidewalk
    11: 2,  # building
    12: 3,  # wall
    13: 4,  # fence
    17: 5,  # pole
    19: 6,  # traffic light
    20: 7,  # traffic sign
    21: 8,  # vegetation
    22: 9,  # terrain
    23: 10,  # sky
    24: 11,  # person
    25: 12,  # rider
    26: 13,  # car
    27: 14,  # truck
    28: 15,  # bus
    31: 16,  # train
    32: 17,  # motorcycle
    33: 18,  # bicycle
}

# labels.txt of COCO-Stuff, ids 1..182 in order; * marks the 11 things that were never segmented
COCO_STUFF_182 = """person,bicycle,car,motorcycle,airplane,bus,train,truck,boat,traffic light,
fire hydrant,*street sign,stop sign,parking meter,bench,bird,cat,dog,horse,sheep,cow,elephant,bear,
zebra,giraffe,*hat,backpack,umbrella,*shoe,*eye glasses,handbag,tie,suitcase,frisbee,skis,snowboard,
sports ball,kite,baseball bat,baseball glove,skateboard,surfboard,tennis racket,bottle,*plate,
wine glass,cup,fork,knife,spoon,bowl,banana,apple,sandwich,orange,broccoli,carrot,hot dog,pizza,
donut,cake,chair,couch,potted plant,bed,*mirror,dining table,*window,*desk,toilet,*door,tv,laptop,
mouse,remote,keyboard,cell phone,microwave,oven,toaster,sink,refrigerator,*blender,book,clock,vase,
scissors,teddy bear,hair drier,toothbrush,*hair brush,banner,blanket,branch,bridge,building-other,
bush,cabinet,cage,cardboard,carpet,ceiling-other,ceiling-tile,cloth,clothes,clouds,counter,cupboard,
curtain,desk-stuff,dirt,door-stuff,fence,floor-marble,floor-other,floor-stone,floor-tile,floor-wood,
flower,fog,food-other,fruit,furniture-other,grass,gravel,ground-other,hill,house,leaves,light,mat,
metal,mirror-stuff,moss,mountain,mud,napkin,net,paper,pavement,pillow,plant-other,plastic,platform,
playingfield,railing,railroad,river,road,rock,roof,rug,salad,sand,sea,shelf,sky-other,skyscraper,
snow,solid-other,stairs,stone,straw,structural-other,table,tent,textile-other,towel,tree,vegetable,
wall-brick,wall-concrete,wall-other,wall-panel,wall-stone,wall-tile,wall-wood,water-other,
waterdrops,window-blind,window-other,wood"""
COCO_NAMES = [name.strip() for name in COCO_STUFF_182.replace("\n", "").split(",")]


def write_image(path: Path, height: int = 40, width: int = 60, seed: int = 0) -> None:
    """A smooth picture, so that methods have something to look at."""
    path.parent.mkdir(parents=True, exist_ok=True)
    coarse = np.random.default_rng(seed).integers(0, 255, (4, 6, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((width, height), Image.Resampling.BILINEAR).save(path)


def write_mask(path: Path, values: NDArray[np.generic], palette: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(values.astype(np.uint8))
    if palette:
        image.putpalette([value for colour in range(256) for value in (colour, 0, 255 - colour)])
    image.save(path)


def every(values: list[int], height: int = 40, width: int = 60) -> NDArray[np.uint8]:
    """A mask in which each of the values stands, in stripes."""
    flat = np.resize(np.array(values, np.uint8), height * width)
    return flat.reshape(height, width)


def make_voc(root: Path, masks: dict[str, NDArray[np.uint8]], context: bool = False) -> Path:
    """VOC2012, or VOC2010 with the 60-class maps of PASCAL Context."""
    folder = "SegmentationClassContext" if context else "SegmentationClass"
    split = "SegmentationContext" if context else "Segmentation"
    for seed, (name, mask) in enumerate(masks.items()):
        write_image(root / "JPEGImages" / f"{name}.jpg", *mask.shape, seed)
        write_mask(root / folder / f"{name}.png", mask, palette=not context)
    listing = root / "ImageSets" / split / "val.txt"
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text("".join(f"{name}\n" for name in masks))
    return root


def make_ade(root: Path, masks: dict[str, NDArray[np.uint8]]) -> Path:
    for seed, (name, mask) in enumerate(masks.items()):
        write_image(root / "images/validation" / f"{name}.jpg", *mask.shape, seed)
        write_mask(root / "annotations/validation" / f"{name}.png", mask)
    return root


def make_cityscapes(root: Path, mask: NDArray[np.uint8], kind: str = "labelIds") -> Path:
    name = "lindau/lindau_000000_000019"
    write_image(root / "leftImg8bit/val" / f"{name}_leftImg8bit.png", *mask.shape)
    write_mask(root / "gtFine/val" / f"{name}_gtFine_{kind}.png", mask)
    return root


def make_coco(root: Path, mask: NDArray[np.uint8], suffix: str = "") -> Path:
    write_image(root / "images/val2017/000000000139.jpg", *mask.shape)
    write_mask(root / f"annotations/val2017/000000000139{suffix}.png", mask)
    return root
