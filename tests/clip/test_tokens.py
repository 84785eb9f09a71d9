"""The tokenizer against CLIP's algorithm written out: split, bytes, merge the lowest pair first."""

from __future__ import annotations

import functools
import gzip
import html
import itertools
from importlib.resources import files

import ftfy
import regex  # comes with transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from naclip.clip.tokens import END, START, byte_alphabet, clip_tokenizer

PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", regex.IGNORECASE
)


@functools.cache
def merges() -> dict[tuple[str, str], int]:
    packed = files("naclip").joinpath("data/bpe_merges.txt.gz").read_bytes()
    lines = gzip.decompress(packed).decode("utf-8").splitlines()
    return {tuple(line.split()): rank for rank, line in enumerate(lines)}  # type: ignore[misc]


@functools.cache
def numbers() -> dict[str, int]:
    letters = byte_alphabet()
    words = [*letters, *(letter + "</w>" for letter in letters), *map("".join, merges())]
    return {word: number for number, word in enumerate(words)}


def merged(word: str) -> list[str]:
    parts = [byte_alphabet()[place] for place in map(places().__getitem__, word.encode("utf-8"))]
    parts[-1] += "</w>"
    while len(parts) > 1:
        ranks = [merges().get(pair, 10**9) for pair in itertools.pairwise(parts)]
        if min(ranks) == 10**9:
            break
        first, second = next(p for p, rank in merges().items() if rank == min(ranks))
        index, joined = 0, []
        while index < len(parts):
            if parts[index : index + 2] == [first, second]:
                joined.append(first + second)
                index += 2
            else:
                joined.append(parts[index])
                index += 1
        parts = joined
    return parts


@functools.cache
def places() -> dict[int, int]:
    """Where a byte stands in the alphabet: those that print first."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: place for place, byte in enumerate([*printable, *others])}


def by_hand(text: str) -> list[int]:
    text = html.unescape(html.unescape(ftfy.fix_text(text))).strip()
    text = regex.sub(r"\s+", " ", text).strip().lower()
    return [numbers()[part] for word in PATTERN.findall(text) for part in merged(word)]


def ours(text: str) -> list[int]:
    ids = clip_tokenizer().encode([text], context=400)[0].tolist()
    assert ids[0] == START
    return ids[1 : ids.index(END)]


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.sampled_from("abdeiot  n'srvml12,.-&;lt<>éÉßŒ猫い½①🙂\u00a0\u200b\tA"), max_size=25)
)
def test_tokens_match_clips_algorithm_on_any_text(text: str) -> None:
    assert ours(text) == by_hand(text)


def test_tokens_match_clips_algorithm_on_words() -> None:
    for text in ("television monitor", "wall-other-merged", "don't we'll", "traffic light 3.5"):
        assert ours(text) == by_hand(text)


def test_rows_are_padded_with_zeros_behind_the_end() -> None:
    ids = clip_tokenizer().encode(["cat", ""])
    assert ids.shape == (2, 77)
    assert ids[1, :2].tolist() == [START, END]
    assert not ids[1, 2:].any()
    assert not ids[0, 3:].any()
