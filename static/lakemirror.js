/* What a page does beyond its links and forms: it updates in place, copies ids, and says what has changed.
   Without this file everything still works. */
"use strict";

document.documentElement.classList.add("js");

/* --- updating in place ------------------------------------------------------------------------------------------
   A poll's answer is not swapped in whole: only what differs is touched, so focus, selection and place stay. */

const attributesOf = (node) => new Map(Array.from(node.attributes, (a) => [a.name, a.value]));
const ownClasses = (node) => Array.from(node.classList).filter((name) => name.startsWith("htmx-"));

function patchAttributes(current, next) {
  const wanted = attributesOf(next);
  const kept = ownClasses(current);
  for (const name of attributesOf(current).keys()) {
    if (name === "open") continue; /* what somebody opened stays open */
    if (!wanted.has(name) && !(name === "class" && kept.length)) current.removeAttribute(name);
  }
  for (const [name, value] of wanted) {
    const full = name === "class" ? [value, ...kept].join(" ").trim() : value;
    if (current.getAttribute(name) !== full) current.setAttribute(name, full);
  }
}

function patchText(current, next) {
  if (current.data === next.data) return;
  current.data = next.data;
  const figure = current.parentElement && current.parentElement.closest(".figure, .live, .behind");
  if (figure) flash(figure);
}

function flash(element) {
  element.classList.remove("changed");
  requestAnimationFrame(() => element.classList.add("changed"));
}

const alike = (a, b) => a && a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

function patch(current, next) {
  if (current.nodeType === Node.TEXT_NODE || current.nodeType === Node.COMMENT_NODE) return patchText(current, next);
  if (current.isEqualNode(next) || current.hasAttribute("data-still") || isKept(current, next)) return;
  patchAttributes(current, next);
  patchChildren(current, inKeptOrder(current, Array.from(next.childNodes)));
}

/* A part that is named as the one that is here: the answer may have left out what is in it. */
const isKept = (current, next) => "kept" in current.dataset && current.dataset.kept === next.dataset.kept;

function patchChildren(current, wanted) {
  const ids = new Set(wanted.map((node) => node.id).filter(Boolean));
  let place = current.firstChild;
  for (const next of wanted) {
    const same = next.id ? ownChild(current, next.id) : lookAhead(place, next, ids);
    if (!same) {
      current.insertBefore(document.importNode(next, true), place);
      continue;
    }
    /* A node that is moved loses its focus: what nobody wants is taken out of its way instead. */
    while (place && place !== same && !ids.has(place.id)) place = removed(place);
    if (place === same) place = place.nextSibling;
    else current.insertBefore(same, place);
    patch(same, next);
  }
  while (place) place = removed(place);
}

function removed(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

function ownChild(parent, id) {
  const found = document.getElementById(id);
  return found && found.parentElement === parent ? found : null;
}

/* The node that `next` describes, if it stands at this place or shortly after it. */
function lookAhead(place, next, ids) {
  for (let node = place, n = 0; node && n < 3 && !ids.has(node.id); node = node.nextSibling, n += 1) {
    if (alike(node, next)) return node;
  }
  return null;
}

/* Rows stay where they are while somebody looks; new ones come last. The order is put right by the next page load. */
function inKeptOrder(current, wanted) {
  if (!current.hasAttribute("data-keep-order")) return wanted;
  const places = new Map(Array.from(current.children, (child, place) => [child.id, place]));
  const rank = (node) => (node.id ? (places.has(node.id) ? places.get(node.id) : Infinity) : -1);
  const rows = wanted.filter((node) => node.nodeType === Node.ELEMENT_NODE);
  return rows.map((node, n) => [rank(node), n, node]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((row) => row[2]);
}

htmx.defineExtension("patch", {
  isInlineSwap: (style) => style === "patch",
  handleSwap(style, target, fragment) {
    if (style !== "patch") return false;
    const next = fragment.querySelector(`#${target.id}`);
    if (!next) return false;
    showTimes(next);
    patch(target, next);
    announce(target);
    return [target];
  },
});

document.addEventListener("htmx:configRequest", (event) => {
  const parts = Array.from(event.detail.target.querySelectorAll("[data-kept]"), (part) => part.dataset.kept);
  if (parts.length) event.detail.headers.Kept = parts.join(" ");
});

/* --- opened branches ---------------------------------------------------------------------------------------------
   They are in the address. Whoever clicks two before the first answer has come means both, so the wish is kept here. */

let opened = new URLSearchParams(location.search).getAll("branch");

document.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.target.id !== "live" || event.detail.verb !== "get") return;
  if ("tab" in event.target.dataset) {
    opened = [];
    return;
  }
  const branch = event.target.dataset.branch;
  if (branch !== undefined) opened = opened.includes(branch) ? opened.filter((b) => b !== branch) : [...opened, branch];
  const query = new URLSearchParams(location.search);
  query.delete("branch");
  for (const name of opened) query.append("branch", name);
  event.detail.path = location.pathname + (query.size ? `?${query}` : "");
});

/* --- what has changed, said once -------------------------------------------------------------------------------- */

let said = null;

function announce(live) {
  const now = live.dataset.state;
  if (said !== null && now !== said) document.getElementById("changes").textContent = now;
  said = now;
}

/* --- polls ------------------------------------------------------------------------------------------------------
   The server says how often. A page that nobody sees asks once a minute, and at once when it is seen again. */

let lastPoll = Date.now();
const isPoll = (event) => event.target.id === "live" && !event.detail.requestConfig.triggeringEvent;

document.addEventListener("htmx:beforeRequest", (event) => {
  if (isPoll(event) && document.hidden && Date.now() - lastPoll < 59000) return event.preventDefault();
  if (event.target.id === "live") lastPoll = Date.now();
});

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && Date.now() - lastPoll > 3000) refresh();
});

/* Back on a page that the browser had kept as it was. */
window.addEventListener("pageshow", (event) => {
  if (event.persisted) refresh();
});

function refresh() {
  const live = document.getElementById("live");
  if (!live) return;
  /* What is under way may have been asked for before the click: it would show what was, and keep the new one away. */
  htmx.trigger(live, "htmx:abort");
  htmx.trigger(live, "refresh");
}

/* Figures that could not be updated must not look fresh. */
const told = new Set(["live", "preflight"]);

const OLD = "The last update failed: what you see is from the time below. It is tried again.";
const GONE = "This is no longer here: it was deleted, or you may not see it any more.";

function tell(text, kind) {
  const notice = document.createElement("p");
  notice.className = `notice ${kind}`;
  notice.textContent = text;
  document.getElementById("notices").prepend(notice);
}

function tellOld(event) {
  if (!told.has(event.target.id) || document.querySelector(".notice.old")) return;
  tell(event.detail.xhr.status === 404 ? GONE : OLD, "old");
}

/* A click that came to nothing is told where its success would stand. */
const REFUSED = {
  403: "Nothing was done: you may not do that, or this page is too old. Reload it.",
  404: "Nothing was done: that is no longer here.",
};

function tellFailed(event) {
  if (event.detail.target?.id !== "notices") return;
  const { status } = event.detail.xhr;
  const unsure = status ? `the server answered ${status}` : "the server can't be reached";
  for (const old of document.querySelectorAll("#notices .failed")) old.remove();
  tell(REFUSED[status] ?? `Nobody knows whether that was done: ${unsure}. Look again in a moment.`, "error failed");
}

for (const name of ["htmx:sendError", "htmx:responseError"]) {
  document.addEventListener(name, tellOld);
  document.addEventListener(name, tellFailed);
}
document.addEventListener("htmx:afterRequest", (event) => {
  if (told.has(event.target.id) && event.detail.successful) document.querySelector(".notice.old")?.remove();
});

/* --- a click is answered at once ----------------------------------------------------------------------------------- */

/* A form may have several buttons; the one that was pressed says what is done. */
const pressed = (event, form) =>
  event.detail.requestConfig.triggeringEvent?.submitter ?? form.querySelector("button");

document.addEventListener("htmx:beforeRequest", (event) => {
  const form = event.target.closest("form[data-queued]");
  if (!form) return;
  const button = pressed(event, form);
  button.dataset.word ??= button.textContent;
  button.textContent = form.dataset.queued;
  button.disabled = true;
});

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target.closest("form[data-queued]");
  if (!form) return;
  const button = pressed(event, form);
  setTimeout(() => {
    button.textContent = button.dataset.word;
    button.disabled = false;
  }, 2500);
  refresh();
});

/* What is sent as a page of its own is sent once, however often one clicks. */
const sent = new WeakSet();

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (sent.has(form)) event.preventDefault();
  sent.add(form);
  setTimeout(() => sent.delete(form), 5000);
});

/* One box for all boxes of a table. */
document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-all]")) return;
  for (const box of event.target.closest("table").querySelectorAll("tbody input[type=checkbox]")) {
    box.checked = event.target.checked;
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.classList.add("copied");
  document.getElementById("changes").textContent = "Copied";
  setTimeout(() => button.classList.remove("copied"), 1500);
});

/* --- small things --------------------------------------------------------------------------------------------------- */

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll(".menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

said = document.getElementById("live")?.dataset.state ?? null;
