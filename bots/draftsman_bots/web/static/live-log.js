// Appends the live log of a job to its page; a call of a tool keeps its line until it has ended.
// The box begins at its end, and stays there unless somebody scrolls up.
// Without scripts, the page has a link to refresh.
"use strict";

const MAX_LINES = 3000;
const log = document.getElementById("log");
const live = document.getElementById("live");
const box = log.parentElement;
let openKind = null;

function append({ kind, text, id, state }) {
  const height = box.scrollHeight;
  const earlier = kind === "tool" && document.getElementById(id);
  if (earlier) {
    earlier.className = "line tool " + state.replace(/[^a-z_]/g, "");
    earlier.textContent = text + "\n";
    return;
  }
  const continues = kind === "output" || kind === "message";
  let line = log.lastElementChild;
  if (!continues || openKind !== kind || !line) {
    line = document.createElement("span");
    line.className = ("line " + kind + " " + state).replace(/[^a-z_ -]/g, "");
    line.id = id;
    log.append(line);
  }
  line.append(continues ? text : text.replace(/\n*$/, "\n"));
  openKind = continues && !text.endsWith("\n") ? kind : null;
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
