"""GeoJSON against GDAL: the polygons lie on earth where rasterio says that the pixels are."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import rasterio
from hypothesis import given
from PIL import Image
from rasterio.features import rasterize
from rasterio.transform import Affine
from rasterio.warp import transform_geom
from shapely.geometry import shape

from naclip.errors import ImageError
from naclip.export.item import VOID, Item
from naclip.export.options import Options

from .drawn import UNHURRIED, any_items, exported, item, picture

NORTH_UP = Affine(0.5, 0, 500_000, 0, -0.5, 5_300_000)
TURNED = NORTH_UP @ Affine.rotation(30)


def tiff(path: Path, system: str | None, affine: Affine = NORTH_UP) -> Path:
    height, width = picture().shape
    place = {"crs": system, "transform": affine} if system else {}
    with rasterio.open(
        path, "w", driver="GTiff", height=height, width=width, count=3, dtype="uint8", **place
    ) as file:
        file.write(np.zeros((3, height, width), np.uint8))
    return path


def of_file(path: Path) -> Item:
    made = item(picture(), name=path.name)
    return Item(made.labels, made.classes, made.name, scores=made.scores, read=path.read_bytes)


@pytest.mark.parametrize("affine", [NORTH_UP, TURNED])
@pytest.mark.parametrize("system", ["EPSG:32633", "EPSG:3857", "EPSG:4326"])
def test_rasterio_burns_the_features_back_onto_the_labels(
    tmp_path: Path, system: str, affine: Affine
) -> None:
    if system == "EPSG:4326":
        affine = Affine.translation(10, 50) @ Affine.scale(1e-5, -1e-5)
    path = tiff(tmp_path / "tile.tif", system, affine)
    exported([of_file(path)], "geojson", tmp_path, Options(instances=True))
    document = json.loads((tmp_path / "tile.geojson").read_text())
    with rasterio.open(path) as image:
        assert document["georeference"]["crs"] == image.crs.to_string()
        assert Affine(*document["georeference"]["transform"]) == image.transform
        burnt = rasterize(
            [
                (transform_geom("EPSG:4326", image.crs, f["geometry"]), f["properties"]["number"])
                for f in document["features"]
            ],
            out_shape=image.shape,
            transform=image.transform,
            fill=99,
        )
    labels = picture()
    wanted = np.where((labels == 0) | (labels == VOID), 99, labels.astype(int) - 1)
    np.testing.assert_array_equal(burnt, wanted)
    longitude, latitude = document["features"][0]["geometry"]["coordinates"][0][0]
    assert -180 <= longitude <= 180
    assert 40 < latitude < 60


@given(any_items())
@UNHURRIED
def test_shapely_finds_the_pixels_of_an_image_without_a_georeference(made: Item) -> None:
    with tempfile.TemporaryDirectory() as folder:
        exported([made], "geojson", Path(folder))
        document = json.loads((Path(folder) / "a/b.geojson").read_text())
    assert document["georeference"] is None
    for feature in document["features"]:
        found = shape(feature["geometry"])
        assert found.is_valid
        where = made.labels == made.classes.names.index(feature["properties"]["class"])
        assert found.area == feature["properties"]["pixels"] == where.sum()
        np.testing.assert_array_equal(rasterize([found], out_shape=made.size), where)


def test_a_tiff_without_a_georeference_and_other_files_are_in_pixels(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (24, 16)).save(buffer, format="PNG")
    (tmp_path / "plain.png").write_bytes(buffer.getvalue())
    for path in (tmp_path / "plain.png", tiff(tmp_path / "plain.tif", None)):
        exported([of_file(path)], "geojson", tmp_path)
        document = json.loads((tmp_path / "plain.geojson").read_text())
        assert document["georeference"] is None
        assert document["features"][0]["geometry"]["coordinates"][0][0] == [2, 2]


def test_a_mask_of_another_size_is_refused(tmp_path: Path) -> None:
    path = tiff(tmp_path / "tile.tif", "EPSG:32633")
    made = of_file(path)
    other = Item(made.labels.T, made.classes, made.name, read=made.read)
    with pytest.raises(ImageError, match=r"tile.tif is 24x16 in its file, but its mask is 16x24"):
        exported([other], "geojson", tmp_path)


def test_a_damaged_tiff_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.tif"
    path.write_bytes(b"II*\0 no more")
    with pytest.raises(ImageError, match=r"bad.tif: its georeference cannot be read"):
        exported([of_file(path)], "geojson", tmp_path)
