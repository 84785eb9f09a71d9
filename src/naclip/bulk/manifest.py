"""run.json: everything that determines the result; and the items, as they were at the start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from naclip.bulk.inputs import Inputs, Item
from naclip.bulk.stores import Store
from naclip.bulk.versions import versions
from naclip.bulk.worker import ModelChoice, Outputs
from naclip.errors import DataError, UsageError
from naclip.pipeline import Segmenter
from naclip.settings import Settings
from naclip.vocabulary import Vocabulary

NAME = "run.json"
ITEMS = ".naclip/items.jsonl"
OF_INPUT = ("images", "images_sha256")
SHOWN = 4  # differences, before "and so many more"


def describe(
    segmenter: Segmenter,
    model: ModelChoice,
    words: Vocabulary,
    templates: Sequence[str],
    settings: Settings,
    outputs: Outputs,
    chunk: int,
) -> dict[str, Any]:
    more = {"pyarrow": outputs.table, "openvino": model.engine == "openvino"}
    used = [name for name, is_used in more.items() if is_used]
    return {
        "versions": versions(*used, *outputs.exports.needs),
        "model": {
            "name": segmenter.model.name,
            "weights": segmenter.model.fingerprint,
            "activation": segmenter.model.shape.activation,
            **model.ran_on(),
        },
        "classes": list(words.classes),
        "names": [list(names) for names in words.names],
        "background": words.has_background,
        "templates": list(templates),
        "settings": settings.flat(),
        "outputs": asdict(outputs),
        "chunk": chunk,
    }


def with_inputs(description: Mapping[str, Any], source: str, inputs: Inputs) -> dict[str, Any]:
    names = "\n".join(item.name for item in inputs.items).encode(errors="surrogateescape")
    return {
        **description,
        "input": source,
        "images": len(inputs.items),
        "images_sha256": hashlib.sha256(names).hexdigest(),
    }


def write(store: Store, run: Mapping[str, Any]) -> None:
    text = json.dumps(run, indent=2, ensure_ascii=False)
    data = text.encode(errors="backslashreplace")  # as JSON has it: of paths that are not UTF-8
    store.write(NAME, data + b"\n")
    store.settle([NAME, ITEMS])


def read(store: Store) -> dict[str, Any] | None:
    data = store.read(NAME)
    if data is None:
        return None
    try:
        run = json.loads(data)
        if not isinstance(run, dict) or "weights" not in run.get("model", {}):
            raise ValueError("not of naclip batch")
    except ValueError as error:
        raise DataError(f"{store.root}/{NAME}: damaged, or of another program ({error})") from None
    return run


def check_same(store: Store, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """The run that is to go on is the one that began; its images are those of the beginning."""
    then, asked = dict(_flat(before)), dict(_flat(json.loads(json.dumps(now))))
    found = [
        f"{key}: {_short(then.get(key))} then, {_short(asked.get(key))} now"
        for key in sorted(then.keys() | asked.keys())
        if then.get(key) != asked.get(key) and key not in OF_INPUT
    ]
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise UsageError(
            f"{store.root} was begun with other settings ({'; '.join(found[:SHOWN])}{more}): run "
            "with the same, name another output, or --overwrite"
        )


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else name)
    else:
        yield key, value


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def write_items(store: Store, inputs: Inputs) -> None:
    head = json.dumps({"root": inputs.root})
    rows = (json.dumps(list(vars(item).values())) for item in inputs.items)
    store.write(ITEMS, "\n".join([head, *rows, ""]).encode())


def read_items(store: Store) -> Inputs | None:
    data = store.read(ITEMS)
    if data is None:
        return None
    head, *rows = data.decode().splitlines()
    items = (Item(*json.loads(row)) for row in rows)
    return Inputs(json.loads(head)["root"], tuple(items))
