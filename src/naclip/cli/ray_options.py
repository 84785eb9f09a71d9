"""Options of commands that may run on many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import typer

from naclip.errors import SettingsError, no_such
from naclip.settings import Engine

if TYPE_CHECKING:
    from naclip.bulk.cluster import RayCluster

PANEL = "Ray"
ANY_NUMBER = "1,1000"  # of actors

BlocksOrRay = Annotated[
    str,
    typer.Option(
        "--engine",
        help="What runs the frozen blocks: auto, torch, compile or openvino; ray, or ray+openvino: "
        "many machines",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Ray's cluster: auto (this machine's), or head:6379; else that of RAY_ADDRESS, or a "
        "new one right here",
        rich_help_panel=PANEL,
    ),
]
Actors = Annotated[
    str, typer.Option(help="Smallest and largest number of models", rich_help_panel=PANEL)
]
ActorCpus = Annotated[float, typer.Option(help="CPUs of each model", rich_help_panel=PANEL)]
ActorGpus = Annotated[
    float, typer.Option(help="GPUs of each model; 0.5: two on one GPU", rich_help_panel=PANEL)
]


def split_engine(text: str) -> tuple[bool, str]:
    """`ray+openvino` -> (True, "openvino"): where models are, and what runs their blocks."""
    here = get_args(Engine)
    if text not in (known := (*here, "ray", *(f"ray+{name}" for name in here))):
        raise SettingsError(no_such("engine", text, known, "naclip batch --help"))
    machines, _, blocks = text.partition("+")
    return (True, blocks or "auto") if machines == "ray" else (False, text)


def check_unused(address: str | None, actors: str, cpus: float, gpus: float) -> None:
    """Options of Ray without Ray: not left out of account silently."""
    given = {
        "--address": address is not None,
        "--actors": actors != ANY_NUMBER,
        "--actor-cpus": cpus != 1,
        "--actor-gpus": gpus != 0,
    }
    if useless := [name for name, is_given in given.items() if is_given]:
        raise SettingsError(f"{', '.join(useless)}: of Ray, which is not asked for: --engine ray")


def ray_cluster(address: str | None, actors: str, cpus: float, gpus: float) -> RayCluster:
    from naclip.bulk.cluster import RayCluster

    try:
        low, high = (int(number) for number in actors.split(","))
    except ValueError:
        raise SettingsError(f"--actors is {actors!r}: expected two numbers like 1,8") from None
    return RayCluster(address, (low, high), cpus, gpus)
