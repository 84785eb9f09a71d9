"""The comparisons of `naclip bench`. In each, the first case is what the others are compared to."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace

from naclip.bench.cases import Case
from naclip.engines.compile import has_compiler

PHOTO = (375, 500)


@dataclass(frozen=True)
class Suite:
    key: str
    title: str
    cases: dict[str, Case]
    along: str = ""  # field of a case, or `megapixels`, along which it is drawn


def suites(quick: bool, device: str = "cpu") -> list[Suite]:
    """quick: a small model and small problems, in about a minute."""
    shape = "small" if quick else "ViT-B/16"
    base = Case("ours", shape=shape, device=device)
    return [
        Suite("floor", "Products of the transformer's shape, ten of them", _floor(base)),
        Suite("raw", "500x375, 21 names, not refined", _image(base)),
        Suite("refined", "500x375, 21 names, refined", _image(replace(base, refine=True))),
        Suite("refined150", "500x375, 150 names, refined", _many_names(base)),
        Suite("text", "80 prompts of one name", _both(replace(base, part="text"))),
        Suite("names", "After the transformer, 500x375, by names", _names(base, quick), "names"),
        Suite("pixels", "After the transformer, 150 names", _pixels(base, quick), "megapixels"),
        Suite("flight", "Images in one batch", _flight(base, quick), "images"),
        *([] if quick else [Suite("large", "Large images, 150 names, refined", _large(base))]),
    ]


def fast_engines(device: str = "cpu") -> list[tuple[str, str]]:
    """(engine, precision) of all that can run here."""
    found = [("torch", "fp32"), ("torch", "bf16")]
    if device != "cpu":
        return [*found, ("torch", "fp16")]
    if has_compiler():
        found += [("compile", "fp32"), ("compile", "bf16")]
    if importlib.util.find_spec("openvino"):
        found += [("openvino", "fp32"), ("openvino", "bf16")]
        if importlib.util.find_spec("nncf"):
            found.append(("openvino", "int8"))
    return found


def _floor(base: Case) -> dict[str, Case]:
    gemm = replace(base, part="gemm")
    if base.device != "cpu":
        return {precision: replace(gemm, precision=precision) for precision in ("fp32", "bf16")}
    return {
        "torch's own fp32": replace(gemm, path="plain"),
        "oneDNN fp32": gemm,
        "bf16": replace(gemm, precision="bf16"),
    }


def _both(case: Case) -> dict[str, Case]:
    return {"plain": replace(case, path="plain"), "ours": case}


def _plain(base: Case) -> dict[str, Case]:
    """Twice where the CPU's allocator has a say: page faults cost the plain program more."""
    plain = replace(base, path="plain")
    if base.device != "cpu":
        return {"plain": plain}
    return {"plain": plain, "plain, tuned allocator": replace(plain, tuned=True)}


def _fastest(base: Case) -> Case:
    """Of those that leave labels alone."""
    exact = [engine for engine, precision in fast_engines(base.device) if precision == "fp32"]
    return replace(base, engine=exact[-1], precision="fp32")


def _image(base: Case) -> dict[str, Case]:
    cases = _plain(base) if base.refine else {"plain": replace(base, path="plain")}
    for engine, precision in fast_engines(base.device):
        cases[f"{engine} {precision}"] = replace(base, engine=engine, precision=precision)
        tower = replace(base, engine=engine, precision=precision, part="tower")
        if not base.refine:
            cases[f"{engine} {precision}: transformer alone"] = tower
    return cases


def _many_names(base: Case) -> dict[str, Case]:
    case = replace(base, names=150, refine=True)
    fast = _fastest(case)
    return {
        **_plain(case),
        "torch fp32": case,
        f"{fast.engine} {fast.precision}": fast,
    }


def _names(base: Case, quick: bool) -> dict[str, Case]:
    counts = (20, 50, 100) if quick else (20, 100, 500, 2000)
    after = replace(base, part="after")
    found = {}
    for count in counts:
        case = replace(after, names=count)
        found[f"plain, {count} names"] = replace(case, path="plain")
        found[f"ours, {count} names"] = case
        found[f"ours refined, {count} names"] = replace(case, refine=True)
    return found


def _pixels(base: Case, quick: bool) -> dict[str, Case]:
    sizes = [PHOTO, (750, 1000)] if quick else [PHOTO, (1000, 1500), (2000, 3000), (4000, 6000)]
    after = replace(base, part="after", names=150)
    found = {}
    for height, width in sizes:
        case = replace(after, height=height, width=width)
        name = f"{height * width / 1e6:.1f} MP"
        found[f"plain, {name}"] = replace(case, path="plain")
        found[f"ours, {name}"] = case
        found[f"ours refined, {name}"] = replace(case, refine=True)
    return found


def _flight(base: Case, quick: bool) -> dict[str, Case]:
    case = _fastest(base)
    counts = (1, 2) if quick else (1, 2, 4)
    return {f"{count} images": replace(case, images=count) for count in counts}


def _large(base: Case) -> dict[str, Case]:
    case = replace(_fastest(base), names=150, refine=True)
    return {
        "2048x1024": replace(case, height=1024, width=2048),
        "4000x3000": replace(case, height=3000, width=4000),
    }
