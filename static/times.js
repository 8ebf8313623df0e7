/* Times come in UTC. Whoever likes sees them in their own zone, on every page, until they switch back. */
"use strict";

const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "this browser's zone";
let inOwnZone = recall("lakemirror.times") === "own";

/* A browser may forbid to keep anything: then a choice lasts as long as its page. */
function recall(name, kept = "localStorage") {
  try {
    return window[kept].getItem(name);
  } catch {
    return null;
  }
}

function remember(name, value, kept = "localStorage") {
  try {
    window[kept].setItem(name, value);
  } catch {
    /* as said above */
  }
}

const two = (number) => String(number).padStart(2, "0");
const dayOf = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const hourOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;

/* As the server writes it: of today by the clock alone, else with its date. */
function ownTime(at) {
  const isToday = dayOf(at) === dayOf(new Date());
  return isToday ? `${hourOf(at)}:${two(at.getSeconds())}` : `${dayOf(at)} ${hourOf(at)}`;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/* In pictures: the hour, the day or both, as the server writes them. */
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function ownForm(at, form) {
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}`;
  return { hour: hourOf(at), day, moment: `${day} ${hourOf(at)}` }[form];
}

/* "3 min ago" is the same in every zone; what has a clock is not. */
function showTimes(root) {
  for (const time of root.querySelectorAll("time")) {
    time.dataset.utc ??= time.textContent;
    if (time.dataset.form) continue;
    const isClock = /\d:\d/.test(time.dataset.utc);
    write(time, isClock && inOwnZone ? ownTime(new Date(time.dateTime)) : time.dataset.utc);
  }
  for (const mark of root.querySelectorAll("[data-form]")) {
    mark.dataset.utc ??= mark.textContent;
    write(mark, inOwnZone ? ownForm(new Date(mark.dateTime ?? mark.dataset.at), mark.dataset.form) : mark.dataset.utc);
  }
  for (const zone of root.querySelectorAll(".zone")) write(zone, inOwnZone ? `your time (${OWN_ZONE})` : "UTC");
}

function showSwitches() {
  const told = inOwnZone ? `Your time, ${OWN_ZONE}: switch to UTC` : `UTC: switch to your time, ${OWN_ZONE}`;
  for (const button of document.querySelectorAll("[data-zone]")) {
    write(button, inOwnZone ? "Your time" : "UTC");
    button.title = told;
    button.setAttribute("aria-label", told);
  }
}

function show() {
  showSwitches();
  showTimes(document);
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-zone]")) return;
  inOwnZone = !inOwnZone;
  remember("lakemirror.times", inOwnZone ? "own" : "utc");
  show();
});

/* Switched in another tab. */
window.addEventListener("storage", (event) => {
  if (event.key !== "lakemirror.times") return;
  inOwnZone = event.newValue === "own";
  show();
});

document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time");
  if (!time) return;
  const both = [`${new Date(time.dateTime).toLocaleString()} your time`, time.dateTime.replace("T", " ").replace("Z", " UTC")];
  time.title = (inOwnZone ? both.reverse() : both).join(" · ");
});

show();
