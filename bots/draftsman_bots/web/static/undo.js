// Counts the seconds of an undo window, at whose end nothing can be undone.
"use strict";

for (const seconds of document.querySelectorAll(".seconds")) {
  const timer = setInterval(() => {
    seconds.textContent = Math.max(0, seconds.textContent - 1);
    if (seconds.textContent > 0) return;
    clearInterval(timer);
    const form = seconds.closest(".held");
    if (form) form.remove();
  }, 1000);
}
