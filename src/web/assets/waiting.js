// Who waits for what, from /api/v1/status: asked for again after something has changed, and now and then.
import { $, page, count, element, tag, since, setClock } from "./shared.js";

const SHOWN = 60; // more than anybody reads; the command line has all
const LEAST = 1500; // between two questions
const MOST = 10000;
let timer = 0;
let asked = 0;
let shown = "";

function draw(waiting) {
  const key = JSON.stringify([waiting.entries.slice(0, SHOWN), waiting.entries.length]);
  $("work-note").textContent = waiting.entries.length > 0 ? count(waiting.entries.length) : "";
  $("work-empty").hidden = waiting.entries.length > 0;
  if (key === shown) return;
  shown = key;
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.entry : null;
  const rows = waiting.entries.slice(0, SHOWN).map((entry) => element("li", { class: entry.blocked ? "blocked" : null },
    element("button", { type: "button", class: "link", "data-entry": `${entry.node}/${entry.profile}`, onclick: () => page.choose(entry.node) }, entry.node),
    element("span", { class: "muted" }, entry.profile || (entry.draining ? "a request" : "any profile")),
    element("span", {}, entry.blocked ? element("span", { class: "tag blocked" }, "drain is blocked") : entry.failing ? element("span", { class: "tag fault" }, "failing")
      : entry.draining ? element("span", { class: "tag draining" }, "draining") : tag(entry.state)),
    element("span", { class: "muted age" }, entry.since ? since(entry.since) : ""),
    element("span", { class: "gist" }, entry.gist || "")));
  if (waiting.entries.length > SHOWN) rows.push(element("li", { class: "muted more" }, `and ${count(waiting.entries.length - SHOWN)} more: drydock status -o wide`));
  $("work").replaceChildren(...rows);
  const again = focused && [...$("work").querySelectorAll("[data-entry]")].find((e) => e.dataset.entry === focused);
  if (again) again.focus({ preventScroll: true });
}

async function ask() {
  clearTimeout(timer);
  if (document.hidden) return;
  asked = Date.now();
  try {
    const reply = await fetch("/api/v1/status?board=0", { cache: "no-store" });
    const body = await reply.json();
    if (!reply.ok) throw new Error(body.error || `the server answered ${reply.status}`);
    setClock(body.now);
    draw(body);
  } catch (error) {
    $("work-note").textContent = `cannot be told: ${error.message}`;
  }
  clearTimeout(timer);
  timer = setTimeout(ask, MOST);
}

// Something has changed: soon, and never more often than people can read.
export function workStale() {
  clearTimeout(timer);
  timer = setTimeout(ask, Math.max(150, asked + LEAST - Date.now()));
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) workStale(); });
