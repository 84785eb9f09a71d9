"""The libraries that determine what is written: the same on every machine of a run."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from importlib.metadata import version

from naclip import __version__
from naclip.errors import FailureError

LIBRARIES = ("torch", "numpy", "pillow", "opencv-python-headless", "numba")


def versions(*more: str) -> dict[str, str]:
    return {"naclip": __version__} | {name: version(name) for name in (*LIBRARIES, *more)}


def check_same(elsewhere: Mapping[str, str]) -> None:
    """Builds for CPU and GPU of one version (2.13.0+cpu) are the same: run.json has the device."""
    here = versions()
    other = [
        f"{name} {here[name]} here, {theirs} there"
        for name, theirs in elsewhere.items()
        if here[name].partition("+")[0] != theirs.partition("+")[0]
    ]
    if other:
        raise FailureError(
            f"{socket.gethostname()} has other libraries than where the job was started "
            f"({'; '.join(other)}): install the same on every machine"
        )
