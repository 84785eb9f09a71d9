// Words as chips: typed or suggested, with synonyms, colour, visibility and coverage.

import { change, onChange, state, titleOf } from "./state.js";

const input = document.getElementById("word");
const list = document.getElementById("suggestions");
const chips = document.getElementById("chips");
let known = []; // [names]: what can be suggested
let active = -1;

// groups: lists of names of one thing, the most fitting groups first.
export function setSuggestions(groups) {
  const seen = new Set();
  known = groups.filter((names) => !seen.has(names[0]) && seen.add(names[0]));
}

const asWord = (names) => names.length > 1 ? `${names[0]}=${names.slice(1).join(",")}` : names[0];

function matches(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted || wanted.includes("=")) return [];
  const taken = new Set(state.words.map(titleOf));
  const rank = (names) => names[0].toLowerCase().startsWith(wanted) ? 0
    : names.some((name) => name.toLowerCase().startsWith(wanted)) ? 1
    : names.some((name) => name.toLowerCase().includes(wanted)) ? 2 : 3;
  return known.filter((names) => !taken.has(names[0]) && rank(names) < 3)
    .sort((a, b) => rank(a) - rank(b)).slice(0, 8);
}

function suggest() {
  const found = matches(input.value);
  active = -1;
  list.replaceChildren(...found.map((names, index) => {
    const row = document.createElement("li");
    row.id = `suggestion-${index}`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-selected", "false");
    const more = document.createElement("small");
    more.textContent = names.slice(1).join(", ");
    row.append(names[0], more);
    row.dataset.word = asWord(names);
    row.addEventListener("pointerdown", (event) => { event.preventDefault(); add(row.dataset.word); });
    return row;
  }));
  list.hidden = !found.length;
  input.setAttribute("aria-expanded", String(!list.hidden));
}

function choose(step) {
  const rows = [...list.children];
  if (!rows.length) return;
  active = (active + step + rows.length + (active < 0 && step < 0 ? 1 : 0)) % rows.length;
  rows.forEach((row, index) => row.setAttribute("aria-selected", String(index === active)));
  rows[active].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", rows[active].id);
}

function close() {
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

// `cat, dog` are two words; with a `=` the commas are between the names of one.
export function add(text) {
  const typed = text.includes("=") ? [text] : text.split(",");
  const fresh = typed.map((word) => word.trim().replace(/\s+/g, " ")).filter(Boolean);
  input.value = "";
  close();
  if (!fresh.length) return;
  const words = new Map(state.words.map((word) => [titleOf(word).toLowerCase(), word]));
  for (const word of fresh) {
    const title = titleOf(word).toLowerCase();
    words.delete(title); // given again, it goes to the end
    words.set(title, word);
  }
  change({ words: [...words.values()] });
}

input.addEventListener("input", suggest);
input.addEventListener("blur", close);
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") { event.preventDefault(); choose(1); }
  else if (event.key === "ArrowUp") { event.preventDefault(); choose(-1); }
  else if (event.key === "Escape") close();
  else if (event.key === "Enter") {
    event.preventDefault();
    add(active >= 0 && !list.hidden ? list.children[active].dataset.word : input.value);
  } else if (event.key === "Backspace" && !input.value && state.words.length) {
    change({ words: state.words.slice(0, -1) });
  }
});
document.getElementById("add").addEventListener("click", () => { add(input.value); input.focus(); });
document.getElementById("clear").addEventListener("click", () => change({ words: [], hidden: [] }));

function button(kind, label, content, action) {
  const found = document.createElement("button");
  found.type = "button";
  found.className = kind;
  found.setAttribute("aria-label", label);
  found.append(content);
  found.addEventListener("click", action);
  return found;
}

function chip(word) {
  const title = titleOf(word);
  const row = document.createElement("li");
  row.dataset.title = title;
  const visible = !state.hidden.includes(title);
  row.classList.toggle("off", !visible);
  const eye = button("eye", `Show ${title}`, document.createElement("i"), () => change({
    hidden: visible ? [...state.hidden, title] : state.hidden.filter((name) => name !== title),
  }));
  eye.setAttribute("aria-pressed", String(visible));
  const count = word.split(/[=,]/).length - 1;
  const name = button("name", `Edit ${title} and its synonyms`, title, () => edit(row, word));
  name.title = word;
  if (count) {
    const more = document.createElement("small");
    more.textContent = `+${count}`;
    name.append(more);
  }
  const share = document.createElement("span");
  share.className = "share";
  const bar = document.createElement("span");
  bar.className = "bar";
  const remove = button("remove", `Remove ${title}`, "×", () =>
    change({ words: state.words.filter((other) => other !== word), hidden: state.hidden.filter((name) => name !== title) }));
  row.append(bar, eye, name, share, remove);
  row.addEventListener("pointerenter", () => document.dispatchEvent(new CustomEvent("highlight", { detail: title })));
  row.addEventListener("pointerleave", () => document.dispatchEvent(new CustomEvent("highlight", { detail: "" })));
  return row;
}

function edit(row, word) {
  const field = document.createElement("input");
  field.type = "text";
  field.value = word;
  field.setAttribute("aria-label", "Word=synonym,synonym");
  let done = false;
  const finish = (keep) => {
    if (done) return;
    done = true;
    const text = field.value.trim();
    if (!keep || !text) render();
    else change({ words: state.words.map((other) => (other === word ? text : other)) });
  };
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault(); // else the chip, which has the focus next, takes the key for a click
    finish(event.key === "Enter");
  });
  field.addEventListener("blur", () => finish(true));
  row.replaceChildren(field);
  field.focus();
}

// The keyboard's focus stays on the same button of the same place, or of the last chip.
function render() {
  const row = document.activeElement?.closest("#chips li");
  const place = [...chips.children].indexOf(row);
  const kind = document.activeElement?.className || "name"; // that of an edited chip
  chips.replaceChildren(...state.words.map(chip));
  if (row) (chips.children[Math.min(place, chips.children.length - 1)]?.querySelector(`.${kind}`) ?? input).focus();
  document.dispatchEvent(new Event("chips"));
}
onChange((changes) => { if ("words" in changes || "hidden" in changes) render(); });

// rows: {title: {colour: [r, g, b], share}}
export function showShares(rows) {
  for (const row of chips.children) {
    const found = rows[row.dataset.title];
    const share = row.querySelector(".share");
    if (!share) continue;
    share.textContent = found ? `${(100 * found.share).toFixed(found.share < 0.1 ? 1 : 0)}%` : "";
    row.querySelector(".bar").style.width = found ? `${100 * found.share}%` : "0";
    if (found) row.style.setProperty("--colour", `rgb(${found.colour.join(" ")})`);
  }
}
