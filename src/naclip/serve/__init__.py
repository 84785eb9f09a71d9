"""The HTTP service and its page, the studio.

app        the parts put together: create_app(segmenter, limits)
limits     every bound that the service keeps
gate       who may come in: host, origin, token
observe    request ids, log lines, metrics, security headers around every request
body       a request's bytes -> fields, bounded in size and time
fields     the fields by name and type, derived from naclip.settings
asked      fields -> words, settings and a picture, or a problem with the field at fault
worker     one thread with the model, a bounded queue, micro-batches
memory     what is remembered of images, bounded in bytes
routes     /v1/segment, embed, attention     jobs     /v1/batch     lists     /v1/models, ...
answers    results -> JSON, PNG, maps
problems   errors as RFC 9457
server     uvicorn, and an end that finishes what was accepted
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from naclip.errors import MissingExtraError

if TYPE_CHECKING:
    from naclip.serve.app import create_app as create_app
    from naclip.serve.limits import Limits as Limits

__all__ = ["Limits", "create_app"]


def __getattr__(name: str) -> Any:
    """Imported when first used, so that a missing extra is one line and not a traceback."""
    if name == "Limits":
        from naclip.serve.limits import Limits

        return Limits
    if name == "create_app":
        require_extra()
        from naclip.serve.app import create_app

        return create_app
    raise AttributeError(f"module 'naclip.serve' has no attribute {name!r}")


def require_extra() -> None:
    for module in ("fastapi", "uvicorn", "prometheus_client", "python_multipart"):
        try:
            __import__(module)
        except ImportError:
            raise MissingExtraError(
                f"the service needs {module}, which is not installed: pip install 'naclip[serve]'"
            ) from None
