"""The model as ONNX: what it takes to segment without naclip and without torch.

    vision.onnx      windows' pixels -> patch features, the method's attention inside
    text.onnx        token ids -> text features
    tokenizer.json   text -> token ids, for the library `tokenizers`
    words.npy        a vector for each name, where classes were given
    config.json      sizes, normalisation, windows, scale, classes: what the rest needs to know

Refinement (PAMR) is no part of the graphs. examples/onnx_segment.py uses such a folder.
"""

from naclip.onnx.folder import Exported, export

__all__ = ["Exported", "export"]
