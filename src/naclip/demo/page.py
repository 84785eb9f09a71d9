"""The demo's page: one HTML file and PNGs beside it, no request to anywhere."""

from __future__ import annotations

import html
from pathlib import Path

from PIL import Image

from naclip.demo.run import SHOWN, Demo, draw_pictures
from naclip.errors import OutputError
from naclip.files import atomic

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem;
       color: #202228; background: #fff }
img { max-width: 100%; height: auto }
table { border-collapse: collapse } td, th { padding: .2rem 1rem .2rem 0; text-align: left }
pre { background: #f3f4f6; padding: 1rem; overflow-x: auto; border-radius: .4rem }
"""
NEXT_STEPS = """naclip segment photo.jpg -c cat -c "sofa=couch,settee" --background -o mask.png \\
    --overlay overlay.jpg"""


def write_page(demo: Demo, folder: Path) -> Path:
    """The pictures and index.html; returns the page's path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None
    for name, picture in draw_pictures(demo).items():
        with atomic(folder / name) as file:
            Image.fromarray(picture).save(file, format="PNG")
    page = folder / "index.html"
    with atomic(page) as file:
        file.write(_page(demo).encode())
    return page


def _page(demo: Demo) -> str:
    asked = ", ".join(html.escape(name) for name in demo.words.classes)
    rows = "".join(
        f"<tr><th>{name.upper()}</th><td>{demo.miou[name, False]:.2f}</td>"
        f"<td>{demo.miou[name, True]:.2f}</td></tr>"
        for name in SHOWN
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>naclip demo</title><style>{STYLE}</style></head><body>
<h1>Label every pixel with words</h1>
<p>A scene drawn by <code>naclip.synthetic</code> (seed {demo.scene.seed}) with things, colours and
backgrounds in combinations that the model never saw. The model is the tiny CLIP that comes with the
package; it was trained on images and captions, never on masks. It was asked for all of these words,
those that the scene lacks as well: {asked}.</p>
<h2>Masks</h2>
<img src="masks.png" alt="The scene, the truth, and masks by three methods, raw and refined">
<img src="words.png" alt="Colours of the words">
<table><tr><th>mIoU on this scene</th><th>raw</th><th>refined</th></tr>{rows}</table>
<p>The scene's own caption, which no method saw: <em>{html.escape(demo.scene.caption)}</em></p>
<h2>Where is each word?</h2>
<img src="heatmaps.png" alt="Heat maps of the largest classes">
<h2>Why? What a patch attends to in the last layer</h2>
<p>CLIP's patches look at distant others; SCLIP's at similar ones; NACLIP's at similar ones and at
their neighbours (Figure 1 of the paper).</p>
<img src="attention.png" alt="Attention of three patches under CLIP, SCLIP and NACLIP">
<h2>Your own photo</h2>
<p>The tiny model knows this drawn world only. With CLIP's real weights (599 MB, fetched once):</p>
<pre>{html.escape(NEXT_STEPS)}</pre>
</body></html>
"""
