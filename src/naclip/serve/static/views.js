// The image and what lies over it in each view; the cursor and what it reads.

import { coverage, heatCanvas, labelsAt, paintMask } from "./paint.js";
import { state } from "./state.js";

const $ = (id) => document.getElementById(id);
const over = $("over");
const context = over.getContext("2d");
export const shown = { image: null, maps: null, a: null, b: null, highlight: "", cursor: null };

export function showImage(image) {
  shown.image = image;
  $("drop").hidden = true;
  $("canvases").hidden = false;
  for (const canvas of [$("picture"), over]) { canvas.width = image.width; canvas.height = image.height; }
  $("picture").getContext("2d").drawImage(image.bitmap, 0, 0);
  fit();
}

// As large as the column and most of the window allow; small images are enlarged.
export function fit() {
  if (!shown.image) return;
  const { width, height } = shown.image;
  const room = $("frame").clientWidth;
  const scale = Math.min(room / width, (innerHeight * (state.view === "attention" ? 0.4 : 0.62)) / height, 4);
  $("canvases").style.width = `${Math.round(width * scale)}px`;
  $("canvases").style.aspectRatio = `${width} / ${height}`;
}
addEventListener("resize", () => { fit(); render(); });

const labelCache = new WeakMap();
function labelled(maps) {
  const known = labelCache.get(maps);
  if (known?.threshold === state.threshold) return known.labels;
  const labels = labelsAt(maps, state.threshold);
  labelCache.set(maps, { threshold: state.threshold, labels });
  return labels;
}

// Of each class, how strongly it is painted: hidden ones not, others step back for a highlight.
const weights = (maps) => maps.classes.map((title) =>
  state.hidden.includes(title) ? 0 : !shown.highlight || shown.highlight === title ? 1 : 0.2);

export function shares() {
  const { maps } = shown;
  if (!maps) return {};
  const found = coverage(labelled(maps), maps.classes.length);
  return Object.fromEntries(maps.classes.map((title, label) =>
    [title, { share: found[label], colour: maps.colours[label] }]));
}

function paint(maps, from, to, image) {
  if (maps) {
    paintMask(image.data, labelled(maps), over.width, maps.colours, weights(maps), state.opacity, from, to);
  }
}

export function render() {
  if (!shown.image) return;
  context.clearRect(0, 0, over.width, over.height);
  const view = state.view;
  if (view === "heat" && shown.maps) drawHeat();
  if (view === "mask" || view === "compare") {
    const image = context.createImageData(over.width, over.height);
    const at = Math.round(state.wipe * over.width);
    if (view === "mask") paint(shown.maps, 0, over.width, image);
    else { paint(shown.a, 0, at, image); paint(shown.b, at, over.width, image); }
    context.putImageData(image, 0, 0);
  }
  $("wipe-line").hidden = $("side-a").hidden = $("side-b").hidden = view !== "compare";
  $("wipe-line").style.left = `${100 * state.wipe}%`;
  $("side-a").textContent = state.a;
  $("side-b").textContent = state.b || state.method;
  if (view !== "attention") $("marker").hidden = true;
  showTip();
}

// The class whose heat is shown: the chosen one while it is there, else the first that is a word.
export function heatTitle(maps) {
  return maps.classes.includes(state.heat) ? state.heat : maps.classes[maps.has_background ? 1 : 0];
}

export function heatOf(maps, title, alpha = 255) {
  const label = maps.classes.indexOf(title);
  const [, rows, columns] = maps.heatShape;
  const values = maps.heat.subarray(label * rows * columns, (label + 1) * rows * columns);
  return heatCanvas(values, rows, columns, 0, 255, alpha);
}

function drawHeat() {
  context.globalAlpha = Math.min(1, state.opacity + 0.15);
  context.drawImage(heatOf(shown.maps, heatTitle(shown.maps)), 0, 0, over.width, over.height);
  context.globalAlpha = 1;
}

export function showMarker(rows, columns, row, column) {
  const marker = $("marker");
  marker.hidden = state.view !== "attention";
  Object.assign(marker.style, {
    left: `${(100 * column) / columns}%`, top: `${(100 * row) / rows}%`,
    width: `${100 / columns}%`, height: `${100 / rows}%`,
  });
}

// The image and what lies over it as one canvas: what the overlay export saves. The attention view
// has nothing over it: there it is the mask.
export function composed() {
  const canvas = document.createElement("canvas");
  canvas.width = over.width; canvas.height = over.height;
  const drawing = canvas.getContext("2d");
  drawing.drawImage($("picture"), 0, 0);
  if (state.view === "attention") drawing.drawImage(masked(), 0, 0);
  else drawing.drawImage(over, 0, 0);
  return canvas;
}

function masked() {
  const canvas = document.createElement("canvas");
  canvas.width = over.width; canvas.height = over.height;
  const image = context.createImageData(over.width, over.height);
  paint(shown.maps, 0, over.width, image);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

export function pixelAt(event) {
  const box = over.getBoundingClientRect();
  const inside = (value, size) => Math.max(0, Math.min(size - 1, Math.floor(value * size)));
  return {
    x: inside((event.clientX - box.left) / box.width, over.width),
    y: inside((event.clientY - box.top) / box.height, over.height),
  };
}

function reading({ x, y }) {
  const side = x < state.wipe * over.width ? shown.a : shown.b;
  const maps = state.view === "compare" ? side : shown.maps;
  if (!maps || state.view === "attention") return null;
  const at = y * over.width + x;
  if (state.view === "heat") {
    const title = heatTitle(maps);
    const [, rows, columns] = maps.heatShape;
    const row = Math.floor((y * rows) / over.height), column = Math.floor((x * columns) / over.width);
    const value = maps.heat[(maps.classes.indexOf(title) * rows + row) * columns + column] / 255;
    return { title, score: value ** (1 / maps.heat_gamma), colour: null };
  }
  const label = labelled(maps)[at];
  const title = label < 0 ? "background" : maps.classes[label];
  return { title, score: maps.score[at] / 255, colour: label < 0 ? [0, 0, 0] : maps.colours[label] };
}

function showTip() {
  const found = shown.cursor && reading(shown.cursor);
  $("tip").hidden = !found;
  $("reading").textContent = found
    ? `${found.title} ${(100 * found.score).toFixed(0)}% at ${shown.cursor.x}, ${shown.cursor.y}` : "";
  if (!found) return;
  const swatch = document.createElement("i");
  if (found.colour) swatch.style.background = `rgb(${found.colour.join(" ")})`;
  $("tip").replaceChildren(...(found.colour ? [swatch] : []), `${found.title} ${(100 * found.score).toFixed(0)}%`);
  $("tip").style.left = `${(100 * shown.cursor.x) / over.width}%`;
  $("tip").style.top = `${(100 * shown.cursor.y) / over.height}%`;
  $("tip").classList.toggle("left", shown.cursor.x > over.width * 0.6);
}

// wipe(share) and pick(pixel) are called when the user drags or chooses.
export function listen({ wipe, pick }) {
  const move = (event) => {
    shown.cursor = pixelAt(event);
    if (state.view === "compare" && event.buttons) wipe((shown.cursor.x + 0.5) / over.width);
    else showTip();
  };
  over.addEventListener("pointermove", move);
  over.addEventListener("pointerdown", (event) => { over.setPointerCapture(event.pointerId); move(event); });
  over.addEventListener("click", (event) => { shown.cursor = pixelAt(event); showTip(); pick(shown.cursor); });
  over.addEventListener("pointerleave", () => { shown.cursor = null; showTip(); });
  over.addEventListener("blur", () => { shown.cursor = null; showTip(); });
  over.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step && event.key !== "Enter") return;
    event.preventDefault();
    const now = shown.cursor ?? { x: over.width >> 1, y: over.height >> 1 };
    const stride = Math.max(1, Math.round(over.width / (event.shiftKey ? 12 : 64)));
    const [dx, dy] = step ?? [0, 0];
    shown.cursor = {
      x: Math.max(0, Math.min(over.width - 1, now.x + dx * stride)),
      y: Math.max(0, Math.min(over.height - 1, now.y + dy * stride)),
    };
    if (state.view === "compare" && step) wipe((shown.cursor.x + 0.5) / over.width);
    showTip();
    pick(shown.cursor);
  });
}
