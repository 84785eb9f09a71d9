"""Surfaces of the things: each is recognisable from a patch of eight units, in any colour.

x, y are relative to the thing's radius (for what sits at a fixed place: eyes, roofs, trunks);
u, w are the same point in units of texture, so that a pattern's period does not grow with the
thing. `c` is the thing's own colour.
"""

import math

from numba import njit

from naclip.synthetic.materials import Rgb, mix, scaled
from naclip.synthetic.noise import cells, hashed, smooth, step, triangle
from naclip.synthetic.shapes import oval

INK = (26.0, 24.0, 30.0)
CREAM = (250.0, 244.0, 228.0)


@njit(cache=True, nogil=True, inline="never")
def _stripes(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Zebra: wavy ink stripes across a coloured coat."""
    bend = 1.5 * smooth(u / 5.0, w / 4.0, seed)
    bands = triangle((u + 0.35 * w + bend * 1.3) / 4.4)
    coat = mix(c, CREAM, 0.12)
    muzzle = max(1.0 - step(0.1, 0.2, math.sqrt((x - 0.98) ** 2 + (y + 0.42) ** 2)), 0.0)
    return mix(mix(INK, coat, step(0.17, 0.29, bands)), INK, muzzle)


@njit(cache=True, nogil=True, inline="never")
def _dots(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Ladybug: round ink dots on a glossy shell; ink head."""
    row = math.floor(w / 4.8)
    du = (u / 5.4 + 0.5 * (int(row) & 1)) % 1.0 - 0.5
    dw = w / 4.8 - row - 0.5
    dot = math.sqrt((du * 5.4) ** 2 + (dw * 4.8) ** 2)
    gloss = 0.35 * (1.0 - step(0.0, 0.6, math.sqrt((x + 0.3) ** 2 + (y + 0.2) ** 2)))
    shell = mix(mix(c, CREAM, gloss), INK, 1.0 - step(1.25, 1.9, dot))
    shell = mix(shell, INK, 1.0 - step(0.02, 0.06, abs(x)))
    return mix(INK, shell, step(-0.52, -0.46, y - 0.12 * x * x))


@njit(cache=True, nogil=True, inline="never")
def _scales(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Fish: rows of overlapping scales, pale at the rim; eye and rayed tail."""
    column = math.floor(u / 2.7)
    du = u / 2.7 - column
    dw = (w / 4.0 + 0.5 * (int(column) & 1)) % 1.0 - 0.5
    arc = math.sqrt((1.0 - du) ** 2 * 0.9 + (dw * 1.5) ** 2)
    rim = step(0.42, 0.62, arc) * (1.0 - step(0.86, 1.0, arc))
    body = mix(scaled(c, 0.62 + 0.4 * arc), (255.0, 255.0, 255.0), 0.72 * rim)
    if x > 0.56:
        body = scaled(c, 0.7 + 0.5 * triangle(math.atan2(y, x - 0.1) * 4.5))
    eye = math.sqrt((x + 0.66) ** 2 + (y + 0.14) ** 2)
    body = mix((255.0, 255.0, 255.0), body, step(0.11, 0.15, eye))
    return mix(INK, body, step(0.045, 0.09, eye))


@njit(cache=True, nogil=True, inline="never")
def _petals(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Flowers: a bouquet of five-petalled blossoms with yellow hearts among dark leaves."""
    best, heart = 0.0, 9.0
    row = math.floor(w / 6.2)
    for j in range(-1, 2):
        shift = 0.5 * (int(row + j) & 1)
        column = math.floor(u / 6.8 - shift)
        for i in range(-1, 2):
            jitter = hashed(int(column + i), int(row + j), seed)
            du = u - (column + i + 0.5 + shift) * 6.8 - 0.8 * (jitter - 0.5)
            dw = w - (row + j + 0.5) * 6.2 - 0.8 * (jitter - 0.5)
            r = math.sqrt(du * du + dw * dw)
            reach = 2.95 + 0.85 * math.cos(5.0 * math.atan2(dw, du) + 6.28 * jitter)
            best = max(best, 1.0 - step(reach - 0.35, reach + 0.35, r))
            heart = min(heart, r)
    leaf = mix((18.0, 62.0, 30.0), (46.0, 104.0, 44.0), smooth(u / 1.6, w / 1.6, seed))
    petal = mix(scaled(c, 0.72), mix(c, CREAM, 0.4), step(0.8, 3.2, heart))
    return mix((252.0, 214.0, 48.0), mix(leaf, petal, best), step(0.75, 1.25, heart))


@njit(cache=True, nogil=True, inline="never")
def _windows(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """House: rows of lit windows with dark frames in a coloured wall; slate roof."""
    column, row = math.floor(u / 5.2), math.floor(w / 6.0)
    du, dw = abs(u / 5.2 - column - 0.5) * 5.2, abs(w / 6.0 - row - 0.5) * 6.0
    lit = hashed(int(column), int(row), seed)
    glass = mix((250.0, 226.0, 130.0), (150.0, 204.0, 240.0), step(0.45, 0.55, lit))
    pane = mix(scaled(glass, 0.5), glass, step(0.1, 0.4, min(du, dw)))
    frame = max(du - 1.3, dw - 1.75)
    wall = mix(mix(INK, c, step(0.35, 0.85, frame)), pane, 1.0 - step(-0.25, 0.2, frame))
    tile = 0.75 + 0.4 * triangle(w / 2.0) + 0.25 * hashed(int(u / 2.0), int(w / 2.0), seed)
    return mix(scaled((96.0, 76.0, 84.0), tile), wall, step(-0.42, -0.38, y))


@njit(cache=True, nogil=True, inline="never")
def _leaves(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Tree: tufts of leaves, light above and dark below, with deep gaps; brown trunk."""
    first, second, tint = cells(u / 3.3, w / 2.9, seed, 0.9)
    tuft = 0.6 + 0.7 * tint - 0.75 * first
    gap = step(0.03, 0.2, second - first)
    shade = (0.3 + 0.7 * gap) * tuft * (1.1 - 0.22 * y)
    crown = mix(scaled(c, shade + 0.12), CREAM, 0.45 * step(0.85, 1.1, tuft))
    bark = scaled((98.0, 64.0, 40.0), 0.7 + 0.6 * smooth(u * 1.5, w / 3.0, seed))
    trunk = step(0.34, 0.42, y) * (1.0 - step(0.14, 0.2, abs(x)))
    return mix(crown, bark, trunk)


@njit(cache=True, nogil=True, inline="never")
def _checks(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Chessboard: cream and coloured squares inside a dark frame."""
    fu, fw = u / 3.4, w / 3.4
    odd = (math.floor(fu) + math.floor(fw)) & 1
    edge = min(0.5 - abs(fu - math.floor(fu) - 0.5), 0.5 - abs(fw - math.floor(fw) - 0.5))
    amount = 0.5 + (0.5 - odd) * step(-0.04, 0.1, edge)
    board = mix(scaled(c, 0.85), CREAM, amount)
    return mix(board, (74.0, 48.0, 32.0), step(0.76, 0.79, max(abs(x), abs(y))))


@njit(cache=True, nogil=True, inline="never")
def _knit(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Sweater: columns of V stitches; ribbed hem."""
    side = triangle(u / 4.4) * 2.0
    stitch = triangle((w - 3.0 * side) / 2.9) * 2.0
    shade = 0.52 + 0.66 * step(0.08, 0.75, stitch)
    shade *= 0.62 + 0.38 * step(0.03, 0.22, min(side, 1.0 - side))
    hem = step(0.74, 0.78, y)
    rib = 0.55 + 0.6 * triangle(u / 2.4) * 2.0
    return mix(scaled(c, shade * (1.0 - hem) + rib * hem), CREAM, 0.14)


@njit(cache=True, nogil=True, inline="never")
def _weave(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Basket: flat strips going over and under each other, dark holes between; rim and handle."""
    fu, fw = u / 3.6, w / 3.6
    iu, iw = math.floor(fu), math.floor(fw)
    du, dw = fu - iu - 0.5, fw - iw - 0.5
    over = (int(iu) + int(iw)) & 1
    along, across = (du, dw) if over else (dw, du)
    bulge = (1.15 - 1.7 * along * along) * (1.0 - step(0.3, 0.48, abs(across)))
    straw = mix(scaled(c, bulge), (222.0, 188.0, 132.0), 0.42 * step(0.5, 1.1, bulge))
    rim = max(step(-0.2, -0.26, y), 0.0) if y < -0.2 else 0.0
    return mix(straw, scaled(c, 0.8 + 0.35 * triangle((u + w) / 3.0)), rim)


@njit(cache=True, nogil=True, inline="never")
def _seeds(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Strawberry: pale drop-shaped seeds in dimples on juicy flesh; green cap."""
    row = math.floor(w / 3.6)
    du = ((u / 4.2 + 0.5 * (int(row) & 1)) % 1.0 - 0.5) * 4.2
    dw = (w / 3.6 - row - 0.5) * 3.6
    drop = math.sqrt((du * 1.5) ** 2 + (dw * 0.9) ** 2)
    dimple = 1.0 - 0.38 * (1.0 - step(0.7, 1.9, math.sqrt(du * du + (dw + 0.5) ** 2)))
    flesh = mix(scaled(c, dimple), (255.0, 240.0, 150.0), 1.0 - step(0.5, 1.0, drop))
    cap = 1.0 - step(-0.72, -0.64, y - 0.12 * math.cos(9.0 * x))
    return mix(flesh, (62.0, 140.0, 50.0), cap)


@njit(cache=True, nogil=True, inline="never")
def _tufts(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Couch: diamond-tufted cushions, soft light on each, a button in every corner."""
    a, b = (u + w) / 7.4, (u - w) / 7.4
    da, db = triangle(a), triangle(b)
    cushion = step(0.0, 0.42, min(da, db))
    tilt = (a - math.floor(a)) * 0.5 + 0.5 * (1.0 - (b - math.floor(b)))
    leather = scaled(c, 0.56 + 0.36 * cushion + 0.3 * (1.0 - tilt))
    sheen = 0.45 * cushion * step(0.5, 0.85, 1.0 - tilt)
    button = 1.0 - step(0.1, 0.17, math.sqrt(da * da + db * db))
    feet = step(0.62, 0.66, y)
    return mix(mix(mix(leather, CREAM, sheen), INK, 0.85 * button), (60.0, 40.0, 28.0), feet)


@njit(cache=True, nogil=True, inline="never")
def _shell(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Turtle: rounded plates with growth rings and pale seams; olive skin."""
    first, second, tint = cells(u / 5.6, w / 5.6, seed, 0.45)
    seam = step(0.1, 0.24, second - first)
    ring = 0.5 + 0.5 * math.cos(first * 24.0)
    plate = scaled(c, 0.42 + 0.3 * tint + 0.4 * ring)
    back = mix((232.0, 224.0, 160.0), plate, seam)
    skin = scaled((112.0, 138.0, 66.0), 0.85 + 0.3 * smooth(u, w, seed))
    eye = 1.0 - step(0.04, 0.07, math.sqrt((x - 0.9) ** 2 + (abs(y) - 0.08) ** 2))
    rim = step(0.0, 0.03, oval(x, y, -0.08, 0.0, 0.78, 0.66))
    return mix(back, mix(skin, INK, eye), rim)


@njit(cache=True, nogil=True, inline="never")
def _wedges(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Umbrella: broad smooth panels, coloured and white in turn, fanning from the top."""
    turn = math.atan2(x, y + 1.15) * 4.2 + 0.5
    panel = math.floor(turn) & 1
    inside = turn - math.floor(turn)
    sag = 0.78 + 0.9 * inside * (1.0 - inside)
    cloth = mix(c, CREAM, 0.92 * panel)
    seam = step(0.0, 0.09, min(inside, 1.0 - inside))
    pole = step(0.24, 0.26, y)
    return mix(scaled(cloth, sag * (0.6 + 0.4 * seam)), (90.0, 70.0, 56.0), pole)


@njit(cache=True, nogil=True, inline="never")
def _eyespots(c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:
    """Butterfly: wings of ringed eyespots (ink heart, white ring, ink rim); ink body."""
    row = math.floor(w / 5.6)
    du = ((u / 6.0 + 0.5 * (int(row) & 1)) % 1.0 - 0.5) * 6.0
    dw = (w / 5.6 - row - 0.5) * 5.6
    r = math.sqrt(du * du + dw * dw)
    ring = mix((110.0, 214.0, 236.0), (255.0, 255.0, 255.0), step(0.5, 1.0, r))
    ring = mix(ring, INK, step(1.35, 1.7, r))
    wing = mix(ring, scaled(c, 1.05), step(2.1, 2.5, r))
    body = 1.0 - step(0.07, 0.12, abs(x))
    return mix(wing, INK, body)


@njit(cache=True, nogil=True)
def surface(kind: int, c: Rgb, x: float, y: float, u: float, w: float, seed: int) -> Rgb:  # noqa: PLR0911, PLR0912
    """The colour of thing `kind` (0 is the first thing) at a point inside its outline."""
    if kind == 0:
        return _stripes(c, x, y, u, w, seed)
    if kind == 1:
        return _dots(c, x, y, u, w, seed)
    if kind == 2:
        return _scales(c, x, y, u, w, seed)
    if kind == 3:
        return _petals(c, x, y, u, w, seed)
    if kind == 4:
        return _windows(c, x, y, u, w, seed)
    if kind == 5:
        return _leaves(c, x, y, u, w, seed)
    if kind == 6:
        return _checks(c, x, y, u, w, seed)
    if kind == 7:
        return _knit(c, x, y, u, w, seed)
    if kind == 8:
        return _weave(c, x, y, u, w, seed)
    if kind == 9:
        return _seeds(c, x, y, u, w, seed)
    if kind == 10:
        return _tufts(c, x, y, u, w, seed)
    if kind == 11:
        return _shell(c, x, y, u, w, seed)
    if kind == 12:
        return _wedges(c, x, y, u, w, seed)
    return _eyespots(c, x, y, u, w, seed)
