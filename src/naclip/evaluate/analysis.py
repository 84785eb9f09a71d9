"""What the paper has no room for: the right threshold, and what the names are worth.

Both are more jobs in the same pass: other thresholds cost a comparison each, other names a
decoding each, and the image goes through the model once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from naclip.errors import SettingsError
from naclip.evaluate.jobs import Job
from naclip.evaluate.metric import scores, total
from naclip.evaluate.report import number, numbers
from naclip.evaluate.run import Evaluated
from naclip.vocabulary import BACKGROUND, Vocabulary

Analysis = Literal["threshold", "names"]
THRESHOLDS = (*(round(0.02 * i, 2) for i in range(16)), 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def jobs_for(analysis: Analysis, job: Job) -> list[Job]:
    """The jobs that an analysis adds to a job."""
    if analysis == "threshold":
        if not job.words.has_background:
            raise SettingsError(
                f"{job.data.name} has no background: there is no threshold to calibrate"
            )
        return [
            replace(job, key=f"threshold {value:g}", settings=job.settings.updated(threshold=value))
            for value in THRESHOLDS
        ]
    variants = name_variants(job.words)
    if not variants:
        raise SettingsError(f"{job.data.name} has one name for each class: no names to take away")
    return [replace(job, key=key, words=words) for key, words in variants.items()]


def name_variants(words: Vocabulary) -> dict[str, Vocabulary]:
    """The same classes with fewer names: no synonyms, no background names, neither."""
    first = 1 if words.has_background else 0
    background = words.names[:first]
    plain_background = ((BACKGROUND,),) * first
    synonyms = words.names[first:]
    firsts = tuple(names[:1] for names in synonyms)
    has_synonyms = firsts != synonyms
    has_background_names = any(len(names) > 1 for names in background)
    variants: dict[str, Vocabulary] = {}
    if has_synonyms:
        variants["without synonyms"] = replace(words, names=background + firsts)
    if has_background_names:
        variants["without background names"] = replace(words, names=plain_background + synonyms)
    if has_synonyms and has_background_names:
        variants["without either"] = replace(words, names=plain_background + firsts)
    return variants


def summary(
    asked: Sequence[Analysis], main: Evaluated, results: Mapping[str, Evaluated]
) -> dict[str, Any]:
    made = {"threshold": calibration, "names": effect_of_names}
    return {analysis: made[analysis](main, results) for analysis in asked}


def calibration(main: Evaluated, results: Mapping[str, Evaluated]) -> dict[str, Any]:
    """mIoU by threshold, and what a threshold chosen on one half is worth on the other half.

    The best of many thresholds on the images it was chosen on is flattered; the halves are not.
    """
    classes = len(main.job.words.classes)
    runs = [(v, list(results[f"threshold {v:g}"].images.values())) for v in THRESHOLDS]
    curve = [(value, scores(total(images, classes)).miou) for value, images in runs]
    halves = [
        [(value, total(images[half::2], classes)) for value, images in runs] for half in (0, 1)
    ]
    chosen = [max(half, key=lambda run: np.nan_to_num(scores(run[1]).miou)) for half in halves]
    crossed = dict(halves[1])[chosen[0][0]] + dict(halves[0])[chosen[1][0]]
    best = max(curve, key=lambda point: np.nan_to_num(point[1]))
    return {
        "used": main.job.settings.decoding.threshold,
        "best": best[0],
        "best_miou": number(best[1]),
        "chosen_on_halves": [value for value, _ in chosen],
        "cross_validated_miou": number(scores(crossed).miou),
        "curve": [{"threshold": value, "miou": number(miou)} for value, miou in curve],
    }


def effect_of_names(main: Evaluated, results: Mapping[str, Evaluated]) -> dict[str, Any]:
    """Scores of each class under fewer names."""
    variants = name_variants(main.job.words)
    classes = main.job.words.classes
    return {
        key: numbers(total(results[key].images.values(), len(classes)), classes) for key in variants
    }
