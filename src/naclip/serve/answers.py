"""Results -> what is sent: JSON with COCO's run lengths, PNG, or a bundle of maps."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from starlette.responses import Response

from naclip.pipeline import Encoded
from naclip.results import Segmentation

MAPS = "application/vnd.naclip.maps"
HEAT_BYTES = 4_000_000  # of all heat maps together; larger ones are shrunk
GAMMA = 0.5  # heat maps as bytes: small probabilities of many classes keep their steps


def run_lengths(mask: NDArray[np.bool_]) -> list[int]:
    """COCO's: runs of 0 and 1 in turn, beginning with 0, down the columns."""
    flat = np.concatenate([[False], mask.ravel(order="F"), [False]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    counts = np.diff(np.concatenate([[0], edges, [mask.size]]))
    return [int(count) for count in (counts if counts[-1] else counts[:-1])]


def document(result: Segmentation, rle: bool, extra: dict[str, Any]) -> dict[str, Any]:
    """to_dict of the library, and for each class its score, area, box and run lengths."""
    found = {**result.to_dict(), "has_background": result.has_background, **extra}
    for row in found["classes"]:
        mask = result.labels == row["label"]
        area = int(mask.sum())
        row["area"] = area
        row["mean_score"] = round(float(result.scores[mask].mean()), 6) if area else None
        row["box"] = _box(mask) if area else None
        if rle:
            row["rle"] = {"size": list(result.size), "counts": run_lengths(mask)}
    return found


def _box(mask: NDArray[np.bool_]) -> list[int]:
    """[x, y, width, height]"""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    top, left = int(rows[0]), int(columns[0])
    return [left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1]


def mask_png(result: Segmentation) -> bytes:
    file = io.BytesIO()
    result.write_mask(file)
    return file.getvalue()


def overlay_png(result: Segmentation, opacity: float) -> bytes:
    file = io.BytesIO()
    Image.fromarray(result.overlay(opacity)).save(file, format="PNG")
    return file.getvalue()


def bundle(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """uint32 length of a JSON header, the header, the arrays' bytes in the header's order."""
    header["arrays"] = [
        {"name": name, "dtype": str(array.dtype), "shape": array.shape}
        for name, array in arrays.items()
    ]
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 4) % 4)  # arrays begin at a multiple of their item size
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    return struct.pack("<I", len(text)) + text + body


def maps_bundle(
    found: dict[str, Any],
    labels: NDArray[Any],
    score: NDArray[np.float32],
    probability: NDArray[np.float32],
    heat: Callable[[int], NDArray[np.float32]],
) -> bytes:
    """What the studio needs to move the threshold and show heat maps without asking again."""
    height, width = labels.shape
    count = len(found["classes"])
    shrink = min(1.0, (HEAT_BYTES / (count * height * width)) ** 0.5)
    small = max(1, int(height * shrink)), max(1, int(width * shrink))
    heats = np.empty((count, *small), np.uint8)
    for label in range(count):
        full = heat(label)
        resized = cv2.resize(full, (small[1], small[0]), interpolation=cv2.INTER_AREA)
        heats[label] = np.clip(resized, 0, 1) ** GAMMA * 255 + 0.5
    arrays: dict[str, NDArray[Any]] = {
        "probability": (np.clip(probability, 0, 1) * 65535 + 0.5).astype("<u2"),
        "labels": labels.astype("<u2"),
        "score": (np.clip(score, 0, 1) * 255 + 0.5).astype(np.uint8),
        "heat": heats,
    }
    return bundle({**found, "heat_gamma": GAMMA}, arrays)


def embedding(encoded: Encoded, extra: dict[str, Any], as_npy: bool) -> Response:
    """(windows, rows, columns, channels) float16, and where the windows lie."""
    plan = encoded.plan
    array = encoded.patches.unflatten(1, encoded.grid).cpu().numpy().astype(np.float16)
    if as_npy:
        file = io.BytesIO()
        np.save(file, array)
        return Response(file.getvalue(), media_type="application/octet-stream")
    document = {
        "shape": array.shape,
        "dtype": "float16",
        "data": b64encode(array.tobytes()).decode(),
        "resized": {"height": plan.y.resized, "width": plan.x.resized},
        "windows": [
            {"top": top, "left": left, "height": plan.window[0], "width": plan.window[1]}
            for top in plan.y.starts
            for left in plan.x.starts
        ],
        **extra,
    }
    return Response(json.dumps(document), media_type="application/json")
