// Keys of all pages, which ? lists; none counts while something is typed.
"use strict";

const help = document.getElementById("keys");
const PLACES = { i: "/", j: "/jobs", l: "/lists" };
let isGoing = false;

function move(step) {
  const links = [...document.querySelectorAll(".item .cover, .rows .open")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
  if (next) next.focus();
}

function focusFirst(selector) {
  const field = document.querySelector(selector);
  if (!field) return;
  field.focus();
  field.scrollIntoView({ block: "center" });
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  a: () => focusFirst("#decide :is(.choice, input:not([type=hidden]), textarea, select), .decision button"),
  "/": () => focusFirst("#where"),
  "?": () => (help.open ? help.close() : help.showModal()),
  g: () => (isGoing = true),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("textarea, select, input:not([type=checkbox], [type=radio])");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const place = isGoing && PLACES[event.key];
  isGoing = false;
  if (help.open && event.key !== "?") return;
  if (place) location.assign(place);
  else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
  else return;
  event.preventDefault();
});
