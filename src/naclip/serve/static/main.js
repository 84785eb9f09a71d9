// The page: what the controls change, what is asked for, what is drawn.

import { getJson, request } from "./api.js";
import { commandOf, copy, exportFile, pythonOf } from "./exports.js";
import * as imageFiles from "./image.js";
import { attentionOf, enough, mapsOf } from "./maps.js";
import { heatCanvas } from "./paint.js";
import { change, onChange, readUrl, state, titleOf } from "./state.js";
import * as views from "./views.js";
import { setSuggestions, showShares } from "./words.js";

const $ = (id) => document.getElementById(id);
const { shown } = views;
const VIEWS = ["mask", "heat", "attention", "compare"];
let model = "", methods = [], vocabularies = [], examples = { examples: [], words: [] };
let busy = 0;

function showError(text) { $("error").hidden = !text; $("error").textContent = text; }

// Runs a task with the spinner; an abort is not an error, for something newer was asked.
async function attempt(task) {
  busy += 1;
  document.body.dataset.busy = busy;
  $("busy").hidden = false;
  try {
    const found = await task();
    showError("");
    return found;
  } catch (error) {
    if (error.name !== "AbortError") showError(error.message);
    return null;
  } finally {
    busy -= 1;
    $("busy").hidden = busy === 0;
    document.body.dataset.busy = busy;
  }
}

async function segment() {
  const image = shown.image;
  if (!image) { refresh(); return; }
  if (!enough()) {
    Object.assign(shown, { maps: null, a: null, b: null });
    $("note").textContent = "Name two things or more, or one and a background.";
    refresh();
    return;
  }
  $("note").textContent = image.note;
  if (state.view === "compare") await compare(image);
  else {
    const maps = await attempt(() => mapsOf(image, state.method, "main"));
    if (maps && image === shown.image) shown.maps = maps;
  }
  refresh();
}

async function compare(image) {
  const a = await attempt(() => mapsOf(image, state.a, "a"));
  const b = await attempt(() => mapsOf(image, state.b || state.method, "b"));
  if (a && b && image === shown.image) Object.assign(shown, { a, b, maps: b });
}

function refresh() {
  views.render();
  showShares(views.shares());
  if (state.view === "heat") showHeats();
  $("code").textContent = (document.querySelector("[name=code]:checked").value === "shell"
    ? commandOf : pythonOf)(shown.image, model);
}

function showHeats() {
  const { maps } = shown;
  if (!maps) { $("heats").replaceChildren(); return; }
  const chosen = views.heatTitle(maps);
  const focused = $("heats").contains(document.activeElement);
  $("heats").replaceChildren(...maps.classes.map((title) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(title === chosen));
    button.append(views.heatOf(maps, title), title);
    button.addEventListener("click", () => change({ heat: title }));
    return button;
  }));
  if (focused) $("heats").children[maps.classes.indexOf(chosen)].focus();
}

let newestAttention = 0;
async function attention() {
  const image = shown.image;
  if (!image || state.view !== "attention") return;
  const mine = ++newestAttention;
  const found = await attempt(() => attentionOf(image, state.row, state.column));
  if (!found || mine !== newestAttention) return;
  const { rows, columns } = found.grid;
  shown.grid = found.grid;
  views.showMarker(rows, columns, found.patch.row, found.patch.column);
  document.querySelectorAll("#attention canvas").forEach((canvas, index) => {
    const values = found.weights[index].rows.flat();
    canvas.width = image.width; canvas.height = image.height;
    const context = canvas.getContext("2d");
    context.drawImage(image.bitmap, 0, 0);
    context.imageSmoothingEnabled = false;
    const heat = heatCanvas(values, rows, columns, 0, Math.max(...values), 205);
    context.drawImage(heat, 0, 0, canvas.width, canvas.height);
    const [w, h] = [canvas.width / columns, canvas.height / rows];
    context.lineWidth = Math.max(2, canvas.width / 160);
    context.strokeStyle = "#fff";
    context.strokeRect(found.patch.column * w, found.patch.row * h, w, h);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Attention under ${found.weights[index].method}`);
  });
}

async function takeImage(blob, name, example = "", patch = {}) {
  const image = await attempt(() => imageFiles.open(blob, name));
  if (!image) return;
  Object.assign(image, { example, key: `${name} ${blob.size} ${Date.now()}` });
  Object.assign(shown, { maps: null, a: null, b: null, cursor: null });
  views.showImage(image);
  change({ example, row: -1, column: -1, ...patch });
  document.body.dataset.image = name;
  await Promise.all([segment(), attention()]);
}

async function takeExample(name, words, patch = {}) {
  const found = examples.examples.find((row) => row.example === name);
  if (!found) return;
  const blob = await attempt(async () => (await request(found.image)).blob());
  if (!blob) return;
  if (words) change({ words: found.classes, hidden: [], heat: "" });
  await takeImage(blob, `${name}.png`, name, patch);
}

function showControls() {
  for (const name of ["opacity", "threshold", "sigma", "wipe"]) {
    $(name).value = state[name];
    const out = $(`${name}-out`);
    if (out) out.textContent = name === "sigma" ? state[name].toFixed(1) : state[name].toFixed(2);
  }
  $("method").value = state.method;
  $("method-a").value = state.a;
  $("method-b").value = state.b || state.method;
  $("refine").checked = state.refine;
  $("background").value = state.background;
  $("background-words").hidden = state.background !== "own";
  if (document.activeElement !== $("background-words")) $("background-words").value = state.backgroundWords;
  $("method-about").textContent = methods.find((row) => row.method === state.method)?.about ?? "";
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.setAttribute("aria-selected", String(tab.dataset.view === state.view));
    tab.tabIndex = tab.dataset.view === state.view ? 0 : -1;
  }
  for (const part of document.querySelectorAll("[data-for]")) {
    part.hidden = !part.dataset.for.split(" ").includes(state.view);
  }
  for (const button of $("examples").children) {
    button.setAttribute("aria-pressed", String(button.dataset.example === state.example));
  }
}

const ASKING = ["words", "background", "backgroundWords", "method", "refine", "a", "b"];
onChange((changes) => {
  showControls();
  if ("view" in changes) views.fit();
  if (ASKING.some((name) => name in changes) || "view" in changes) segment();
  else refresh();
  if (["view", "sigma", "row"].some((name) => name in changes)) attention();
});

function bind() {
  for (const name of ["opacity", "threshold", "sigma", "wipe"]) {
    $(name).addEventListener("input", (event) => change({ [name]: Number(event.target.value) }));
  }
  const selects = { method: "method", background: "background", "method-a": "a", "method-b": "b" };
  for (const [id, name] of Object.entries(selects)) {
    $(id).addEventListener("change", (event) => change({ [name]: event.target.value }));
  }
  $("refine").addEventListener("change", (event) => change({ refine: event.target.checked }));
  $("background-words").addEventListener("change", (event) => change({ backgroundWords: event.target.value }));
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => change({ view: tab.dataset.view }));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) { const next = tabs[(index + step + tabs.length) % tabs.length]; next.focus(); next.click(); }
    });
  });
  for (const button of document.querySelectorAll("[data-export]")) {
    button.addEventListener("click", () => shown.image && enough()
      ? attempt(() => exportFile(button.dataset.export, shown.image, views.composed))
      : showError("Nothing to export yet: choose an image and name some words."));
  }
  for (const radio of document.querySelectorAll("[name=code]")) radio.addEventListener("change", refresh);
  const copied = async (button, text) => {
    const title = (button.dataset.title ??= button.textContent);
    button.textContent = (await copy(text)) ? "Copied" : "Refused";
    button.focus();
    setTimeout(() => { button.textContent = title; }, 1200);
  };
  $("copy").addEventListener("click", () => copied($("copy"), $("code").textContent));
  $("link").addEventListener("click", () => copied($("link"), location.href));
  $("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("naclip-theme", document.documentElement.dataset.theme);
  });
  document.addEventListener("highlight", (event) => { shown.highlight = event.detail; views.render(); });
  document.addEventListener("chips", () => showShares(views.shares()));
  imageFiles.listen((blob, name) => takeImage(blob, name));
  views.listen({ wipe: (share) => change({ wipe: share }), pick: pickPatch });
}

function pickPatch({ x, y }) {
  if (state.view !== "attention" || !shown.grid) return;
  const row = Math.floor((y * shown.grid.rows) / shown.image.height);
  const column = Math.floor((x * shown.grid.columns) / shown.image.width);
  if (row !== state.row || column !== state.column) change({ row, column });
}

function fillLists() {
  for (const id of ["method", "method-a", "method-b"]) {
    $(id).replaceChildren(...methods.map(({ method }) => new Option(method, method)));
  }
  $("examples").replaceChildren(...examples.examples.map(({ example, image }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.example = example;
    button.setAttribute("aria-label", `Example ${example}`);
    const thumb = document.createElement("img");
    request(image).then((response) => response.blob())
      .then((blob) => { thumb.src = URL.createObjectURL(blob); }).catch(() => {});
    thumb.alt = "";
    button.append(thumb);
    button.addEventListener("click", () => takeExample(example, true));
    return button;
  }));
  const benchmarks = vocabularies.flatMap(({ classes }) => classes.map(({ names }) => names).filter((names) => names.length));
  setSuggestions(model === "tiny" ? [...examples.words, ...benchmarks] : [...benchmarks, ...examples.words]);
}

async function start() {
  const theme = localStorage.getItem("naclip-theme");
  if (theme) document.documentElement.dataset.theme = theme;
  bind();
  const found = await attempt(() => Promise.all(["models", "methods", "vocabularies", "examples"]
    .map((name) => getJson(`/v1/${name}`))));
  if (!found) return;
  let served;
  [served, methods, vocabularies, examples] = found;
  model = served.served.model;
  $("model").textContent = model;
  fillLists();
  const defaults = served.served.settings;
  const initial = { ...state, method: defaults.method, refine: defaults.refine, sigma: defaults.sigma,
    background: model === "tiny" ? "none" : "voc21" };
  const isNew = !location.hash;
  await takeUrl(initial);
  if (isNew && model === "tiny") await takeExample(examples.examples[0].example, true);
  addEventListener("hashchange", () => takeUrl(initial)); // a link that is opened in this very tab
  document.body.dataset.ready = "yes";
}

// What the URL does not say is as at the start; an image of one's own stays.
async function takeUrl(initial) {
  const given = readUrl();
  if (!VIEWS.includes(given.view)) delete given.view;
  change({ ...initial, ...given });
  const { example, row, column } = state;
  if (example && example !== shown.image?.example) await takeExample(example, !given.words, { row, column });
}

start();
