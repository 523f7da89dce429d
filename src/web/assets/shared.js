// What all parts of the dashboard share: the nodes as the stream tells them, making elements, times in words.

export const $ = (id) => document.getElementById(id);
export const ZONE = "topology.kubernetes.io/zone";
export const LANES = ["operational", "maintenance-required", "in-maintenance"];

export const nodes = new Map(); // name -> what the stream said last
export const page = { order: [], status: {}, chosen: null, loaded: false, choose: () => {} };

export const byName = new Intl.Collator("en", { numeric: true }).compare;
export const count = (n) => n.toLocaleString("en");
export const stateKey = (node) => node.state || "none";

export function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") e.className = value;
    else if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? "" : value);
  }
  e.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return e;
}

export function tag(state) {
  return element("span", { class: `tag s-${state || "none"}` }, state || "not labelled");
}

// ---- times: text that goes on by itself, once a second ----

let skew = 0; // the server's clock less ours
export function setClock(iso) {
  const at = Date.parse(iso);
  if (!Number.isNaN(at)) skew = at - Date.now();
}

// The two largest units, as the command line prints them.
export function length(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  const units = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
  for (let i = 0; i < 3; i++) {
    const whole = Math.floor(s / units[i][0]);
    const rest = Math.floor((s % units[i][0]) / units[i + 1][0]);
    if (whole > 0) return `${whole}${units[i][1]}${rest > 0 ? `${rest}${units[i + 1][1]}` : ""}`;
  }
  return `${s}s`;
}

function timeText(e) {
  const at = Date.parse(e.dateTime);
  const now = Date.now() + skew;
  if (e.dataset.kind === "since") return length(now - at);
  return at <= now ? "now" : `in ${length(at - now)}`;
}

const WHEN = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC", timeZoneName: "short" });
function time(iso, kind) {
  const e = element("time", { datetime: iso, "data-kind": kind, title: WHEN.format(new Date(iso)) });
  e.textContent = timeText(e);
  return e;
}
export const since = (iso) => time(iso, "since");
export const when = (iso) => time(iso, "when");

// What an integration does, as elements: what failed, what it waits for, when it tries again, what it did last.
export function activityWords(activity) {
  const parts = [];
  if (activity.lastError) parts.push(element("span", { class: "bad" }, "failed ", since(activity.lastErrorAt), ` ago: ${activity.lastError}`));
  if (activity.waitsFor) parts.push(element("span", {}, `waits for ${activity.waitsFor}`));
  if (activity.nextTry) parts.push(element("span", {}, "next try ", when(activity.nextTry)));
  if (activity.did) parts.push(element("span", {}, "last did ", since(activity.didAt), ` ago: ${activity.did}`));
  if (parts.length === 0) return [element("span", {}, "nothing to do yet")];
  return parts.flatMap((part, i) => (i === 0 ? [part] : ["; ", part]));
}

setInterval(() => {
  if (document.hidden) return;
  for (const e of document.querySelectorAll("time[data-kind]")) {
    const text = timeText(e);
    if (e.textContent !== text) e.textContent = text;
  }
}, 1000);
