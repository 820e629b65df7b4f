// Appends the live log of a job to its page; a message, and a call of a tool, keeps its place while
// it changes. The box begins at its end, and stays there unless somebody scrolls up.
// Without scripts, the page has a link to refresh.
"use strict";

const MAX_LINES = 3000;
const log = document.getElementById("log");
const live = document.getElementById("live");
const box = log.parentElement;
let openOutput = null;

function nodes(spans) {
  return spans.map(([text, isStrong]) => {
    if (!isStrong) return text;
    const strong = document.createElement("strong");
    strong.textContent = text;
    return strong;
  });
}

function append({ kind, spans, id, state }) {
  const height = box.scrollHeight;
  const isOutput = kind === "output";
  let line = isOutput ? openOutput : document.getElementById(id);
  if (!line) {
    line = document.createElement("span");
    line.id = id;
    log.append(line);
  }
  line.className = ("line " + kind + " " + state).replace(/[^a-z_ -]/g, "");
  if (isOutput) {
    const text = spans.map(([part]) => part).join("");
    line.append(text);
    openOutput = text.endsWith("\n") ? null : line;
  } else {
    line.replaceChildren(...nodes(spans), "\n");
    openOutput = null;
  }
  while (log.childElementCount > MAX_LINES) log.firstElementChild.remove();
  const empty = document.getElementById("no-log");
  if (empty) empty.remove();
  if (box.scrollTop < -40) box.scrollTop -= box.scrollHeight - height;
}

function show(text) {
  live.hidden = false;
  if (live.textContent !== text) live.textContent = text;
}

if (log.dataset.stream && "EventSource" in window) {
  const source = new EventSource(log.dataset.stream);
  source.onopen = () => show("live");
  source.onmessage = (event) => {
    append(JSON.parse(event.data));
  };
  source.addEventListener("end", () => {
    source.close();
    show("the job has ended");
    document.dispatchEvent(new Event("refresh"));
  });
  source.onerror = () => show(source.readyState === EventSource.CLOSED ? "not live" : "connecting");
}
