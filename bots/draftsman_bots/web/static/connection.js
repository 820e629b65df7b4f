// Says that the server does not respond, until it does again, and keeps a form that cannot be sent:
// before one is sent, its page is asked for. Without scripts, a form is sent at once.
import { clock } from "./times.js";

const GATEWAY = 502; // and above: a proxy, or draftsman, says that it cannot serve
const PATIENCE = 10000;
const notice = document.getElementById("connection");
let seen = new Date();
let isLost = false;

// Returns the response, or null if no server gave one.
export async function ask(address, options) {
  let response = null;
  try {
    response = await fetch(address, { signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch {} // no server, no network, or no answer in time
  const isServed = response !== null && response.status < GATEWAY;
  if (isServed) seen = new Date();
  if (!isServed && !isLost) tell("What you see may be old. Trying again…");
  if (isServed && isLost) tell("");
  isLost = !isServed;
  return isServed ? response : null;
}

function tell(text) {
  notice.className = text ? "notice warn" : "spoken";
  notice.textContent = text && `Not connected since ${clock(seen, "")}. ${text}`;
}

const sent = new WeakSet();

document.addEventListener(
  "submit",
  async (event) => {
    const form = event.target;
    if (form.method !== "post" || sent.delete(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (form.ariaBusy) return;
    form.ariaBusy = "true";
    const isServed = await ask(location.href, { method: "HEAD", redirect: "manual" });
    form.ariaBusy = null;
    if (!isServed) return tell("Nothing was sent, and what you entered is kept. Send it again later.");
    sent.add(form);
    form.requestSubmit(event.submitter);
  },
  true,
);
