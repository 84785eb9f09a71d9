"""`naclip serve`: the HTTP service and the studio."""

from __future__ import annotations

import os
import sys
from dataclasses import fields
from typing import Annotated, Any

import typer

from naclip.cli import options
from naclip.serve.limits import Limits

_LIMITS = {part.name: part.metadata["help"] for part in fields(Limits)}
TOKEN = "NACLIP_TOKEN"


def _option(name: str) -> Any:
    return typer.Option(help=_LIMITS[name], rich_help_panel="Limits", min=1)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen at")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at", min=1, max=65535)] = 8000,
    model: options.ModelOption = options.MODEL,
    token: Annotated[
        str,
        typer.Option(envvar=TOKEN, help="Clients must send this; better set than typed"),
    ] = "",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name that clients may use for this host; * for any; repeat for more"),
    ] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Encode the benchmarks' words ahead, while idle")
    ] = False,
    label_studio: Annotated[
        bool, typer.Option("--label-studio", help="Be a Label Studio ML backend at this address")
    ] = False,
    label_studio_url: Annotated[
        str,
        typer.Option(
            help="Where tasks' images may be fetched from, with the key in LABEL_STUDIO_API_KEY"
        ),
    ] = "",
    max_bytes: Annotated[int, _option("max_bytes")] = Limits.max_bytes,
    max_pixels: Annotated[int, _option("max_pixels")] = Limits.max_pixels,
    max_classes: Annotated[int, _option("max_classes")] = Limits.max_classes,
    queue: Annotated[int, _option("queue")] = Limits.queue,
    batch: Annotated[int, _option("batch")] = Limits.batch,
    cache_bytes: Annotated[int, _option("cache_bytes")] = Limits.cache_bytes,
    jobs: Annotated[int, _option("jobs")] = Limits.jobs,
    request_seconds: Annotated[float, _option("request_seconds")] = Limits.request_seconds,
    body_seconds: Annotated[float, _option("body_seconds")] = Limits.body_seconds,
    grace_seconds: Annotated[float, _option("grace_seconds")] = Limits.grace_seconds,
    activation: options.ActivationOption = None,
    device: options.DeviceOption = "auto",
    precision: options.PrecisionOption = "auto",
    engine: options.EngineOption = "auto",
    calibrate: options.CalibrateOption = None,
) -> None:
    """Segment over HTTP, and a page to play with words: http://127.0.0.1:8000/"""
    from naclip.serve import require_extra

    require_extra()
    from naclip.pipeline import load
    from naclip.serve.app import create_app
    from naclip.serve.gate import LOOPBACK
    from naclip.serve.label_studio.routes import configured
    from naclip.serve.server import Address
    from naclip.serve.server import serve as run

    limits = Limits(
        max_bytes=max_bytes,
        max_pixels=max_pixels,
        max_classes=max_classes,
        queue=queue,
        batch=batch,
        cache_bytes=cache_bytes,
        jobs=jobs,
        request_seconds=request_seconds,
        body_seconds=body_seconds,
        grace_seconds=grace_seconds,
    )
    local = host in LOOPBACK
    if not local and not token:
        print(
            f"naclip: warning: {host} can be reached by others and no token is set: "
            f"set {TOKEN}, or listen at 127.0.0.1",
            file=sys.stderr,
        )
    os.environ.pop(TOKEN, None)  # not for whatever reads the environment later
    hosts = tuple(allow_host or ()) + (LOOPBACK if local else ())
    backend = configured(label_studio, label_studio_url)
    segmenter = load(
        model,
        device=device,  # type: ignore[arg-type]
        precision=precision,  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        activation=activation,
        calibration=calibrate or (),
    )
    known = () if "*" in hosts or not (local or allow_host) else hosts
    app = create_app(segmenter, limits, token=token, hosts=known, warm=warm, label_studio=backend)
    run(app, Address(host, port))
