"""The renderer: a numeric description of a scene in, picture and labels out, at any scale."""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from naclip.synthetic.materials import Rgb, material, mix
from naclip.synthetic.noise import hashed, smooth, step
from naclip.synthetic.shapes import outline
from naclip.synthetic.textures import surface

# Columns of a thing's row (`things`), all float64.
KIND, X, Y, RADIUS, COS, SIN, FLIP, TEXTURE, RED, GREEN, BLUE, SEED = range(12)
# Columns of a region's row (`regions`): the region is where nx*x + ny*y + wobble > offset.
R_KIND, R_VARIANT, R_SEED, R_NX, R_NY, R_OFFSET, R_WOBBLE, R_TEXTURE, R_COS, R_SIN = range(10)
# Entries of `light`.
L_GAIN, L_X, L_Y, L_RED, L_GREEN, L_BLUE, L_NOISE, L_SHADOW, L_SEED = range(9)

Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True, inline="never")
def _region_at(regions: Floats, x: float, y: float) -> int:
    """The last region that claims the point; region 0 claims every point."""
    found = 0
    for i in range(1, regions.shape[0]):
        r = regions[i]
        seed = int(r[R_SEED])
        wobble = r[R_WOBBLE] * (smooth(x / 9.0, y / 9.0, seed) - 0.5)
        if r[R_NX] * x + r[R_NY] * y + wobble > r[R_OFFSET]:
            found = i
    return found


@njit(cache=True, nogil=True, inline="never")
def _ground(regions: Floats, x: float, y: float) -> tuple[int, Rgb]:
    r = regions[_region_at(regions, x, y)]
    u = (x * r[R_COS] + y * r[R_SIN]) * r[R_TEXTURE]
    w = (y * r[R_COS] - x * r[R_SIN]) * r[R_TEXTURE]
    kind = int(r[R_KIND])
    return kind, material(kind, u, w, r[R_VARIANT], int(r[R_SEED]))


@njit(cache=True, nogil=True, inline="never")
def _local(t: Floats, x: float, y: float) -> tuple[float, float]:
    dx, dy = (x - t[X]) / t[RADIUS], (y - t[Y]) / t[RADIUS]
    return (dx * t[COS] + dy * t[SIN]) * t[FLIP], dy * t[COS] - dx * t[SIN]


@njit(cache=True, nogil=True, inline="never")
def _cover(
    t: Floats, light: Floats, colour: Rgb, x: float, y: float, unit: float
) -> tuple[bool, Rgb]:
    """Lay one thing over `colour` at a point: is the point inside it, and the new colour."""
    reach = 1.25 * t[RADIUS] + 2.0
    if abs(x - t[X]) > reach or abs(y - t[Y]) > reach:
        return False, colour
    px, py = _local(t, x - 0.09 * t[RADIUS], y - 0.13 * t[RADIUS])
    shade = 1.0 - light[L_SHADOW] * (1.0 - step(-0.12, 0.16, outline(int(t[KIND]), px, py)))
    colour = (colour[0] * shade, colour[1] * shade, colour[2] * shade)
    px, py = _local(t, x, y)
    distance = outline(int(t[KIND]), px, py)
    soft = 0.5 * unit / t[RADIUS]
    cover = 1.0 - step(-soft, soft, distance)
    if cover <= 0.0:
        return False, colour
    scale = t[RADIUS] * t[TEXTURE]
    seed = int(t[SEED])
    own = (t[RED], t[GREEN], t[BLUE])
    rgb = surface(int(t[KIND]), own, px, py, px * scale + 40.0, py * scale + 40.0, seed)
    # The side towards the light is brighter, and the rim is darker: it reads as a body.
    form = 1.0 + 0.16 * ((x - t[X]) * light[L_X] + (y - t[Y]) * light[L_Y]) / t[RADIUS]
    form *= 0.72 + 0.28 * step(0.0, 0.09, -distance)
    return distance < 0.0, mix(colour, (rgb[0] * form, rgb[1] * form, rgb[2] * form), cover)


@njit(cache=True, nogil=True, inline="never")
def paint(
    regions: Floats,
    things: Floats,
    light: Floats,
    scale: float,
    points: Floats,
    image: npt.NDArray[np.uint8],
    labels: npt.NDArray[np.uint8],
    first_thing: int,
) -> None:
    """Draw into image (H, W, 3) and labels (H, W); a pixel is 1 / scale units.

    The colour is the mean over `points` (n, 2) of the pixel; the label is the centre's.
    """
    height, width = labels.shape
    unit = 1.0 / (scale * math.sqrt(points.shape[0]))
    noise_seed = int(light[L_SEED])
    for row in range(height):
        for column in range(width):
            red, green, blue = 0.0, 0.0, 0.0
            for k in range(points.shape[0]):
                x = (column + points[k, 0]) / scale
                y = (row + points[k, 1]) / scale
                _, colour = _ground(regions, x, y)
                for i in range(things.shape[0]):
                    _, colour = _cover(things[i], light, colour, x, y, unit)
                red, green, blue = red + colour[0], green + colour[1], blue + colour[2]
            x, y = (column + 0.5) / scale, (row + 0.5) / scale
            label = int(regions[_region_at(regions, x, y)][R_KIND])
            for i in range(things.shape[0]):
                px, py = _local(things[i], x, y)
                if max(abs(px), abs(py)) < 1.3 and outline(int(things[i][KIND]), px, py) < 0.0:
                    label = first_thing + int(things[i][KIND])
            labels[row, column] = label
            slope = light[L_X] * (x / width * scale - 0.5) + light[L_Y] * (y / height * scale - 0.5)
            gain = light[L_GAIN] * (1.0 + 0.22 * slope) / points.shape[0]
            for c in range(3):
                grain = hashed(column, row, noise_seed + c) + hashed(
                    row, column, noise_seed + 9 + c
                )
                value = (red, green, blue)[c] * gain * light[L_RED + c]
                value += light[L_NOISE] * (grain - 1.0)
                image[row, column, c] = int(min(255.0, max(0.0, math.floor(value + 0.5))))
