"""The CPU's fast paths for what follows the transformer, compiled by Numba.

    fused     score grids -> labels, without any score map at the original size
    pamr      affinity and refinement steps
    refined   both together, tile by tile: grids -> refined maps -> labels

naclip.refine, naclip.decode and Stitched.maps say the same in plain torch: they are the reference
that these are tested against, and what runs on other devices.

`python -m naclip.kernels` compiles ahead, for example when an image is built.
"""
