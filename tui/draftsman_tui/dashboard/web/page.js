// Keys go to the dashboard without a click on it first; once it has ended, Enter begins anew.
const focus = () => document.querySelector(".xterm-helper-textarea")?.focus();
addEventListener("load", focus);
addEventListener("focus", focus);
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && document.body.classList.contains("-closed")) {
    event.stopPropagation();
    location.reload();
  }
}, true);
