"""GeoJSON: a region is a feature, with holes; where the image is a GeoTIFF, in degrees.

RFC 7946 knows one coordinate system, longitude and latitude of WGS 84, so that is what a map is
written in; `georeference` says in which one the image was, and how its pixels lie in it. An image
without a georeference has its polygons in pixels, y down, and `georeference` is null.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from naclip.errors import ImageError, MissingExtraError
from naclip.export.item import Item
from naclip.export.options import Options
from naclip.export.outlines import Polygon, Ring, outlines
from naclip.export.regions import Region, regions
from naclip.export.writer import Format, Made

Place: TypeAlias = Callable[[Ring], Ring]  # pixels -> coordinates
TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
WGS84 = "EPSG:4326"


def make(item: Item, options: Options) -> Made:
    georeference, place = located(item)
    features = [
        _feature(region, item, _geometry(outlines(region, options), place))
        for region in regions(item, options)
    ]
    document = {
        "type": "FeatureCollection",
        "name": item.name,
        "georeference": georeference,
        "features": features,
    }
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return Made({f"{item.stem}.geojson": text.encode() + b"\n"})


def located(item: Item) -> tuple[dict[str, Any] | None, Place]:
    """Where the image lies on earth, if its file says so."""
    data = item.read() if item.read else b""
    if not data.startswith(TIFF):
        return None, lambda ring: ring
    try:
        import rasterio
        from rasterio.warp import transform
    except ImportError:
        raise MissingExtraError(
            f"{item.name}: a TIFF's georeference needs rasterio: pip install 'naclip[geo]'"
        ) from None
    try:
        with warnings.catch_warnings(), rasterio.MemoryFile(data) as memory:
            warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
            with memory.open() as image:
                system, affine, size = image.crs, image.transform, (image.height, image.width)
    except rasterio.errors.RasterioError as error:
        raise ImageError(f"{item.name}: its georeference cannot be read ({error})") from None
    if system is None:
        return None, lambda ring: ring
    if size != item.size:
        raise ImageError(
            f"{item.name} is {size[1]}x{size[0]} in its file, but its mask is "
            f"{item.size[1]}x{item.size[0]}: expected a GeoTIFF that is not rotated by a tag"
        )

    def place(ring: Ring) -> Ring:
        x, y = np.array(affine).reshape(3, 3)[:2] @ np.pad(
            ring.T, ((0, 1), (0, 0)), constant_values=1
        )
        return np.stack(transform(system, WGS84, x, y), 1)

    return {"crs": system.to_string(), "transform": list(affine)[:6]}, place


def _geometry(polygons: list[Polygon], place: Place) -> dict[str, Any]:
    found = [
        [_closed(place(ring)) for ring in (polygon.outer, *polygon.holes)] for polygon in polygons
    ]
    if len(found) == 1:
        return {"type": "Polygon", "coordinates": found[0]}
    return {"type": "MultiPolygon", "coordinates": found}


def _closed(ring: Ring) -> list[list[float]]:
    """RFC 7946: the first point again at its end; nanodegrees are a tenth of a millimetre."""
    points: list[list[float]] = np.round(ring, 9).tolist()
    return [*points, points[0]]


def _feature(region: Region, item: Item, geometry: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "Feature",
        "geometry": geometry,
        "properties": {
            "class": item.classes.names[region.label],
            "number": item.classes.number(region.label),
            "score": region.score,
            "pixels": region.area,
        },
    }


FORMAT = Format(
    "GeoJSON; a GeoTIFF's georeference is kept",
    ".geojson",
    make,
    scores="yes",
)
