/* Along a picture by the arrow keys: Tab reaches one place of each, the newest. */
"use strict";

document.addEventListener("keydown", (event) => {
  const point = event.target.closest?.(".point");
  if (!point || event.altKey || event.ctrlKey || event.metaKey) return;
  const points = [...point.parentNode.querySelectorAll(".point")];
  const here = points.indexOf(point);
  const there = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: points.length - 1 }[event.key];
  if (there === undefined) return;
  event.preventDefault();
  const next = points[Math.min(Math.max(there, 0), points.length - 1)];
  point.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});
