// Segmentations of the image by words and method, asked for once each; the newest asking wins.

import { ask, readMaps } from "./api.js";
import { fieldsOf } from "./exports.js";
import { state } from "./state.js";

const KEPT = 6;
const kept = new Map();
const running = new Map(); // by purpose: what a newer asking aborts

export async function mapsOf(image, method, purpose) {
  // The threshold is the browser's affair, so that moving it needs no request.
  const fields = fieldsOf({ method, threshold: 0, format: "maps" });
  const key = JSON.stringify([image.key, fields]);
  running.get(purpose)?.abort();
  if (kept.has(key)) return kept.get(key);
  const abort = new AbortController();
  running.set(purpose, abort);
  const maps = await readMaps(await ask("/v1/segment", image, fields, abort.signal));
  image.id = maps.image_id;
  kept.set(key, maps);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  return maps;
}

export const enough = () => state.words.length > 1
  || (state.words.length === 1 && (state.background !== "none" || state.words[0].includes("=")));

export async function attentionOf(image, row, column) {
  running.get("attention")?.abort();
  const abort = new AbortController();
  running.set("attention", abort);
  const fields = { methods: ["clip", "sclip", "naclip"], sigma: state.sigma };
  if (row >= 0) Object.assign(fields, { row, column });
  const found = await (await ask("/v1/attention", image, fields, abort.signal)).json();
  image.id = found.image_id;
  return found;
}
