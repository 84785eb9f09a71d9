"""Train the tiny model. `python training/train.py RUN_DIR --set steps=8000`; the same line resumes.

RUN_DIR gets checkpoint.pt (replaced atomically), log.csv and recipe.json. A killed run goes on from
its last checkpoint: batches depend on the step alone.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import os
import random
import time
from pathlib import Path
from typing import Any

# Waiting threads sleep: spinning ones cost a factor of three as soon as a core is shared.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "0")

import torch
from batches import Batch, ahead
from compact import Renumbering
from losses import TinyClip, losses
from measure import confusion, name_features, summary, validation_scenes
from recipe import SCHEDULE, Recipe

from naclip.clip.text import TextTower
from naclip.clip.vision import VisionTower

SAVE_EVERY = 120.0  # seconds


def new_model(recipe: Recipe, renumber: Renumbering) -> TinyClip:
    torch.manual_seed(recipe.seed)
    model = TinyClip(VisionTower(renumber.shape), TextTower(renumber.shape))
    torch.nn.init.normal_(model.text.token_embedding.weight, std=0.02)
    # Residual branches start small, so that the first steps already carry the signal through.
    for tower in (model.vision, model.text):
        for block in tower.transformer.resblocks:
            for matrix in (block.attn.out_proj.weight, block.mlp.c_proj.weight):
                torch.nn.init.normal_(matrix, std=0.5 * matrix.shape[1] ** -0.5 / 2)
    return model


def optimisers(model: TinyClip, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside blocks, AdamW for the rest; tokens have a rate of their own."""
    matrices, tokens, rest = [], [], []
    for name, parameter in model.named_parameters():
        if "resblocks" in name and parameter.ndim == 2:
            matrices.append(parameter)
        else:
            (tokens if "token_embedding" in name else rest).append(parameter)
    groups = [
        {"params": rest, "lr": recipe.adam_rate},
        {"params": tokens, "lr": recipe.token_rate},
    ]
    return [
        torch.optim.Muon(matrices, lr=recipe.muon_rate, weight_decay=recipe.weight_decay),
        torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.0),
    ]


def rate(step: int, recipe: Recipe) -> float:
    """Share of the full learning rate: linear up, flat, linear down to zero."""
    up = min(1.0, (step + 1) / recipe.warmup)
    down = min(1.0, (recipe.steps - step) / max(1, recipe.decay_steps))
    return min(up, down)


def renumbered(batch: Batch, renumber: Renumbering) -> Batch:
    return dataclasses.replace(batch, full=renumber(batch.full), single=renumber(batch.single))


def train_step(
    model: TinyClip,
    optims: list[torch.optim.Optimizer],
    batch: Batch,
    recipe: Recipe,
    step: int,
) -> dict[str, float]:
    for optim in optims:
        for group in optim.param_groups:
            group.setdefault("full_rate", group["lr"])
            group["lr"] = group["full_rate"] * rate(step, recipe)
    reduced = random.Random(f"reduced {recipe.seed} {step}").random() < recipe.reduced_share
    parts = losses(model, batch, recipe, reduced)
    total = parts["image"] + recipe.patch_weight * parts.get("patch", torch.zeros(()))
    total.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    for optim in optims:
        optim.step()
        optim.zero_grad(set_to_none=True)
    with torch.no_grad():  # CLIP's own bound: cosines are scaled by 100 at most
        model.logit_scale.clamp_(max=4.6052)
        model.pool_scale.clamp_(max=4.6052)
    return {name: float(part.detach()) for name, part in parts.items()}


def save(path: Path, state: dict[str, Any]) -> None:
    """Atomically: a kill leaves the old checkpoint or the new one, never half of one."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def write_log(path: Path, row: dict[str, float]) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow({k: round(v, 4) for k, v in row.items()})


def validate(
    model: TinyClip, renumber: Renumbering, recipe: Recipe, count: int
) -> dict[str, float]:
    names = name_features(model.text, renumber)
    sigma = recipe.patch_sigma
    return summary(confusion(model.vision, names, validation_scenes(count), "naclip", sigma))


def fixed(recipe: dict[str, Any]) -> dict[str, Any]:
    """The settings that a resumed run must share with the one that it continues."""
    return {name: value for name, value in recipe.items() if name not in SCHEDULE}


def run(folder: Path, recipe: Recipe, every: int, stop: int | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(recipe.threads)
    renumber = Renumbering()
    model = new_model(recipe, renumber)
    optims = optimisers(model, recipe)
    start, seconds, cpu, checkpoint = 0, 0.0, 0.0, folder / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=False)
        if fixed(state["recipe"]) != fixed(dataclasses.asdict(recipe)):
            raise SystemExit(f"{checkpoint} has another recipe; see recipe.json beside it")
        model.load_state_dict(state["model"])
        for optim, saved in zip(optims, state["optims"], strict=True):
            optim.load_state_dict(saved)
        start, seconds, cpu = state["step"], state["seconds"], state["cpu_seconds"]
    (folder / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe), indent=1))
    # Beside the clock's: on a shared machine only these say what a run costs. Without the drawing.
    cpu_began = time.process_time() - cpu
    began = time.monotonic() - seconds
    saved_at = time.monotonic()
    means: dict[str, float] = {}
    last = min(recipe.steps, stop or recipe.steps)
    for step, batch in enumerate(ahead(recipe, start, last), start):
        parts = train_step(model, optims, renumbered(batch, renumber), recipe, step)
        for name, value in parts.items():
            means[name] = 0.98 * means.get(name, value) + 0.02 * value
        done = step + 1
        spent = {
            "seconds": time.monotonic() - began,
            "cpu_seconds": time.process_time() - cpu_began,
        }
        if done % every == 0 or done == last:
            scores = validate(model, renumber, recipe, 100)
            row = {"step": done, "images": done * recipe.batch, **spent, **means}
            write_log(
                folder / "log.csv", {**row, "scale": model.logit_scale.exp().item(), **scores}
            )
            print({k: round(v, 3) for k, v in {**row, **scores}.items()}, flush=True)
        if done == last or time.monotonic() - saved_at > SAVE_EVERY:
            state = {"model": model.state_dict(), "optims": [o.state_dict() for o in optims]}
            state |= {"step": done, **spent, "recipe": dataclasses.asdict(recipe)}
            save(checkpoint, state)
            saved_at = time.monotonic()


def recipe_with(changes: list[str]) -> Recipe:
    """name=value pairs over the default recipe, each converted to its field's type."""
    defaults = dataclasses.asdict(Recipe())
    pairs = dict(change.split("=", 1) for change in changes)
    for name in pairs:
        if name not in defaults:
            raise SystemExit(f"no setting {name!r}: use one of {', '.join(defaults)}")
    return Recipe(**{name: type(defaults[name])(value) for name, value in pairs.items()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", dest="changes")
    parser.add_argument("--every", type=int, default=250, help="steps between validations")
    parser.add_argument("--stop", type=int, help="stop after this many steps of the recipe's")
    options = parser.parse_args()
    run(options.folder, recipe_with(options.changes), options.every, options.stop)
