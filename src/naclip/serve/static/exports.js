// Files to keep, and the same request as a command or a program.

import { ask } from "./api.js";
import { state } from "./state.js";

export function fieldsOf(changes = {}) {
  const fields = {
    classes: state.words, method: state.method, refine: state.refine,
    threshold: state.threshold, ...changes,
  };
  if (state.background === "voc21") fields.background = true;
  const own = state.backgroundWords.split(",").map((word) => word.trim()).filter(Boolean);
  if (state.background === "own" && own.length) fields.background = own;
  return fields;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export async function exportFile(kind, image, overlay) {
  const stem = image.name.replace(/\.[^.]*$/, "") || "image";
  if (kind === "overlay") { // what is on the screen: colours, opacity, what is hidden
    save(await new Promise((resolve) => overlay().toBlob(resolve, "image/png")), `${stem}-overlay.png`);
    return;
  }
  const format = kind === "mask" ? "mask" : "json";
  const response = await ask("/v1/segment", image, fieldsOf({ format }));
  if (kind === "mask") { save(await response.blob(), `${stem}-mask.png`); return; }
  const found = await response.json();
  const text = JSON.stringify(kind === "json" ? found : coco(found, image), null, 1);
  save(new Blob([text], { type: "application/json" }), `${stem}${kind === "coco" ? "-coco" : ""}.json`);
}

// COCO's instances format: one annotation for each class that is there.
export function coco(found, image) {
  const things = found.classes.filter((row) => !(found.has_background && row.label === 0));
  return {
    images: [{ id: 1, file_name: image.name, width: found.size.width, height: found.size.height }],
    categories: things.map((row) => ({ id: row.label + 1, name: row.name })),
    annotations: things.filter((row) => row.area).map((row, index) => ({
      id: index + 1, image_id: 1, category_id: row.label + 1, iscrowd: 1,
      segmentation: row.rle, area: row.area, bbox: row.box, score: row.mean_score,
    })),
  };
}

// Browsers lend their clipboard to https and localhost only; the old way works elsewhere too.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

const quoted = (text) => /^[\w./=,@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

export function commandOf(image, model) {
  const name = quoted(image?.name || "photo.jpg");
  const parts = [`naclip segment ${name}`, ...state.words.map((word) => `-c ${quoted(word)}`)];
  if (state.background === "voc21") parts.push("--background");
  if (state.background === "own" && state.backgroundWords.trim()) {
    parts.push(`--background=${quoted(state.backgroundWords)}`);
  }
  parts.push(`--model ${quoted(model)}`, `--method ${state.method}`);
  parts.push(state.refine ? "--refine" : "--no-refine");
  if (state.threshold > 0) parts.push(`--threshold ${state.threshold}`);
  parts.push("-o mask.png");
  return parts.join(" \\\n  ");
}

export function pythonOf(image, model) {
  const own = state.backgroundWords.split(",").map((word) => word.trim()).filter(Boolean);
  const background = state.background === "voc21" ? "True"
    : state.background === "own" && own.length ? JSON.stringify(own) : "None";
  return [
    "import naclip", "", `segment = naclip.load(${JSON.stringify(model)})`, "result = segment(",
    `    ${JSON.stringify(image?.name || "photo.jpg")},`,
    `    ${JSON.stringify(state.words)},`, `    background=${background},`,
    `    method=${JSON.stringify(state.method)},`, `    refine=${state.refine ? "True" : "False"},`,
    `    threshold=${state.threshold},`, ")", 'result.save("mask.png")',
  ].join("\n");
}

