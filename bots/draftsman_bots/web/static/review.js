// Begins a comment at the number of a line, unfolds a file that the list of files leads to, and
// counts the seconds of the undo window. Without scripts, the number sends the form, and its page has the beginning of the comment.
"use strict";

const comments = document.getElementById("comments");

function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=comment]");
  if (!button || !comments) return;
  event.preventDefault();
  const before = comments.value.replace(/\n*$/, "");
  comments.value = `${before}${before && "\n"}${button.value}=`;
  comments.rows = Math.max(3, comments.value.split("\n").length + 1);
  comments.focus();
  comments.setSelectionRange(comments.value.length, comments.value.length);
  comments.scrollIntoView({ block: "center" });
});
const seconds = document.getElementById("seconds");
if (seconds) setInterval(() => (seconds.textContent = Math.max(0, seconds.textContent - 1)), 1000);
window.addEventListener("hashchange", unfold);
unfold();
