// Keeps a page up to date: fetches it again every few seconds while it is seen, and changes only
// the elements that differ. A form that somebody fills is never changed: if its page has another
// one meanwhile, a notice says so. Without scripts, pages have links to refresh.
import { ask } from "./connection.js";
import { localize } from "./times.js";

const EVERY = 5000;
const LOST = 10000; // between attempts to reach the server again
const SLOWEST = 60000;
const LIVE = ["nav[aria-label=Main]", "#main"];
const news = document.getElementById("news");
const edited = new WeakSet();
const known = new WeakMap();
let etag = "";
let wait = EVERY;
let timer = 0;

// What a form asks for, and what its answer is bound to; its key is another one in each copy.
function fields(form) {
  const bound = ({ name, type, value }) => (type === "hidden" && name !== "key" ? value : type);
  const texts = [...form.elements].map((field) => `${field.name}=${bound(field)}`);
  return [form.getAttribute("action"), ...texts].join("\n");
}

function isFilled(form) {
  const focused = document.activeElement;
  if (edited.has(form) || (form.contains(focused) && focused.matches("input, textarea, select"))) return true;
  return [...form.elements].some(
    (field) => "defaultValue" in field && field.type !== "hidden" && field.value !== field.defaultValue,
  );
}

function setAttributes(old, fresh) {
  const kept = (name) => name === "open" && old.tagName === "DETAILS";
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !kept(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value && !kept(name)) old.setAttribute(name, value);
}

// A form is the one with its address; a node without a key is the one at its place.
function key(node) {
  return node.id || (node.tagName === "FORM" && node.getAttribute("action")) || "";
}

function match(node, wanted) {
  if (!wanted) return node && !key(node) ? node : null;
  while (node && key(node) !== wanted) node = node.nextSibling;
  return node;
}

function update(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== fresh.nodeName) return old.replaceWith(fresh);
  if (old.dataset.keep !== undefined || (old.tagName === "FORM" && isFilled(old))) return;
  setAttributes(old, fresh);
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const same = match(next, key(child));
    if (same) {
      if (same !== next) old.insertBefore(same, next);
      next = same.nextSibling;
      update(same, child);
    } else old.insertBefore(child, next);
  }
  while (next) {
    const left = next;
    next = next.nextSibling;
    left.remove();
  }
}

function tell(text, link) {
  if (news.dataset.text === text) return;
  news.dataset.text = text;
  news.className = link ? "notice" : "spoken";
  news.textContent = text;
  if (link) {
    const open = document.createElement("a");
    open.href = location.pathname + location.search;
    open.textContent = link;
    news.append(" ", open);
  }
}

function show(page) {
  const offered = [...page.forms].map(fields);
  const filled = [...document.forms].filter(isFilled);
  const title = page.title.replace(/ · draftsman$/, "");
  if (filled.some((form) => !offered.includes(known.get(form)))) {
    tell(`This page has changed since you opened it: ${title}.`, "Show the new page");
    return;
  }
  const hasNews = document.title !== page.title;
  document.title = page.title;
  for (const part of LIVE) {
    const [old, fresh] = [document.querySelector(part), page.querySelector(part)];
    if (old && fresh) update(old, fresh);
  }
  remember();
  if (hasNews) tell(title);
}

function remember() {
  for (const form of document.forms) if (!isFilled(form)) known.set(form, fields(form));
}

async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;
  const begin = performance.now();
  const response = await ask(location.href, { headers: { "if-none-match": etag } });
  if (response?.redirected) return tell("Your session has ended.", "Sign in");
  try {
    if (response?.ok) {
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      localize(page);
      show(page);
      etag = response.headers.get("etag") || "";
    }
    const isKnown = response?.ok || response?.status === 304;
    if (!response) wait = LOST;
    else wait = isKnown ? Math.max(EVERY, 10 * (performance.now() - begin)) : Math.min(2 * wait, SLOWEST);
  } finally {
    clearTimeout(timer);
    timer = setTimeout(refresh, wait);
  }
}

document.documentElement.classList.add("updates"); // no link to refresh is needed
for (const form of document.forms) known.set(form, fields(form));
document.addEventListener("input", ({ target }) => target.form && edited.add(target.form));
document.addEventListener("visibilitychange", refresh);
document.addEventListener("refresh", refresh);
for (const kind of ["online", "offline"]) window.addEventListener(kind, refresh);
timer = setTimeout(refresh, EVERY);
