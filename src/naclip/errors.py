"""Every error that naclip raises on purpose.

NaclipError
├── UsageError            the request makes no sense: exit code 2 on the command line
│   ├── SettingsError         an impossible setting; an unknown method, model or preset
│   └── VocabularyError       empty, repeated or unusable names
└── FailureError          a sound request that could not be carried out: exit code 1
    ├── ImageError            an image that cannot be read or segmented
    ├── DataError             a data set, or a record of an evaluation, that is not as it should be
    ├── OutputError           a result that cannot be written
    ├── CheckpointError       a checkpoint that cannot be found, read or matched to a model
    ├── MissingExtraError     an optional dependency that is not installed
    └── OutOfMemoryError      the device has too little memory for this request

Each message is one line: what was found, what was expected, what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class NaclipError(Exception):
    """Base of all errors raised on purpose."""

    exit_code = 1


class UsageError(NaclipError):
    exit_code = 2


class SettingsError(UsageError):
    pass


class VocabularyError(UsageError):
    pass


class FailureError(NaclipError):
    pass


class ImageError(FailureError):
    pass


class DataError(FailureError):
    pass


class OutputError(FailureError):
    pass


class CheckpointError(FailureError):
    pass


class MissingExtraError(FailureError):
    pass


class OutOfMemoryError(FailureError):
    pass


class NaclipWarning(UserWarning):
    """Something was done differently than asked, and the result says so too."""


def no_such(kind: str, name: str, known: Iterable[str], see: str) -> str:
    """The message for a miss in a table: `no method 'nacilp'; did you mean 'naclip'?`"""
    known = list(known)
    close = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=1, cutoff=0.5)
    if close:
        original = next(k for k in known if k.lower() == close[0])
        return f"no {kind} {name!r}; did you mean {original!r}? (see {see})"
    return f"no {kind} {name!r}; known: {', '.join(known)} (see {see})"
