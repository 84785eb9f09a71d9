"""Painters of the eleven background materials: one point in, one colour out.

x, y in units (one training pixel); `v` in [0, 1] picks a variant of the material's colours, `seed`
its noise. Colours are RGB on 0..255 and may leave that range: light and clipping come last.
"""

import math

from numba import njit

from naclip.synthetic.noise import cells, cloudy, hashed, smooth, step, triangle

Rgb = tuple[float, float, float]


@njit(cache=True, nogil=True)
def mix(a: Rgb, b: Rgb, t: float) -> Rgb:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t, a[2] + (b[2] - a[2]) * t


@njit(cache=True, nogil=True)
def scaled(a: Rgb, t: float) -> Rgb:
    return a[0] * t, a[1] * t, a[2] * t


@njit(cache=True, nogil=True, inline="never")
def _sky(x: float, y: float, v: float, seed: int) -> Rgb:
    height = min(1.0, max(0.0, y / 70.0))
    base = mix((84.0, 150.0, 222.0), (176.0, 212.0, 240.0), height)
    if v > 0.75:  # dusk
        base = mix((126.0, 130.0, 200.0), (246.0, 186.0, 150.0), height)
    cloud = step(0.48, 0.74, cloudy(x / 17.0, y / 8.0, seed))
    return mix(base, (250.0, 250.0, 252.0), 0.9 * cloud)


@njit(cache=True, nogil=True, inline="never")
def _water(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((22.0, 82.0, 132.0), (28.0, 134.0, 148.0), v)
    swell = 2.6 * smooth(x / 6.0, y / 5.0, seed) + 0.8 * smooth(x / 2.5, y / 2.0, seed + 5)
    wave = 0.5 + 0.5 * math.sin(y * 1.45 + swell * 2.2)
    glint = step(0.82, 0.98, wave) * step(0.35, 0.6, smooth(x / 5.0, y / 2.2, seed + 9))
    return mix(scaled(base, 0.78 + 0.42 * wave), (214.0, 238.0, 244.0), 0.8 * glint)


@njit(cache=True, nogil=True, inline="never")
def _grass(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((66.0, 128.0, 40.0), (112.0, 152.0, 48.0), v)
    lean = x + 0.9 * smooth(x / 3.0, y / 5.0, seed + 3)
    blade = 0.62 * smooth(lean * 1.25, y * 0.3, seed) + 0.38 * smooth(lean * 2.1, y * 0.5, seed + 1)
    patchy = cloudy(x / 14.0, y / 14.0, seed + 2)
    tip = step(0.62, 0.8, blade)
    dark = scaled(base, 0.5 + 0.75 * blade + 0.3 * (patchy - 0.5))
    return mix(dark, (178.0, 204.0, 92.0), 0.55 * tip)


@njit(cache=True, nogil=True, inline="never")
def _sand(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((226.0, 198.0, 142.0), (214.0, 176.0, 122.0), v)
    ripple = math.sin((y + 5.0 * smooth(x / 13.0, y / 16.0, seed)) * 0.85)
    grain = smooth(x * 1.9, y * 1.9, seed + 1) - 0.5
    return scaled(base, 1.0 + 0.07 * ripple + 0.17 * grain)


@njit(cache=True, nogil=True, inline="never")
def _snow(x: float, y: float, v: float, seed: int) -> Rgb:
    wind = y + 3.0 * smooth(x / 12.0, y / 9.0, seed)
    drift = 0.6 * smooth(x / 9.0, wind / 2.1, seed + 1) + 0.4 * smooth(x / 4.0, wind, seed + 2)
    base = mix((178.0, 202.0, 236.0), (250.0, 252.0, 255.0), step(0.2, 0.62, drift))
    sparkle = hashed(math.floor(x * 1.2), math.floor(y * 1.2), seed + 3)
    base = scaled(base, 0.96 + 0.1 * sparkle)
    return mix(base, (246.0, 240.0, 244.0), 0.4 * v)


@njit(cache=True, nogil=True, inline="never")
def _brick(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((170.0, 78.0, 56.0), (186.0, 122.0, 84.0), v)
    row = math.floor(y / 4.2)
    along = x / 8.6 + 0.5 * (int(row) & 1)
    column = math.floor(along)
    gap = min(0.5 - abs(y / 4.2 - row - 0.5), (0.5 - abs(along - column - 0.5)) * 2.05)
    tint = hashed(int(column), int(row), seed)
    face = scaled(base, 0.78 + 0.42 * tint + 0.2 * (smooth(x * 1.5, y * 1.5, seed + 1) - 0.5))
    return mix((206.0, 198.0, 186.0), face, step(0.06, 0.17, gap))


@njit(cache=True, nogil=True, inline="never")
def _wood(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((156.0, 104.0, 60.0), (206.0, 160.0, 106.0), v)
    plank = math.floor(x / 9.0)
    tint = hashed(int(plank), 3, seed)
    bend = 3.0 * smooth(x / 4.0 + 9.0 * tint, y / 12.0, seed + 1)
    grain = 0.5 + 0.5 * math.sin(x * 2.1 + bend * 2.4 + 20.0 * tint)
    groove = step(0.015, 0.085, 0.5 - abs(x / 9.0 - plank - 0.5))
    return scaled(base, (0.82 + 0.2 * tint + 0.22 * (grain - 0.5)) * (0.42 + 0.58 * groove))


@njit(cache=True, nogil=True, inline="never")
def _stone(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((150.0, 152.0, 156.0), (158.0, 148.0, 134.0), v)
    first, second, tint = cells(x / 6.6, y / 6.0, seed, 0.75)
    edge = second - first
    rounded = 0.62 + 0.5 * step(0.0, 0.55, edge) - 0.25 * first
    rough = 0.16 * (smooth(x * 1.1, y * 1.1, seed + 1) - 0.5)
    face = scaled(base, rounded * (0.8 + 0.36 * tint) + rough)
    return mix((66.0, 62.0, 58.0), face, step(0.04, 0.19, edge))


@njit(cache=True, nogil=True, inline="never")
def _soil(x: float, y: float, v: float, seed: int) -> Rgb:
    base = mix((98.0, 66.0, 42.0), (118.0, 80.0, 58.0), v)
    clod = cloudy(x / 4.2, y / 3.6, seed)
    fine = smooth(x * 1.2, y * 1.2, seed + 4) - 0.5
    first, _, tint = cells(x / 7.5, y / 7.5, seed + 5, 1.0)
    pebble = (1.0 - step(0.1, 0.2, first)) * (1.0 if tint > 0.45 else 0.0)
    return mix(scaled(base, 0.36 + 1.15 * clod + 0.3 * fine), (178.0, 160.0, 140.0), 0.8 * pebble)


@njit(cache=True, nogil=True, inline="never")
def _carpet(x: float, y: float, v: float, seed: int) -> Rgb:
    base = (126.0, 30.0, 44.0)
    if v > 0.66:
        base = (34.0, 52.0, 102.0)
    elif v > 0.33:
        base = (46.0, 84.0, 72.0)
    pile = 0.84 + 0.34 * hashed(math.floor(x * 1.4), math.floor(y * 1.4), seed)
    cx, cy = triangle(x / 9.0) * 9.0, triangle(y / 9.0) * 9.0
    ox, oy = 4.5 - cx, 4.5 - cy
    diamond = abs(ox + oy - 3.2)
    ornament = max(1.0 - step(0.35, 0.9, diamond), 1.0 - step(0.8, 1.5, cx + cy))
    return scaled(mix(base, (222.0, 184.0, 108.0), 0.85 * ornament), pile)


@njit(cache=True, nogil=True, inline="never")
def _road(x: float, y: float, v: float, seed: int) -> Rgb:
    grey = 76.0 + 26.0 * v
    speck = hashed(math.floor(x * 1.3), math.floor(y * 1.3), seed) - 0.5
    worn = cloudy(x / 20.0, y / 20.0, seed + 1) - 0.5
    shade = grey * (1.0 + 0.3 * speck + 0.3 * worn)
    lane = triangle((x + 11.0 * hashed(1, 1, seed)) / 34.0) * 34.0
    dash = step(0.1, 0.14, triangle(y / 17.0))
    paint = (1.0 - step(0.7, 1.3, lane)) * dash
    return mix((shade, shade, shade * 1.04), (232.0, 228.0, 212.0), 0.85 * paint)


@njit(cache=True, nogil=True)
def material(kind: int, x: float, y: float, v: float, seed: int) -> Rgb:  # noqa: PLR0911
    """The colour of material `kind` (its label) at a point."""
    if kind == 0:
        return _sky(x, y, v, seed)
    if kind == 1:
        return _water(x, y, v, seed)
    if kind == 2:
        return _grass(x, y, v, seed)
    if kind == 3:
        return _sand(x, y, v, seed)
    if kind == 4:
        return _snow(x, y, v, seed)
    if kind == 5:
        return _brick(x, y, v, seed)
    if kind == 6:
        return _wood(x, y, v, seed)
    if kind == 7:
        return _stone(x, y, v, seed)
    if kind == 8:
        return _soil(x, y, v, seed)
    if kind == 9:
        return _carpet(x, y, v, seed)
    return _road(x, y, v, seed)
