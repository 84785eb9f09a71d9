"""Options that commands share, derived from the typed settings so that no default is said twice."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from naclip.clip.sources import DEFAULT_MODEL
from naclip.errors import SettingsError, UsageError
from naclip.files import is_file
from naclip.settings import Settings, options

ModelOption = Annotated[
    str,
    typer.Option("--model", "-m", help="A known model (naclip models), a path or a hub id"),
]
ActivationOption = Annotated[
    str | None, typer.Option(help="quick_gelu or gelu, where a checkpoint does not say it")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or mps")]
PrecisionOption = Annotated[
    str, typer.Option(help="auto (fp32), fp32, bf16, fp16 or int8: of the vision tower")
]
EngineOption = Annotated[
    str,
    typer.Option(help="What runs the frozen blocks: auto, torch, compile or openvino"),
]
CalibrateOption = Annotated[
    list[Path] | None,
    typer.Option(help="Image or folder that int8 takes its ranges from; repeat for more"),
]
BackgroundOption = Annotated[
    str | None,
    typer.Option(
        metavar="[NAMES]",
        help='Words for what is none of the classes: "wall,sky"; alone: the 26 names of VOC21',
    ),
]
MODEL = DEFAULT_MODEL
VOC_BACKGROUND = "voc21"


class Command(TyperCommand):
    """A command whose --background may stand alone; Typer has no options with optional values."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        complete = [
            f"{arg}={VOC_BACKGROUND}" if arg == "--background" and after.startswith("-") else arg
            for arg, after in itertools.pairwise([*args, "-"])
        ]
        return super().parse_args(ctx, complete)


def background_names(text: str | None) -> bool | list[str] | None:
    if text is None:
        return None
    if is_file(Path(text)):  # `--background photo.jpg` was meant to stand alone
        raise UsageError(f"--background takes {text!r} as a name: put the images before it")
    return True if text == VOC_BACKGROUND else text.split(",")


def with_settings(command: Callable[..., Any], leave_out: Sequence[str] = ()) -> Callable[..., Any]:
    """Give a command an option for each field of Settings; it gets those set as `changes`.

    leave_out    groups of settings that the command has no use for
    """
    added = [_method()]
    added += [_parameter(group, part) for group, part in options() if group not in leave_out]
    names = {parameter.name for parameter in added}

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        changes = {n: values.pop(n) for n in names if n in values}
        changes = {n: _value(n, v) for n, v in changes.items() if v is not None}
        return command(**values, changes=changes)

    signature = inspect.signature(command, eval_str=True)
    own = [p for p in signature.parameters.values() if p.name != "changes"]
    wrapped.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    return wrapped


def _method() -> inspect.Parameter:
    help = "How CLIP's last block is read (naclip methods)"
    option = typer.Option(help=help, show_default=Settings().method.name, rich_help_panel="Method")
    return _keyword("method", str, option)


def _parameter(group: str, part: Any) -> inspect.Parameter:
    default = getattr(getattr(Settings(), group), part.name)
    kind: Any = type(default)
    flags: list[str] = []
    if kind is bool:
        flag = part.name.replace("_", "-")
        flags = [f"--{flag}/--{part.metadata.get('opposite') or f'no-{flag}'}"]
    shown = default
    if kind is tuple:
        kind, shown = str, ",".join(map(str, default))
    hint = get_type_hints(type(getattr(Settings(), group)))[part.name]
    choices = f": {', '.join(get_args(hint))}" if get_origin(hint) is Literal else ""
    option = typer.Option(
        *flags,
        help=part.metadata["help"] + choices,
        show_default=str(shown) if kind is not bool else flags[0].split("/")[not default],
        rich_help_panel=group.capitalize(),
    )
    return _keyword(part.name, kind, option)


def _keyword(name: str, kind: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def _value(name: str, value: Any) -> Any:
    """`8,16` -> (8, 16) where the setting is a tuple of integers."""
    is_tuple = any(part.name == name and isinstance(part.default, tuple) for _, part in options())
    if not is_tuple:
        return value
    try:
        return tuple(int(item) for item in value.split(","))
    except ValueError:
        flag = name.replace("_", "-")
        raise SettingsError(f"--{flag} is {value!r}: expected integers like 8,16") from None
