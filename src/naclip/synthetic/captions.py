"""What people would write under a scene: English sentences from its contents, with synonyms."""

from collections.abc import Sequence
from random import Random

from naclip.synthetic.classes import SceneClass
from naclip.synthetic.layout import Layout

_OPENINGS = ("a photo of ", "a picture of ", "an image of ", "there is ", "", "", "a view of ")
_BEFORE = (" and ", " in front of ", " against ", " with ", " before ")
_EMPTY = ("a photo of {}.", "a view of {}.", "nothing but {}.", "{}.", "a picture of {}.")


def article(word: str) -> str:
    return ("an " if word[0] in "aeiou" else "a ") + word


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _any_name(kind: SceneClass, rng: Random) -> str:
    return rng.choice(kind.all_names)


def full_caption(layout: Layout, seen: Sequence[SceneClass], rng: Random) -> str:
    """One sentence naming every visible thing, most with their colour, and every material."""
    things = []
    for thing in layout.things:
        if thing.kind in seen:
            name = _any_name(thing.kind, rng)
            words = name if rng.random() < 0.25 else f"{thing.colour} {name}"
            things.append(words if name.endswith("s") else article(words))
    grounds = [_any_name(c, rng) for c in seen if not c.is_thing]
    rng.shuffle(things)
    rng.shuffle(grounds)
    if not grounds:
        return rng.choice(_OPENINGS) + _join(things) + "."
    ground = _join([("the " if rng.random() < 0.7 else "") + g for g in grounds])
    if not things:
        return rng.choice(_EMPTY).format(ground)
    return rng.choice(_OPENINGS) + _join(things) + rng.choice(_BEFORE) + ground + "."
