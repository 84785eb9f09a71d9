"""The metric: mmsegmentation's recorded numbers, arithmetic by hand, numpy for the bootstrap."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from naclip.evaluate import metric
from tests.recorded import recorded


def recorded_images() -> list[np.ndarray]:
    data = recorded("metric.npz")
    images = []
    for index in range(3):
        truth = data[f"truth_{index}"].astype(np.uint16)
        truth[truth == 255] = metric.VOID
        images.append(metric.confusion(truth, data[f"prediction_{index}"], 9))
    return images


def test_scores_equal_those_that_mmsegmentation_recorded() -> None:
    data = recorded("metric.npz")
    found = metric.scores(np.sum(recorded_images(), axis=0))
    np.testing.assert_allclose(found.iou, data["iou"], rtol=1e-6)
    np.testing.assert_allclose(found.accuracy, data["acc"], rtol=1e-6)  # NaN where NaN
    assert found.miou == pytest.approx(float(data["mIoU"]), rel=1e-6)
    assert found.macc == pytest.approx(float(data["mAcc"]), rel=1e-6)
    assert found.aacc == pytest.approx(float(data["aAcc"]), rel=1e-6)


def test_scores_by_hand() -> None:
    v = metric.VOID
    truth = np.array([[0, 0, 1], [1, v, v]], np.uint16)
    prediction = np.array([[0, 1, 1], [1, 0, 2]])
    matrix = metric.confusion(truth, prediction, 4)
    assert matrix.dtype == np.int64
    assert matrix.tolist() == [[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    found = metric.scores(matrix)
    assert found.iou[:2].tolist() == [1 / 2, 2 / 3]
    assert np.isnan(found.iou[2:]).all()  # predicted where the truth is void only: no union
    assert found.miou == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found.aacc == 3 / 4


def test_all_void_has_no_score() -> None:
    truth = np.full((2, 2), metric.VOID, np.uint16)
    found = metric.scores(metric.confusion(truth, np.zeros((2, 2), int), 3))
    assert np.isnan([found.miou, found.macc, found.aacc]).all()


def test_sparse_entries_sum_to_the_same_matrix() -> None:
    images = recorded_images()
    entries = [metric.sparse(matrix) for matrix in images]
    assert (metric.total(entries, 9) == np.sum(images, axis=0)).all()


def test_resampled_miou_equals_recomputing_it_from_the_drawn_images() -> None:
    images = recorded_images()
    per_image = metric.PerImage.of([metric.sparse(matrix) for matrix in images], 9)
    weights = np.array([[1, 1, 1], [3, 0, 0], [0, 1, 2]])
    expected = [
        metric.scores(sum(int(n) * m for n, m in zip(row, images, strict=True))).miou
        for row in weights
    ]
    np.testing.assert_allclose(per_image.resampled(weights.astype(float)), expected, rtol=1e-12)


def test_bootstrap_is_seeded_and_holds_the_estimate() -> None:
    entries = [metric.sparse(matrix) for matrix in recorded_images() * 4]
    low, high = metric.bootstrap(entries, 9)
    assert (low, high) == metric.bootstrap(entries, 9)
    assert low < float(recorded("metric.npz")["mIoU"]) < high


def test_bootstrap_of_identical_images_has_no_width() -> None:
    entries = [metric.sparse(recorded_images()[0])] * 5
    low, high = metric.bootstrap(entries, 9)
    assert low == pytest.approx(high, abs=1e-12)


def test_nothing_but_void_has_no_interval_and_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = metric.bootstrap([metric.sparse(np.zeros((3, 3), np.int64))] * 2, 3)
    assert np.isnan([low, high]).all()


def test_miou_of_single_images_equals_scoring_each_alone() -> None:
    images = recorded_images()
    per_image = metric.PerImage.of([metric.sparse(matrix) for matrix in images], 9)
    expected = [metric.scores(matrix).miou for matrix in images]
    np.testing.assert_allclose(per_image.images_miou(), expected, rtol=1e-12)
