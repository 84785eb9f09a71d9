"""Tokens and text features against the authors' program."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from naclip import vocabulary
from naclip.clip.names import text_features
from naclip.clip.text import encode_prompts
from naclip.clip.tokens import clip_tokenizer
from naclip.errors import VocabularyError
from naclip.pipeline import Segmenter

from .recorded import recorded, recorded_of

FEATURES_WITHIN = 2e-5


def test_tokens_match_openais_tokenizer() -> None:
    answers = recorded("tokens.npz")
    ours = clip_tokenizer().encode([str(text) for text in answers["texts"]])
    for text, mine, theirs in zip(answers["texts"], ours, answers["ids"], strict=True):
        assert mine.tolist() == theirs.tolist(), text


def test_a_text_over_77_tokens_is_refused_as_openais_tokenizer_does() -> None:
    clip_tokenizer().encode(["x " * 75])
    with pytest.raises(VocabularyError, match="78 tokens long, CLIP reads 77: use a shorter"):
        clip_tokenizer().encode(["x " * 76])


@pytest.mark.parametrize("benchmark", vocabulary.BENCHMARKS)
def test_vocabulary_matches_the_programs_name_lists(benchmark: str) -> None:
    answers = recorded_of("text", benchmark)
    ours = vocabulary.load(benchmark)
    # Some of theirs end in a space, which the tokenizer drops.
    assert list(ours.prompts) == [str(name).strip() for name in answers["names"]]
    assert list(ours.class_of) == answers["class_index"].tolist()


@pytest.fixture(scope="module")
def encoded(segmenter: Segmenter) -> dict[str, Tensor]:
    """The vector of every name of every benchmark, each encoded once."""
    names = sorted({name for b in vocabulary.BENCHMARKS for name in vocabulary.load(b).prompts})
    vectors = text_features(segmenter.model, names, vocabulary.templates())
    return dict(zip(names, vectors, strict=True))


@pytest.mark.parametrize("benchmark", vocabulary.BENCHMARKS)
def test_text_features_match_the_program(encoded: dict[str, Tensor], benchmark: str) -> None:
    answers = recorded_of("text", benchmark)
    ours = torch.stack([encoded[str(name).strip()] for name in answers["names"]])
    np.testing.assert_allclose(ours.numpy(), answers["features"], rtol=0, atol=FEATURES_WITHIN)


def test_prompts_cut_at_their_end_give_what_all_77_tokens_give(segmenter: Segmenter) -> None:
    prompts = ["cat", "a bad photo of the very long wooden dining table", "", "x " * 75]
    tower = segmenter.model.text
    together = encode_prompts(tower, prompts, clip_tokenizer())
    with torch.inference_mode():
        whole = tower(torch.from_numpy(clip_tokenizer().encode(prompts)))
    torch.testing.assert_close(
        together, torch.nn.functional.normalize(whole, dim=-1), rtol=0, atol=1e-6
    )
