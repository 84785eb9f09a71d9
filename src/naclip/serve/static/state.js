// What the page shows, as one object that also lives in the URL's fragment, which no server sees.

export const state = {
  example: "", words: [], background: "none", backgroundWords: "", method: "", refine: true,
  threshold: 0, opacity: 0.6, view: "mask", heat: "", sigma: 5, a: "clip", b: "", wipe: 0.5,
  row: -1, column: -1, hidden: [],
};

const listeners = [];
export const onChange = (listener) => listeners.push(listener);

export function change(changes) {
  Object.assign(state, changes);
  writeUrl();
  for (const listener of listeners) listener(changes);
}

const KEYS = { example: "e", background: "bg", backgroundWords: "bw", method: "m", refine: "r",
  threshold: "t", opacity: "o", view: "v", heat: "h", sigma: "s", a: "a", b: "b", wipe: "p",
  row: "y", column: "x" };

function writeUrl() {
  const found = new URLSearchParams();
  for (const word of state.words) found.append("w", word);
  for (const word of state.hidden) found.append("off", word);
  for (const [name, key] of Object.entries(KEYS)) {
    const value = state[name];
    if (value === "" || value === -1) continue;
    found.set(key, typeof value === "boolean" ? Number(value) : value);
  }
  history.replaceState(null, "", "#" + found);
}

// Fields of the fragment, by name; only those it has, of the type they should have.
export function readUrl() {
  const given = new URLSearchParams(location.hash.slice(1));
  const found = {};
  if (given.has("w")) found.words = given.getAll("w");
  if (given.has("off")) found.hidden = given.getAll("off");
  for (const [name, key] of Object.entries(KEYS)) {
    if (!given.has(key)) continue;
    const text = given.get(key);
    const kind = typeof state[name];
    if (kind === "boolean") found[name] = text === "1";
    else if (kind === "number") { if (Number.isFinite(Number(text))) found[name] = Number(text); }
    else found[name] = text;
  }
  return found;
}

export const titleOf = (word) => word.split(/[=,]/)[0].trim();
