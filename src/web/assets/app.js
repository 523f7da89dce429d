// The dashboard: keeps a map of nodes up to date from the event stream and draws what changed, once a frame.
"use strict";

const $ = (id) => document.getElementById(id);
const ZONE = "topology.kubernetes.io/zone";
const STATE = "cloud.sap/maintenance-state"; // shown as the state already
const STATES = [
  { key: "all", title: "Nodes", tone: "--accent" },
  { key: "operational", title: "Operational", tone: "--ok" },
  { key: "maintenance-required", title: "Maintenance required", tone: "--wait" },
  { key: "in-maintenance", title: "In maintenance", tone: "--work" },
  { key: "none", title: "Not labelled yet", tone: "--none" },
  { key: "down", title: "Not ready", tone: "--bad" },
];
const ROW = 36; // height of a list row, as in style.css
const FEED_MAX = 100;

const nodes = new Map(); // name -> { data, cell }
let order = []; // names, sorted
let shown = []; // names that match the filter
let status = {};
let chosen = null;
let stateFilter = "all";
let layoutStale = false;
let framePending = false;
let loaded = false;

const byName = new Intl.Collator("en", { numeric: true }).compare;
const stateKey = (node) => node.state || "none";

function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") e.className = value;
    else if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

// ---- filter: words that all must match; a word with = or != is about a label ----

function parseFilter(text) {
  return text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const match = word.match(/^([^=!]+)(!=|==?)(.*)$/);
    if (match) return { key: match[1], not: match[2] === "!=", value: match[3] };
    return { text: word.toLowerCase() };
  });
}

function matches(node, words) {
  if (stateFilter === "down" ? node.ready : stateFilter !== "all" && stateKey(node) !== stateFilter) return false;
  return words.every((word) => {
    if (word.text === undefined) return (node.labels[word.key] === word.value) !== word.not;
    if (node.name.toLowerCase().includes(word.text) || node.state.includes(word.text)) return true;
    return Object.entries(node.labels).some(([k, v]) => `${k}=${v}`.toLowerCase().includes(word.text));
  });
}

// ---- fleet ----

function dressCell(entry, dim) {
  const { data, cell } = entry;
  const wide = order.length <= 60;
  let names = `cell s-${stateKey(data)}`;
  if (!data.ready) names += " down";
  if (data.error) names += " fault";
  if (dim) names += " dim";
  if (entry.fresh) names += " fresh";
  if (cell.className !== names) cell.className = names;
  const words = [data.name, data.state || "not labelled yet"];
  if (!data.ready) words.push("not ready");
  if (data.cordoned) words.push("cordoned");
  if (data.error) words.push(data.error);
  const label = words.join(", ");
  if (cell.title !== label) { cell.title = label; cell.setAttribute("aria-label", label); }
  const text = wide ? data.name : "";
  if (cell.textContent !== text) cell.textContent = text;
  const selected = String(chosen === data.name);
  if (cell.getAttribute("aria-selected") !== selected) cell.setAttribute("aria-selected", selected);
}

function layoutGrid() {
  const grid = $("grid");
  const wide = order.length <= 60;
  grid.classList.toggle("wide", wide);
  const size = wide ? "104px" : order.length <= 400 ? "26px" : order.length <= 1500 ? "17px" : "11px";
  grid.style.setProperty("--cell", wide ? "30px" : size);
  grid.style.setProperty("--gap", order.length > 1500 ? "3px" : "5px");
  grid.style.setProperty("--round", order.length > 1500 ? "3px" : "6px");
  const zones = new Map();
  for (const name of order) {
    const zone = nodes.get(name).data.labels[ZONE] || "";
    if (!zones.has(zone)) zones.set(zone, []);
    zones.get(zone).push(name);
  }
  const parts = [...zones.keys()].sort(byName).map((zone) => {
    const members = zones.get(zone);
    const cells = element("div", { class: "cells" }, ...members.map((name) => nodes.get(name).cell));
    if (wide) cells.style.gridTemplateColumns = `repeat(auto-fill, minmax(${size}, 1fr))`;
    const parts = [cells];
    if (zones.size > 1 || zone) {
      parts.unshift(element("h3", {}, zone || "no zone", element("span", {}, String(members.length))));
    }
    return element("div", { class: "zone" }, ...parts);
  });
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.name : null;
  grid.replaceChildren(...parts);
  if (focused && nodes.has(focused)) nodes.get(focused).cell.focus();
  rove(chosen && nodes.has(chosen) ? chosen : order[0]);
  $("grid-empty").hidden = order.length > 0 || !loaded;
}

// One stop for the Tab key; arrows walk inside.
function rove(name) {
  const old = $("grid").querySelector('[tabindex="0"]');
  if (old) old.tabIndex = -1;
  if (name && nodes.has(name)) nodes.get(name).cell.tabIndex = 0;
}

function step(from, key) {
  const cells = [...$("grid").querySelectorAll(".cell")];
  const at = cells.indexOf(from);
  if (key === "ArrowRight") return cells[at + 1];
  if (key === "ArrowLeft") return cells[at - 1];
  if (key === "Home") return cells[0];
  if (key === "End") return cells[cells.length - 1];
  const box = from.getBoundingClientRect();
  const down = key === "ArrowDown";
  let best = null;
  for (let i = at; i >= 0 && i < cells.length; i += down ? 1 : -1) {
    const other = cells[i].getBoundingClientRect();
    if (Math.abs(other.top - box.top) < 2) continue;
    if (best && Math.abs(other.top - best.top) > 2) break;
    const far = Math.abs(other.left - box.left);
    if (!best || far < best.far) best = { cell: cells[i], top: other.top, far };
  }
  return best && best.cell;
}

$("grid").addEventListener("keydown", (event) => {
  if (!/^(Arrow|Home$|End$)/.test(event.key) || !event.target.dataset.name) return;
  event.preventDefault();
  const next = step(event.target, event.key);
  if (next) { rove(next.dataset.name); next.focus(); }
});
$("grid").addEventListener("click", (event) => {
  if (event.target.dataset.name) choose(event.target.dataset.name);
});

// ---- counts, control, details ----

function drawCounts() {
  const n = { all: nodes.size, down: 0 };
  for (const { data } of nodes.values()) {
    n[stateKey(data)] = (n[stateKey(data)] || 0) + 1;
    if (!data.ready) n.down++;
  }
  const box = $("counts");
  if (!box.firstChild) {
    box.append(...STATES.map((state) => {
      const b = element("button", { type: "button", class: "count", "data-key": state.key,
        onclick: () => { stateFilter = stateFilter === state.key ? "all" : state.key; refilter(); } },
      element("b", {}, "0"), element("span", {}, state.title));
      b.style.setProperty("--tone", `var(${state.tone})`);
      if (state.tone !== "--accent") b.style.setProperty("--soft", `var(${state.tone}-soft)`);
      return b;
    }));
  }
  for (const button of box.children) {
    const value = n[button.dataset.key] || 0;
    button.firstChild.textContent = value.toLocaleString("en");
    button.classList.toggle("zero", value === 0);
    button.setAttribute("aria-pressed", String(stateFilter === button.dataset.key));
  }
}

function pairs(list) {
  return list.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]);
}

function drawStatus() {
  $("title").textContent = status.title || "";
  $("version").textContent = `drydock ${status.version || ""}`;
  document.title = status.title ? `drydock · ${status.title}` : "drydock";
  const list = [
    ["Leader", status.leader || "nobody"],
    ["This replica", status.leading ? "leads" : "stands by"],
    ["Identity", status.identity || "–"],
    ["Ready", status.ready ? "yes" : status.why || "no"],
    ["Writes sent", (status.writes || 0).toLocaleString("en")],
  ];
  $("control").replaceChildren(...pairs(list));
}

function tag(node) {
  return element("span", { class: `tag s-${stateKey(node)}` }, node.state || "not labelled");
}

function drawNode() {
  const box = $("node");
  const entry = chosen && nodes.get(chosen);
  if (!entry) {
    box.replaceChildren(element("p", { class: "muted" }, chosen ? `${chosen} is gone.` : "Choose a node in the fleet or the list."));
    return;
  }
  const node = entry.data;
  const labels = Object.entries(node.labels).sort().map(([k, v]) =>
    element("button", { type: "button", class: "label", title: "Filter by this label", onclick: () => { $("filter").value = `${k}=${v}`; refilter(); } }, `${k}=${v}`));
  const list = [["State", tag(node)], ["Kubelet", node.ready ? "ready" : "not ready"], ["Scheduling", node.cordoned ? "cordoned" : "open"]];
  if (node.error) list.push(["Error", node.error]);
  box.replaceChildren(element("p", { class: "name" }, node.name), element("dl", {}, ...pairs(list)), element("p", {}, ...labels));
}

function choose(name) {
  chosen = name;
  rove(name);
  schedule();
}

// ---- list: only the rows in view exist ----

function refilter() {
  schedule();
}

function drawList() {
  const words = parseFilter($("filter").value);
  shown = order.filter((name) => matches(nodes.get(name).data, words));
  const match = new Set(shown);
  const all = shown.length === order.length;
  for (const [name, entry] of nodes) dressCell(entry, !all && !match.has(name));
  $("list-note").textContent = all ? `${order.length.toLocaleString("en")}` : `${shown.length.toLocaleString("en")} of ${order.length.toLocaleString("en")}`;
  $("spacer").style.height = `${shown.length * ROW}px`;
  drawRows();
}

function drawRows() {
  const box = $("rows");
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
  const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / ROW) + 8);
  const rows = shown.slice(first, last).map((name) => {
    const node = nodes.get(name).data;
    const kubelet = [node.ready ? "ready" : "not ready", node.cordoned ? "cordoned" : ""].filter(Boolean).join(", ");
    const labels = Object.entries(node.labels).filter(([k]) => k !== STATE).map(([k, v]) => `${k.split("/").pop()}=${v}`).join("  ");
    return element("div", { class: name === chosen ? "row chosen" : "row", role: "listitem", onclick: () => choose(name) },
      element("span", {}, name), element("span", {}, node.error ? element("span", { class: "tag fault", title: node.error }, "error") : tag(node)),
      element("span", {}, node.ready ? kubelet : element("span", { class: "tag down" }, kubelet)), element("span", { class: "labels", title: labels }, labels));
  });
  const view = $("window");
  view.style.transform = `translateY(${first * ROW}px)`;
  view.replaceChildren(...rows);
}
$("rows").addEventListener("scroll", drawRows, { passive: true });
$("filter").addEventListener("input", refilter);

// ---- feed ----

function tell(text) {
  const now = new Date();
  $("feed").prepend(element("li", {}, element("time", {}, now.toLocaleTimeString("en-GB")), element("span", {}, text)));
  while ($("feed").children.length > FEED_MAX) $("feed").lastChild.remove();
  $("feed-empty").hidden = true;
}

function tellMany(names, text) {
  if (names.length === 0) return;
  if (names.length <= 4) names.forEach((name) => tell(`${name} ${text}`));
  else tell(`${names.length} nodes ${text.replace(/^is /, "are ").replace(/^was /, "were ").replace("its label", "their labels")}`);
}

// ---- what the stream says ----

function setNode(data, quiet, news) {
  let entry = nodes.get(data.name);
  if (!entry) {
    const cell = element("button", { type: "button", role: "option", "data-name": data.name, tabindex: "-1" });
    entry = { data, cell, fresh: !quiet };
    cell.addEventListener("animationend", () => { entry.fresh = false; cell.classList.remove("fresh"); });
    nodes.set(data.name, entry);
    order.push(data.name);
    layoutStale = true;
    if (!quiet) note(news, "joined", data.name);
    if (!quiet && data.state) note(news, `is ${data.state}`, data.name);
    return;
  }
  const old = entry.data;
  entry.data = data;
  if (old.labels[ZONE] !== data.labels[ZONE]) layoutStale = true;
  if (old.state !== data.state) { entry.fresh = !quiet; note(news, data.state ? `is ${data.state}` : "lost its label", data.name); }
  if (old.ready !== data.ready) note(news, data.ready ? "is ready" : "is not ready", data.name);
  if (old.cordoned !== data.cordoned) note(news, data.cordoned ? "was cordoned" : "was uncordoned", data.name);
}

function note(news, text, name) {
  if (!news.has(text)) news.set(text, []);
  news.get(text).push(name);
}

function dropNode(name, news) {
  if (!nodes.delete(name)) return;
  layoutStale = true;
  note(news, "is gone", name);
}

function setStatus(next, quiet) {
  if (!quiet && status.leader !== next.leader) tell(next.leader ? `${next.leader} leads` : "nobody leads");
  if (!quiet && status.ready !== next.ready) tell(next.ready ? "ready again" : `not ready: ${next.why}`);
  status = next;
}

function onSnapshot(event) {
  const { status: next, nodes: list } = JSON.parse(event.data);
  const news = new Map();
  const quiet = !loaded;
  const present = new Set(list.map((node) => node.name));
  for (const name of [...nodes.keys()]) if (!present.has(name)) dropNode(name, news);
  for (const node of list) setNode(node, quiet, news);
  setStatus(next, quiet);
  for (const [text, names] of news) tellMany(names, text);
  loaded = true;
  layoutStale = true;
  schedule();
}

function onDelta(event) {
  const { set, del } = JSON.parse(event.data);
  const news = new Map();
  for (const node of set) setNode(node, false, news);
  for (const name of del) dropNode(name, news);
  for (const [text, names] of news) tellMany(names, text);
  schedule();
}

function schedule() {
  if (framePending) return;
  framePending = true;
  requestAnimationFrame(() => { framePending = false; draw(); });
}

function draw() {
  if (layoutStale) {
    order = [...nodes.keys()].sort(byName);
    layoutGrid();
    layoutStale = false;
  }
  drawCounts();
  drawStatus();
  drawNode();
  drawList();
  const zones = new Set([...nodes.values()].map(({ data }) => data.labels[ZONE]).filter(Boolean)).size;
  $("fleet-note").textContent = zones > 1 ? `${zones} zones` : "";
}

function link(kind, text) {
  $("link").className = `pill ${kind}`;
  $("link").lastChild.textContent = text;
}

function connect() {
  const stream = new EventSource("/api/v1/events");
  stream.addEventListener("open", () => link("live", "live"));
  stream.addEventListener("snapshot", onSnapshot);
  stream.addEventListener("delta", onDelta);
  stream.addEventListener("status", (event) => { setStatus(JSON.parse(event.data), false); schedule(); });
  stream.addEventListener("error", () => {
    link("lost", "connection lost, trying again");
    if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

// ---- theme and keys ----

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* a browser that keeps nothing */ }
}
try {
  const kept = localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
} catch { /* the same */ }
$("theme").addEventListener("click", theme);

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input");
  if (event.key === "Escape") {
    $("filter").value = "";
    stateFilter = "all";
    if (typing) event.target.blur();
    refilter();
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    $("filter").focus();
  } else if (event.key === "g") {
    const cell = $("grid").querySelector('[tabindex="0"]');
    if (cell) cell.focus();
  } else if (event.key === "t") {
    theme();
  }
});
addEventListener("resize", drawRows);

draw();
connect();
