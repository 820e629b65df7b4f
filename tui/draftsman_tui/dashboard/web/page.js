// Focuses the terminal without a click; after the dashboard has closed, Enter reloads the page.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
addEventListener("load", focus);
addEventListener("focus", focus);
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && document.body.classList.contains("-closed")) {
    event.stopPropagation();
    location.reload();
  }
}, true);
