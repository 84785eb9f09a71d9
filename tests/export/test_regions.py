"""Regions, run lengths and outlines against other libraries and the definitions written out."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from pycocotools import mask as coco
from rasterio.features import rasterize
from shapely.geometry import MultiPolygon, Polygon

from naclip.errors import SettingsError
from naclip.export.cvat import runs
from naclip.export.item import VOID, Classes, Item, named
from naclip.export.options import Options
from naclip.export.outlines import outlines, polygons
from naclip.export.regions import counts, regions

from .drawn import CLASSES, MANY, UNHURRIED, any_items, item, numbers, picture


def flooded(made: Item) -> dict[int, list[frozenset[tuple[int, int]]]]:
    """Connected parts as defined: pixels of a label reached from each other by kings' moves."""
    labels = made.labels
    todo = {(int(r), int(c)) for r, c in np.argwhere(numbers(made))}
    parts = defaultdict(list)
    while todo:
        part, edge = set(), [min(todo)]
        label = int(labels[edge[0]])
        todo -= set(edge)
        while edge:
            row, column = edge.pop()
            part.add((row, column))
            near = {(row + r, column + c) for r in (-1, 0, 1) for c in (-1, 0, 1)} & todo
            found = {place for place in near if labels[place] == label}
            todo -= found
            edge += found
        parts[label].append(frozenset(part))
    return parts


@given(any_items())
@UNHURRIED
def test_parts_are_those_of_a_flood_fill(made: Item) -> None:
    found = defaultdict(list)
    for region in regions(made, Options(instances=True, min_pixels=2)):
        found[region.label].append(frozenset(map(tuple, np.argwhere(region.full()).tolist())))
    large = {
        label: sorted((part for part in parts if len(part) > 1), key=min)
        for label, parts in flooded(made).items()
    }
    assert dict(found) == {label: parts for label, parts in large.items() if parts}


@given(any_items())
@UNHURRIED
def test_regions_of_classes_are_the_label_map_again(made: Item) -> None:
    again = np.zeros(made.size, np.int64)
    for region in regions(made):
        assert not again[region.full()].any(), "each pixel in one region"
        again[region.full()] = made.classes.number(region.label) + 1
        assert region.area == region.full().sum()
        assert region.score == pytest.approx(made.scores[region.full()].mean(), abs=1e-6)
    np.testing.assert_array_equal(again, numbers(made))


@given(any_items())
@UNHURRIED
def test_small_parts_are_left_out_of_whole_classes_too(made: Item) -> None:
    parts = flooded(made)
    for region in regions(made, Options(min_pixels=3)):
        kept = {place for part in parts.pop(region.label) if len(part) >= 3 for place in part}
        assert set(map(tuple, np.argwhere(region.full()).tolist())) == kept
    assert all(len(part) < 3 for rest in parts.values() for part in rest)


@given(any_items())
@UNHURRIED
def test_run_lengths_are_those_of_pycocotools(made: Item) -> None:
    for region in regions(made):
        packed = coco.frPyObjects({"counts": counts(region), "size": list(made.size)}, *made.size)
        assert packed == coco.encode(np.asfortranarray(region.full(), np.uint8))


@given(any_items())
@UNHURRIED
def test_rows_of_runs_decode_to_the_mask(made: Item) -> None:
    for region in regions(made):
        lengths = runs(region.mask)
        inside = np.repeat(np.arange(len(lengths)) % 2, lengths).reshape(region.mask.shape)
        np.testing.assert_array_equal(inside, region.mask)


@given(any_items())
@UNHURRIED
def test_outlines_are_valid_for_shapely_and_rasterio_fills_them_to_the_mask(made: Item) -> None:
    for region in regions(made):
        shapes = [Polygon(p.outer, p.holes) for p in outlines(region, Options())]
        whole = MultiPolygon(shapes)
        assert whole.is_valid
        assert whole.area == region.area
        filled = rasterize(shapes, out_shape=made.size)
        np.testing.assert_array_equal(filled, region.full())


@given(any_items())
@UNHURRIED
def test_pycocotools_fills_outlines_with_cuts_to_the_mask(made: Item) -> None:
    for region in regions(made):
        rings = [p.with_cuts().ravel().tolist() for p in outlines(region, Options())]
        filled = coco.decode(coco.merge(coco.frPyObjects(rings, *made.size)))
        np.testing.assert_array_equal(filled, region.full())


def test_outlines_by_hand() -> None:
    ring = np.ones((3, 3), np.bool_)
    ring[1, 1] = False
    (polygon,) = polygons(ring)
    assert polygon.outer.tolist() == [[0, 0], [3, 0], [3, 3], [0, 3]]
    (hole,) = polygon.holes
    assert sorted(hole.tolist()) == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert [p.outer.tolist()[0] for p in polygons(np.eye(2, dtype=np.bool_))] == [[0, 0], [1, 1]]


def test_simplified_outlines_have_fewer_points_and_stay_near() -> None:
    disc = np.hypot(*np.mgrid[-30:31, -30:31]) < 29
    (region,) = regions(item(disc.astype(np.uint16)))
    (exact,), (fewer,) = outlines(region, Options()), outlines(region, Options(simplify=1.5))
    assert len(fewer.outer) < len(exact.outer) / 4
    difference = Polygon(exact.outer).symmetric_difference(Polygon(fewer.outer))
    assert difference.buffer(-0.76).is_empty, "nowhere wider than 1.5 pixels"
    (lone,) = regions(item(np.array([[0, 1]])))
    assert len(outlines(lone, Options(simplify=99))[0].outer) == 4, "nothing vanishes"


def test_a_thousand_classes_and_none() -> None:
    labels = np.arange(1000, dtype=np.uint16).reshape(25, 40)
    found = list(regions(item(labels, MANY)))
    assert [region.label for region in found] == list(range(1000))
    assert not list(regions(item(np.full((4, 4), VOID))))
    assert not list(regions(item(np.zeros((4, 4)))))


def test_parts_are_ordered_by_their_first_pixel() -> None:
    found = list(regions(item(picture()), Options(instances=True)))
    assert [(r.label, r.top, r.left, r.area) for r in found] == [
        (1, 2, 2, 48),
        (2, 1, 20, 1),
        (2, 5, 5, 4),
        (3, 12, 10, 8),
    ]


def test_names_are_below_the_common_folder_and_no_stem_is_twice() -> None:
    found = dict(named(["/x/a/1.jpg", "/x/b/1.jpg", "/x/b/2.png", "/x/b/2.jpg"]))
    assert found == {
        "a/1.jpg": "a/1",
        "b/1.jpg": "b/1",
        "b/2.png": "b/2.png",
        "b/2.jpg": "b/2.jpg",
    }
    assert item(picture(), name="../../etc/x.png").name == "etc/x.png"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SettingsError, match="label 4, but there are 4 classes"):
        item(np.array([[4]]))
    with pytest.raises(SettingsError, match="min_pixels is 0: use at least 1"):
        Options(min_pixels=0)
    with pytest.raises(SettingsError, match="simplify is nan"):
        Options(simplify=float("nan"))
    with pytest.raises(SettingsError, match="no option 'instance'; did you mean 'instances'"):
        Options.of({"instance": True})
    assert CLASSES.number(1) == 0
    assert Classes(("a", "b")).number(1) == 1
