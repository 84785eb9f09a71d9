"""labelme's own parser, without Qt: its package wants it for windows that no test opens."""

from __future__ import annotations

import functools
import sys
from typing import Any
from unittest import mock

import loguru

QT = ("PyQt5", "PyQt5.QtCore", "PyQt5.QtGui", "PyQt5.QtWidgets")


@functools.cache  # names that are patched away again would be imported anew
def labelme() -> Any:
    with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in QT}):
        import labelme._label_file
        import labelme.utils
    loguru.logger.disable("labelme")
    return labelme
