/* A session may end while somebody types: the next poll then leads to the sign-in page. What was typed waits in the
   tab until they are back. A form that is sent as a page of its own needs none of this: the server keeps it. */
"use strict";

const keptName = () => `lakemirror.typed ${location.pathname}`;
const keptForm = () => document.querySelector("form[data-keep]");
const fieldsOf = (form) => Array.from(form.elements).filter((field) => field.name && !field.matches("button"));

function isChanged(field) {
  if (field.type === "hidden") return false;
  if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
  if (field.matches("select")) return Array.from(field.options).some((one) => one.selected !== one.defaultSelected);
  return field.value !== field.defaultValue;
}

function keepTyped() {
  const form = keptForm();
  if (!form || (form.dataset.keep !== "always" && !fieldsOf(form).some(isChanged))) return;
  const entries = Array.from(new FormData(form)).filter(([name]) => name !== "csrfmiddlewaretoken");
  remember(keptName(), JSON.stringify(entries), "sessionStorage");
}

/* Whether the field was something else before. */
function fill(field, values) {
  if (field.matches("[type=checkbox], [type=radio]")) field.checked = values.includes(field.value);
  else if (values.length) field.value = values[0];
  return isChanged(field);
}

function giveBack() {
  const form = keptForm();
  const kept = form && recall(keptName(), "sessionStorage");
  if (!kept) return;
  sessionStorage.removeItem(keptName());
  const entries = JSON.parse(kept);
  const fields = fieldsOf(form).filter((field) => field.name !== "csrfmiddlewaretoken");
  const valuesOf = (name) => entries.filter((entry) => entry[0] === name).map((entry) => entry[1]);
  const filled = fields.filter((field) => fill(field, valuesOf(field.name)));
  if (!filled.length) return;
  tell("What you typed before you signed in has been restored. It has not been saved yet.", "info");
  filled[0].dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (event.detail.xhr.status === 401) keepTyped();
});
document.addEventListener("DOMContentLoaded", giveBack);
