"""Where a model's weights come from: a known name, a path, or a hub id -> files on disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from naclip.cache import sha256
from naclip.clip.config import read_config
from naclip.errors import CheckpointError, SettingsError, no_such
from naclip.files import is_file, is_folder
from naclip.settings import Method, Settings, Windowing


@dataclass(frozen=True)
class KnownModel:
    name: str
    hub: str  # repository on the Hugging Face hub; empty: inside the package
    megabytes: int
    openai_file: str = ""  # OpenAI's own archive of the same weights, and its sha256
    openai_sha256: str = ""
    about: str = ""
    packaged: str = ""  # file inside the package, and its sha256
    packaged_sha256: str = ""
    defaults: Settings = Settings()


_OTHERS = [  # name, hub repository, megabytes, about: not the paper's, their config beside them
    ("ViT-B/16@laion2b", "laion/CLIP-ViT-B-16-laion2B-s34B-b88K", 599, "trained on LAION-2B"),
    ("ViT-B/16@datacomp", "laion/CLIP-ViT-B-16-DataComp.XL-s13B-b90K", 599, "on DataComp-1B"),
    ("ViT-B/16@dfn", "apple/DFN2B-CLIP-ViT-B-16", 599, "on DFN-2B"),
    ("ViT-B/16@metaclip", "facebook/metaclip-b16-fullcc2.5b", 599, "on MetaCLIP's 2.5 billion"),
    ("ViT-B/32@laion2b", "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", 605, "trained on LAION-2B"),
    ("ViT-L/14@laion2b", "laion/CLIP-ViT-L-14-laion2B-s32B-b82K", 1711, "trained on LAION-2B"),
    ("ViT-L/14@datacomp", "laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K", 1711, "on DataComp-1B"),
    ("ViT-L/14@metaclip", "facebook/metaclip-l14-fullcc2.5b", 1711, "on MetaCLIP's 2.5 billion"),
    ("ViT-H/14@laion2b", "laion/CLIP-ViT-H-14-laion2B-s32B-b79K", 3944, "trained on LAION-2B"),
    ("ViT-H/14@dfn", "apple/DFN5B-CLIP-ViT-H-14", 3944, "on DFN-5B"),
    ("ViT-g/14@laion2b", "laion/CLIP-ViT-g-14-laion2B-s34B-b88K", 5467, "trained on LAION-2B"),
    ("ViT-bigG/14@laion2b", "laion/CLIP-ViT-bigG-14-laion2B-39B-b160k", 10159, "on LAION-2B"),
]
MODELS: dict[str, KnownModel] = {
    model.name: model
    for model in [
        KnownModel(
            "ViT-B/16",
            "openai/clip-vit-base-patch16",
            599,
            "ViT-B-16.pt",
            "5806e77cd80f8b59890b7e101eabd078d9fb84e6937f9e85e4ecb61988df416f",
            "the paper's model",
        ),
        KnownModel(
            "ViT-B/32",
            "openai/clip-vit-base-patch32",
            605,
            "ViT-B-32.pt",
            "40d365715913c9da98579312b702a82c18be219cc2a73407c4526f58eba950af",
            "larger patches: 4 times faster, coarser",
        ),
        KnownModel(
            "ViT-L/14",
            "openai/clip-vit-large-patch14",
            1711,
            "ViT-L-14.pt",
            "b8cca3fd41ae0c99ba7e8951adf17d267cdb84cd88be6f7c2e0eca1737a03836",
            "4 times slower; below ViT-B/16 in the paper's Table 2",
        ),
        KnownModel(
            "ViT-L/14@336px",
            "openai/clip-vit-large-patch14-336",
            1711,
            "ViT-L-14-336px.pt",
            "3035c92b350959924f9f00213499208652fc7ea050643e8b385c2dac08641f02",
            "ViT-L/14 fine-tuned at 336 pixels",
        ),
        KnownModel(
            "tiny",
            "",
            0,
            about="comes with the package; knows the drawn world of naclip demo only",
            packaged="tiny.safetensors",
            packaged_sha256="9bbaa037ebf32c65b803826e476eb5f6cc4ff88f6cc9d9f93e00feeae19bf804",
            # A grid of 8x8 patches instead of 14x14: a narrower Gaussian.
            defaults=Settings(Windowing(96, window=64, stride=32), Method(sigma=1.0)),
        ),
        *(KnownModel(name, hub, size, about=about) for name, hub, size, about in _OTHERS),
    ]
}
DEFAULT_MODEL = "ViT-B/16"
LAYOUTS = [  # (config, weights) as Hugging Face and OpenCLIP name them, best first
    ("open_clip_config.json", "open_clip_model.safetensors"),
    ("open_clip_config.json", "open_clip_pytorch_model.bin"),
    ("config.json", "model.safetensors"),
    ("config.json", "pytorch_model.bin"),
]
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Source:
    name: str
    weights: Path
    config: Mapping[str, Any] | None = None
    defaults: Settings = Settings()

    def fingerprint(self) -> str:
        return sha256(self.weights)


def find_source(model: str | Path) -> Source:
    """A known name, an existing path, or a hub id -> the files to read."""
    if str(model) in MODELS:
        known = MODELS[str(model)]
        return _from_package(known) if known.packaged else _from_hub(known.name, known.hub)
    if not str(model):
        raise SettingsError("no model: use a name (see naclip models), a path or a hub id")
    path = Path(model)
    with suppress(RuntimeError):  # the home of a user who does not exist
        path = path.expanduser()
    if is_folder(path):
        return _from_folder(path)
    if is_file(path):
        return _from_file(path)
    text = str(model)
    looks_like_path = path.suffix in (".pt", ".pth", ".bin", ".safetensors") or text[0] in "./~"
    if looks_like_path:
        raise CheckpointError(f"{model}: no such file")
    if HUB_ID.fullmatch(text) and not text.lower().startswith("vit-"):
        return _from_hub(text, text)
    raise SettingsError(
        no_such("model", text, MODELS, "naclip models") + "; a path or a hub id works too"
    )


def default_settings(model: str | Path) -> Settings:
    """What a model is used with unless told otherwise: the paper's, but for a tiny one."""
    return MODELS[str(model)].defaults if str(model) in MODELS else Settings()


def _from_package(known: KnownModel) -> Source:
    path = Path(str(files("naclip").joinpath("data", known.packaged)))
    if sha256(path) != known.packaged_sha256:
        raise CheckpointError(f"{path}: damaged: install naclip again")
    return Source(known.name, path, defaults=known.defaults)


def _from_folder(folder: Path) -> Source:
    for config, weights in LAYOUTS:
        if (folder / config).is_file() and (folder / weights).is_file():
            return Source(folder.name, folder / weights, read_config(folder / config))
    found = ", ".join(sorted(p.name for p in folder.iterdir())[:6]) or "nothing"
    expected = " or ".join(f"{config} with {weights}" for config, weights in LAYOUTS[::2])
    raise CheckpointError(f"{folder}: expected {expected}, found {found}")


def _from_file(path: Path) -> Source:
    for known in MODELS.values():
        if path.name == known.openai_file:
            found = sha256(path)
            if found != known.openai_sha256:
                raise CheckpointError(
                    f"{path}: is named like OpenAI's {known.name}, but its sha256 is "
                    f"{found[:12]}..., expected {known.openai_sha256[:12]}...: download it again, "
                    "or rename it if it is another model"
                )
    for config, weights in LAYOUTS:
        if path.name == weights and (path.parent / config).is_file():
            return Source(path.name, path, read_config(path.parent / config))
    return Source(path.name, path)


def _from_hub(name: str, repository: str) -> Source:
    """Files of a hub repository, from the cache or downloaded (resumably) with a progress bar."""
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    def fetch(file: str) -> Path | None:
        try:
            return Path(hf_hub_download(repository, file))
        except LocalEntryNotFoundError:
            raise CheckpointError(
                f"{repository}: {file} is not in the cache and the hub cannot be reached: connect, "
                f"or get {_files_of(repository)} elsewhere and point --model at it"
            ) from None
        except EntryNotFoundError:
            return None
        except Exception as error:  # the hub client's errors have no common base
            reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise CheckpointError(
                f"{repository}: cannot be fetched from the hub ({reason})"
            ) from error

    layouts = LAYOUTS[2:] + LAYOUTS[:2] if repository.startswith("openai/") else LAYOUTS
    for layout in layouts:
        # What is whole in the cache is taken as it is: no request, so that a start is quick, and
        # offline no question about files of the other layouts.
        cached = [try_to_load_from_cache(repository, file) for file in layout]
        if all(isinstance(file, str) for file in cached):
            return Source(name, Path(str(cached[1])), read_config(Path(str(cached[0]))))
    for config, weights in layouts:
        config_path = fetch(config)
        content = read_config(config_path) if config_path else None  # before the weights
        weights_path = fetch(weights) if config_path else None
        if weights_path:
            return Source(name, weights_path, content)
    raise CheckpointError(
        f"{repository}: holds no CLIP weights: expected {' or '.join(w for _, w in LAYOUTS)}"
    )


def _files_of(repository: str) -> str:
    for known in MODELS.values():
        if known.hub == repository and known.openai_file:
            return (
                f"the folder with its config.json and model.safetensors ({known.megabytes} MB), "
                f"or OpenAI's {known.openai_file},"
            )
    return f"the folder {repository} with its config and weights"
