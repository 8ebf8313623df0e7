/* Keys for who likes them: to the filter, from row to row. None of them changes anything, and all can be turned off. */
"use strict";

const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]";
const IN_ROWS = "main tbody th a[href], main a.toggle, main .pick input, main .needs .name";
const keysDialog = document.getElementById("keys");

/* What a row leads to: its first link, the button that opens it, or its box. */
function rowTargets() {
  const found = new Map();
  for (const target of document.querySelectorAll(IN_ROWS)) {
    const row = target.closest("tr, li");
    if (!found.has(row) && target.getClientRects().length) found.set(row, target);
  }
  return found;
}

function step(by) {
  const found = rowTargets();
  const here = document.activeElement.closest("tr, li");
  const targets = Array.from(found.values());
  const place = targets.indexOf(found.get(here));
  const next = place < 0 ? 0 : Math.min(Math.max(place + by, 0), targets.length - 1);
  targets[next]?.focus();
}

function search() {
  /* The page's own first, else the one above all pages; on a narrow screen that is in the menu. */
  const fields = ["main", "header"].flatMap((part) => Array.from(document.querySelectorAll(`${part} input[type=search]`)));
  const field = fields.find((one) => one.getClientRects().length) ?? document.querySelector("header .menu input[type=search]");
  field?.closest("details")?.setAttribute("open", "");
  field?.focus();
  field?.select();
}

const KEYS = { "/": search, j: () => step(1), k: () => step(-1), "?": () => keysDialog?.showModal() };

function isMeant(event) {
  if (recall("lakemirror.keys") === "off" || event.isComposing) return false;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return false;
  return !event.target.closest?.(TYPING);
}

document.addEventListener("keydown", (event) => {
  if (!Object.hasOwn(KEYS, event.key) || !isMeant(event)) return;
  event.preventDefault();
  KEYS[event.key]();
});

/* Enter on a row's box would press the first button of its form: it chooses the row instead. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches?.("tbody input[type=checkbox]")) return;
  event.preventDefault();
  event.target.click();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) keysDialog.showModal();
});

const keysOn = document.getElementById("keys-on");
if (keysOn) {
  keysOn.checked = recall("lakemirror.keys") !== "off";
  keysOn.addEventListener("change", () => remember("lakemirror.keys", keysOn.checked ? "on" : "off"));
}
