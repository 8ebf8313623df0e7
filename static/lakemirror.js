/* What a page does beyond its links and forms: it updates in place, copies ids, and says what has changed.
   Without this file everything still works. */
"use strict";

document.documentElement.classList.add("js");

/* --- updating in place ------------------------------------------------------------------------------------------
   A poll's answer is not swapped in whole: only what differs is touched, so focus, selection and place stay (idiomorph finds
   out which node is which). */

function flash(text) {
  const figure = text.parentElement && text.parentElement.closest(".figure, .live, .behind");
  if (!figure) return;
  figure.classList.remove("changed");
  requestAnimationFrame(() => figure.classList.add("changed"));
}

/* A form that is being sent, or filled in. */
const isStill = (current, next) => current.hasAttribute("data-still") && next.hasAttribute("data-still");

/* A part that is named as the one that is here: the answer may have left out what is in it. */
const isKept = (current, next) => "kept" in current.dataset && current.dataset.kept === next.dataset.kept;
const ownClasses = (node) => Array.from(node.classList).filter((name) => name.startsWith("htmx-"));

/* Rows stay where they are while somebody looks; new ones come last. The order is put right by the next page load. */
function inKeptOrder(current, next) {
  const places = new Map(Array.from(current.children, (child, place) => [child.id, place]));
  const rank = (node) => (node.id ? (places.has(node.id) ? places.get(node.id) : Infinity) : -1);
  const rows = Array.from(next.children, (node, n) => [rank(node), n, node]);
  return rows.sort((a, b) => a[0] - b[0] || a[1] - b[1]).map((row) => row[2]);
}

const MORPH = {
  callbacks: {
    beforeNodeMorphed(current, next) {
      if (current.isEqualNode(next)) return false; /* and what somebody has typed or ticked stays */
      if (current.nodeType === Node.TEXT_NODE) flash(current);
      if (current.nodeType !== Node.ELEMENT_NODE) return true;
      if (isStill(current, next) || isKept(current, next)) return false;
      next.classList.add(...ownClasses(current));
      if (current.hasAttribute("data-keep-order")) next.replaceChildren(...inKeptOrder(current, next));
      return true;
    },
    /* What somebody opened stays open. */
    beforeAttributeUpdated: (name, node, change) => !(name === "open" && change === "remove"),
  },
};

htmx.defineExtension("patch", {
  isInlineSwap: (style) => style === "patch",
  handleSwap(style, target, fragment) {
    if (style !== "patch") return false;
    const next = fragment.querySelector(`#${target.id}`);
    if (!next) return false;
    showTimes(next);
    Idiomorph.morph(target, next, MORPH);
    announce(target);
    countNeeds(target);
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
  if (live.id !== "live") return;
  const now = live.dataset.state;
  if (said !== null && now !== said) document.getElementById("changes").textContent = now;
  said = now;
}

/* --- how much needs somebody, in the tab's title and icon ------------------------------------------------------- */

function countNeeds(live) {
  if (live?.dataset.needs === undefined) return;
  const number = Number(live.dataset.needs);
  document.title = (number ? `(${number}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  const icon = document.querySelector("link[rel=icon]");
  icon.href = number ? icon.dataset.alarm : icon.dataset.calm;
}

countNeeds(document.getElementById("live"));

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

const OLD = "The last update failed: what you see is from the time below. Retrying.";
const GONE = "This no longer exists, or you may no longer see it.";

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
  403: "Nothing was done: you may not do that, or this page has expired. Reload it.",
  404: "Nothing was done: that no longer exists.",
};

function tellFailed(event) {
  if (event.detail.target?.id !== "notices") return;
  const { status } = event.detail.xhr;
  const unsure = status ? `the server answered ${status}` : "the server can't be reached";
  for (const old of document.querySelectorAll("#notices .failed")) old.remove();
  tell(REFUSED[status] ?? `It is not known whether that was done: ${unsure}. Check again in a moment.`, "error failed");
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
    if (button.dataset.word) button.textContent = button.dataset.word; /* else a poll has put it back */
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
