"""Measure the service on this machine; not a test.  python -m tests.serve.measure --help

A server in this process with ViT-B/16's shapes and random weights (the time does not depend on
what they know), or with a model by name; real requests over loopback.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import torch
import uvicorn
from PIL import Image

from naclip.clip.model import ClipModel
from naclip.clip.shape import ClipShape, TowerShape
from naclip.clip.sources import Source
from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower
from naclip.pipeline import Segmenter, load
from naclip.serve import Limits, create_app

B16 = ClipShape(TowerShape(768, 12, 12, 3072), TowerShape(512, 12, 8, 2048), 224, 16, 512)
WORDS = ["cat", "sofa=couch,settee", "wall", "window", "floor"]
KNOWN = ["floor", "cat", "window=wall"]  # names of WORDS in other classes


def random_b16() -> Segmenter:
    torch.manual_seed(0)
    tensors = {f"visual.{name}": t for name, t in VisionTower(B16).state_dict().items()}
    tensors |= TextTower(B16).state_dict()
    model = ClipModel(Source("random ViT-B/16", None), B16, tensors, f"random {time.time()}")  # type: ignore[arg-type]
    return Segmenter(model)


def photo(seed: int, size: tuple[int, int]) -> bytes:
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (12, 16, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(file, format="JPEG")
    return file.getvalue()


def timed(ask: Callable[[], httpx.Response]) -> float:
    begin = time.perf_counter()
    answer = ask()
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - begin


def words_on_a_cached_image(client: httpx.Client, refine: bool) -> None:
    image = photo(1 + refine, (500, 375))
    fields = {"refine": refine, "rle": False}

    def send(words: list[str]) -> float:
        data = {"classes": words, **fields}
        files = {"image": image}
        return timed(lambda: client.post("/v1/segment", files=files, data=data))

    first = send([*WORDS, f"thing {refine}"])
    other = statistics.median(send(words) for words in (KNOWN, WORDS, KNOWN[:2], WORDS[:3], KNOWN))
    fresh = send([*WORDS[:2], f"unseen {refine}"])
    print(
        f"refine={refine}: first {first:.3f} s; other words {other:.3f} s ({other / first:.3f} "
        f"of it); with one word never seen {fresh:.3f} s ({fresh / first:.3f})"
    )


def soak(url: str, requests: int, threads: int) -> None:
    images = [photo(seed, (500, 375)) for seed in range(60)]
    seconds: list[float] = []
    early, at_early = min(100, requests // 2), 0

    def one(index: int) -> None:
        data = {"classes": WORDS, "refine": "false"}
        files = {"image": images[index % len(images)]}
        seconds.append(
            timed(lambda: httpx.post(f"{url}/v1/segment", files=files, data=data, timeout=600))
        )

    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for index, _ in enumerate(pool.map(one, range(requests))):
            if index == early:
                at_early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    total = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ordered = sorted(seconds)
    print(
        f"{requests} requests, {threads} at a time: {requests / total:.2f}/s, median "
        f"{statistics.median(ordered):.2f} s, 95% {ordered[int(0.95 * len(ordered))]:.2f} s; "
        f"peak memory {peak / 1e6:.2f} GB, {peak / at_early - 1:+.1%} since request {early}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="", help="a model; default: random ViT-B/16")
    parser.add_argument("--requests", type=int, default=0, help="of a soak after the ratios")
    parser.add_argument("--threads", type=int, default=8)
    chosen = parser.parse_args()
    segmenter = load(chosen.model) if chosen.model else random_b16()
    app = create_app(segmenter, Limits(request_seconds=600))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    with httpx.Client(base_url=url, timeout=600) as client:
        files = {"image": photo(0, (500, 375))}
        client.post("/v1/segment", files=files, data={"classes": WORDS})  # the words, the kernels
        for refine in (False, True):
            words_on_a_cached_image(client, refine)
    if chosen.requests:
        soak(url, chosen.requests, chosen.threads)
    server.should_exit = True
    thread.join()


if __name__ == "__main__":
    main()
