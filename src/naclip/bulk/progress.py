"""A bar with images a second, failures and the time left, on standard error."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Rate(ProgressColumn):
    """Of the last two minutes; of a short run as a whole."""

    def render(self, task: Task) -> Text:
        done = task.completed - task.fields["known"]
        speed = task.speed or (done / task.elapsed if done and task.elapsed else None)
        return Text(f"{speed:.1f} images/s" if speed else "- images/s")


class Bar:
    """Is told what happens; see naclip.bulk.run.Progress."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Rate(),
            TextColumn("{task.fields[failed]} failed"),
            TimeRemainingColumn(),
            console=self._console,
            speed_estimate_period=120,
        )

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars.live.is_started:  # else stopping it would leave an empty line
            self._bars.stop()
        if kind is KeyboardInterrupt:
            self.note("what is done is kept: the same command goes on from here")

    def begin(self, images: int, known: int) -> None:
        self._bars.add_task("segmenting", total=images, completed=known, known=known, failed=0)
        self._bars.start()

    def step(self, images: int, failed: int) -> None:
        self._bars.update(self._bars.task_ids[0], advance=images, failed=failed)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Silent:
    def begin(self, images: int, known: int) -> None:
        pass

    def step(self, images: int, failed: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass
