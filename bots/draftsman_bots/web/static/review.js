// Opens the comment on a line below it, folds files that were viewed, and unfolds a file that the
// list of files leads to. Without scripts, the number of a line sends the form, and its page has
// the beginning of the comment.
"use strict";

// All comments are lines of this field, PLACE=TEXT; the boxes below lines of a diff edit them.
const comments = document.getElementById("comments");

function commentOn(place) {
  const line = comments.value.split("\n").find((text) => text.startsWith(`${place}=`));
  return line && line.slice(place.length + 1);
}

function setComment(place, text) {
  const lines = comments.value.split("\n").filter((line) => line.trim());
  const at = lines.findIndex((line) => line.startsWith(`${place}=`));
  const line = text.trim() ? [`${place}=${text.trim().replace(/\s*\n\s*/g, " ")}`] : [];
  lines.splice(at < 0 ? lines.length : at, at < 0 ? 0 : 1, ...line);
  comments.value = lines.join("\n");
  comments.rows = Math.max(3, lines.length + 1);
  keep();
}

// Comments that were not sent yet stay over a reload of this version of the changes.
const shown = document.querySelector("input[name=shown]");
const unsent = shown && `comments ${shown.value}`;

function keep() {
  if (comments.value.trim()) sessionStorage.setItem(unsent, comments.value);
  else sessionStorage.removeItem(unsent);
}

if (comments) {
  if (!comments.value.trim()) comments.value = sessionStorage.getItem(unsent) || "";
  comments.addEventListener("input", keep);
  comments.form.addEventListener("submit", () => sessionStorage.removeItem(unsent));
}

// An answer is sent once it has a text; a number that is none is a text, too.
const text = document.getElementById("text");
const send = document.getElementById("send");
if (send) {
  const update = () => (send.disabled = !text.value.trim() && !text.validity.badInput);
  text.addEventListener("input", update);
  update();
}

// The bar that leads to the form is shown while the form is not.
const jump = document.querySelector(".jump");
if (jump) {
  const watch = new IntersectionObserver(([form]) => (jump.hidden = form.isIntersecting), { rootMargin: "0px 0px -120px" });
  watch.observe(document.getElementById("decide"));
}

// A line may be in two diffs, and its box is below the one whose number was clicked last.
const boxes = new Map();

function newBox(button) {
  const box = document.getElementById("comment-box").content.firstElementChild.cloneNode(true);
  const field = box.querySelector("textarea");
  field.setAttribute("aria-label", button.title);
  field.placeholder = button.title;
  field.value = commentOn(button.value) || "";
  field.addEventListener("input", () => setComment(button.value, field.value));
  box.querySelector("button").addEventListener("click", () => {
    setComment(button.value, "");
    const number = box.previousElementSibling.querySelector("button");
    boxes.delete(button.value);
    box.remove();
    number.focus();
  });
  boxes.set(button.value, box);
  return box;
}

function openBox(button) {
  const box = boxes.get(button.value) || newBox(button);
  const row = button.closest(".line");
  if (row.nextElementSibling !== box) row.after(box);
  return box.querySelector("textarea");
}

const numbers = comments ? document.querySelectorAll("button[name=comment]") : [];
for (const button of numbers) {
  button.addEventListener("click", (event) => {
    event.preventDefault();
    openBox(button).focus();
  });
  if (commentOn(button.value) && !boxes.has(button.value)) openBox(button);
}

for (const mark of document.querySelectorAll(".viewed input")) {
  const file = mark.closest("details");
  const listed = document.querySelector(`.files a[href="#${file.id}"]`);
  const key = `viewed ${shown.value} ${file.id}`; // of this version of the changes
  const show = () => {
    if (mark.checked) file.open = false;
    if (listed) listed.classList.toggle("done", mark.checked);
  };
  mark.checked = sessionStorage.getItem(key) !== null;
  mark.addEventListener("change", () => {
    if (mark.checked) sessionStorage.setItem(key, "");
    else sessionStorage.removeItem(key);
    if (!mark.checked) file.open = true;
    show();
  });
  show();
}

function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

window.addEventListener("hashchange", unfold);
unfold();
