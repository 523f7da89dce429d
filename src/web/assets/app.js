// The dashboard: keeps a map of nodes up to date from the event stream and draws what changed, once a frame.
import { $, nodes, page, byName, count, stateKey, element, tag, activityWords } from "./shared.js";
import { drawFleet, fleetChanged, fleetStale, focusFleet, startFleet } from "./fleet.js";
import { drawDrains, isBlocked, isDraining } from "./drains.js";
import { drawNode, showNode } from "./explain.js";
import { draw as drawLimits, focusLimits, setBoard } from "./limits.js";
import { choose as chooseOperation, draw as drawOperations, focusOperations, setOperations } from "./operations.js";
import { workStale } from "./waiting.js";

const PLAIN = /^(beta\.kubernetes\.io\/|kubernetes\.io\/hostname$|cloud\.sap\/maintenance-state$)/; // say what is shown already
const STATES = [
  { key: "all", title: "Nodes", tone: "--accent" },
  { key: "operational", title: "Operational", tone: "--ok" },
  { key: "maintenance-required", title: "Maintenance required", tone: "--wait" },
  { key: "in-maintenance", title: "In maintenance", tone: "--work" },
  { key: "draining", title: "Draining", tone: "--drain", when: isDraining },
  { key: "blocked", title: "Blocked drains", tone: "--bad", when: isBlocked, alarm: true },
  { key: "none", title: "Not labelled yet", tone: "--none" },
  { key: "down", title: "Not ready", tone: "--bad", when: (node) => !node.ready },
];
const CONDITIONS = new Map(STATES.filter((state) => state.when).map((state) => [state.key, state.when])); // beside the states proper
const ROW = 36; // height of a list row, as in style.css
const FEED_MAX = 100;

let shown = []; // names that match the filter
let cursor = 0; // in the list, of the keyboard
let stateFilter = "all";
let orderStale = true;
let framePending = false;
let complete = false; // the first snapshot is there

// ---- filter: words that all must match; a word with = or != is about a label, the profile or the state ----

function parseFilter(text) {
  return text.trim().split(/\s+/).filter(Boolean).map((word) => {
    const match = word.match(/^([^=!]+)(!=|==?)(.*)$/);
    if (match) return { key: match[1], not: match[2] === "!=", value: match[3] };
    return { text: word.toLowerCase() };
  });
}

function pairMatches(node, word) {
  if (word.key === "profile") return node.profiles.some((p) => p.name === word.value);
  if (word.key === "state") return node.state === word.value || node.profiles.some((p) => p.state === word.value);
  return node.labels[word.key] === word.value;
}

function matches(node, words) {
  const condition = CONDITIONS.get(stateFilter);
  if (condition ? !condition(node) : stateFilter !== "all" && stateKey(node) !== stateFilter) return false;
  return words.every((word) => {
    if (word.text === undefined) return pairMatches(node, word) !== word.not;
    if (node.name.toLowerCase().includes(word.text) || node.state.includes(word.text)) return true;
    if (node.profiles.some((p) => p.name.toLowerCase().includes(word.text))) return true;
    return Object.entries(node.labels).some(([k, v]) => `${k}=${v}`.toLowerCase().includes(word.text));
  });
}

// ---- counts, control ----

function drawCounts() {
  const n = { all: nodes.size };
  for (const node of nodes.values()) {
    n[stateKey(node)] = (n[stateKey(node)] || 0) + 1;
    for (const [key, holds] of CONDITIONS) if (holds(node)) n[key] = (n[key] || 0) + 1;
  }
  const box = $("counts");
  if (!box.firstChild) {
    box.append(...STATES.map((state) => {
      const b = element("button", { type: "button", class: "count", "data-key": state.key,
        onclick: () => { stateFilter = stateFilter === state.key ? "all" : state.key; schedule(); } },
      element("b", {}, "0"), element("span", {}, state.title));
      b.style.setProperty("--tone", `var(${state.tone})`);
      if (state.tone !== "--accent") b.style.setProperty("--soft", `var(${state.tone}-soft)`);
      return b;
    }));
  }
  for (const button of box.children) {
    const value = n[button.dataset.key] || 0;
    button.firstChild.textContent = count(value);
    button.classList.toggle("zero", value === 0);
    button.classList.toggle("alarm", button.dataset.key === "blocked" && value > 0);
    button.setAttribute("aria-pressed", String(stateFilter === button.dataset.key));
  }
}

function pairs(list) {
  return list.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]);
}

function drawStatus() {
  const { status } = page;
  $("title").textContent = status.title || "";
  $("version").textContent = `drydock ${status.version || ""}`;
  const blocked = [...nodes.values()].filter(isBlocked).length;
  document.title = `${blocked > 0 ? `(${blocked} blocked) ` : ""}${status.title ? `drydock · ${status.title}` : "drydock"}`;
  const list = [
    ["Leader", status.leading ? "this replica" : status.leader || "nobody"],
    ["This replica", status.identity || "–"],
    ["Ready", status.ready ? "yes" : status.why || "no"],
    ["Writes sent", count(status.writes || 0)],
  ];
  if (status.config && status.config.file) list.push(["Configuration", !status.config.error ? status.config.file : status.config.loaded ? "the last good one" : "none"]);
  for (const activity of status.integrations || []) list.push([activity.name, element("span", { class: "integration" }, ...activityWords(activity))]);
  $("control").replaceChildren(...pairs(list));
}

function drawBanner() {
  const { status } = page;
  const wrong = status.config && status.config.error;
  const odd = status.config && status.config.warnings;
  const used = wrong && status.config.loaded ? "the last good one stays in force" : "none is in force, profiles do nothing";
  const text = status.paused ? `${status.paused[0].toUpperCase()}${status.paused.slice(1)}. Nothing new is granted and no pod is evicted until “drydock resume”.`
    : wrong ? `The configuration was not taken over; ${used}. ${status.config.error}`
    : odd ? `The configuration may not mean what it was meant to. ${status.config.warnings}`
    : page.loaded && !status.ready ? `Not ready: ${status.why || "no reason is known"}` : "";
  if ($("banner").textContent !== text) $("banner").textContent = text;
  $("banner").hidden = !text;
}

page.choose = (name) => {
  page.chosen = name;
  history.replaceState(null, "", name ? `#node=${encodeURIComponent(name)}` : location.pathname);
  showNode(name, page.loaded && matchMedia("(max-width: 1040px)").matches);
  schedule();
};

page.filter = (text) => {
  $("filter").value = text;
  schedule();
};

// ---- list: only the rows in view exist ----

function drawList() {
  $("list-note").textContent = shown.length === page.order.length ? count(shown.length) : `${count(shown.length)} of ${count(page.order.length)}`;
  $("spacer").style.height = `${shown.length * ROW}px`;
  cursor = Math.min(cursor, Math.max(0, shown.length - 1));
  drawRows();
}

function drawRows() {
  const box = $("rows");
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 4);
  const last = Math.min(shown.length, first + Math.ceil(box.clientHeight / ROW) + 8);
  const rows = shown.slice(first, last).map((name, i) => {
    const node = nodes.get(name);
    const at = first + i;
    const kubelet = [node.ready ? "ready" : "not ready", node.cordoned ? "cordoned" : ""].filter(Boolean).join(", ");
    const labels = Object.entries(node.labels).filter(([k]) => !PLAIN.test(k)).map(([k, v]) => `${k.split("/").pop()}=${v}`).join("  ");
    const classes = `row${name === page.chosen ? " chosen" : ""}${at === cursor ? " cursor" : ""}`;
    return element("div", { class: classes, role: "option", id: `row-${at}`, "aria-selected": String(name === page.chosen),
      "aria-setsize": shown.length, "aria-posinset": at + 1, onclick: () => { cursor = at; page.choose(name); } },
    element("span", {}, name), element("span", {}, node.error ? element("span", { class: "tag fault", title: node.error }, "error")
      : node.draining ? element("span", { class: `tag ${node.draining.blocked ? "blocked" : "draining"}` }, node.draining.blocked ? "blocked" : "draining") : tag(node.state)),
    element("span", {}, node.ready ? kubelet : element("span", { class: "tag down" }, kubelet)), element("span", { class: "labels", title: labels }, labels));
  });
  const view = $("window");
  view.style.transform = `translateY(${first * ROW}px)`;
  view.replaceChildren(...rows);
  if (cursor >= first && cursor < last) box.setAttribute("aria-activedescendant", `row-${cursor}`);
  else box.removeAttribute("aria-activedescendant");
}

function moveCursor(event) {
  const leap = Math.max(1, Math.floor($("rows").clientHeight / ROW) - 1);
  const to = { ArrowDown: cursor + 1, ArrowUp: cursor - 1, PageDown: cursor + leap, PageUp: cursor - leap, Home: 0, End: shown.length - 1 }[event.key];
  if (event.key === "Enter" && shown[cursor]) page.choose(shown[cursor]);
  if (to === undefined) return;
  event.preventDefault();
  cursor = Math.max(0, Math.min(shown.length - 1, to));
  const box = $("rows");
  if (cursor * ROW < box.scrollTop) box.scrollTop = cursor * ROW;
  else if ((cursor + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (cursor + 1) * ROW - box.clientHeight;
  drawRows();
}
$("rows").addEventListener("keydown", moveCursor);
$("rows").addEventListener("scroll", drawRows, { passive: true });
$("filter").addEventListener("input", schedule);

// ---- feed ----

function tell(text) {
  const now = new Date();
  $("feed").prepend(element("li", {}, element("time", {}, now.toLocaleTimeString("en-GB")), element("span", {}, text)));
  while ($("feed").children.length > FEED_MAX) $("feed").lastChild.remove();
  $("feed-empty").hidden = true;
  $("feed").hidden = false;
}

function tellMany(names, text) {
  if (names.length === 0) return;
  if (names.length <= 4) names.forEach((name) => tell(`${name} ${text}`));
  else tell(`${names.length} nodes ${text.replace(/^is /, "are ").replace(/^was /, "were ").replace("its label", "their labels")}`);
}

// ---- what the stream says ----

function note(news, text, name) {
  if (!news.has(text)) news.set(text, []);
  news.get(text).push(name);
}

function setNode(node, quiet, news) {
  const old = nodes.get(node.name);
  nodes.set(node.name, node);
  if (!old) {
    fleetStale();
    orderStale = true;
    if (!quiet) note(news, "joined", node.name);
    if (!quiet && node.state) note(news, `is ${node.state}`, node.name);
    return;
  }
  fleetChanged(old, node);
  if (old.state !== node.state) note(news, node.state ? `is ${node.state}` : "lost its label", node.name);
  if (old.ready !== node.ready) note(news, node.ready ? "is ready" : "is not ready", node.name);
  if (isBlocked(old) !== isBlocked(node)) note(news, isBlocked(node) ? "cannot be drained: its drain is blocked" : "is not blocked any more", node.name);
  else if (isDraining(old) !== isDraining(node)) note(news, isDraining(node) ? "is being drained" : "is not drained any more", node.name);
  if (old.cordoned !== node.cordoned) note(news, node.cordoned ? "was cordoned" : "was uncordoned", node.name);
}

function dropNode(name, news) {
  if (!nodes.delete(name)) return;
  orderStale = true;
  fleetStale();
  note(news, "is gone", name);
}

function setStatus(next, quiet) {
  const old = page.status;
  if (!quiet && old.leader !== next.leader) tell(next.leader ? `${next.leader} leads` : "nobody leads");
  if (!quiet && old.ready !== next.ready) tell(next.ready ? "ready again" : `not ready: ${next.why}`);
  if (!quiet && old.config && next.config && old.config.error !== next.config.error) tell(next.config.error ? "the configuration has an error" : "the configuration is good");
  if (String(old.profiles) !== String(next.profiles)) fleetStale();
  page.status = next;
}

function onSnapshot(event) {
  const { status, nodes: list, board, operations } = JSON.parse(event.data);
  const news = new Map();
  const quiet = !page.loaded;
  const present = new Set(list.map((node) => node.name));
  for (const name of [...nodes.keys()]) if (!present.has(name)) dropNode(name, news);
  for (const node of list) setNode(node, quiet, news);
  setStatus(status, quiet);
  for (const [text, names] of news) tellMany(names, text);
  setBoard(board || null, quiet).forEach(tell);
  setOperations(operations || null, quiet).forEach(tell);
  complete = true;
  workStale();
  schedule();
}

function onDelta(event) {
  const { set, del } = JSON.parse(event.data);
  const news = new Map();
  for (const node of set) setNode(node, false, news);
  for (const name of del) dropNode(name, news);
  for (const [text, names] of news) tellMany(names, text);
  workStale();
  schedule();
}

function schedule() {
  if (framePending) return;
  framePending = true;
  requestAnimationFrame(() => { framePending = false; draw(); });
}

function draw() {
  if (orderStale) {
    page.order = [...nodes.keys()].sort(byName);
    orderStale = false;
  }
  const words = parseFilter($("filter").value);
  shown = page.order.filter((name) => matches(nodes.get(name), words));
  drawCounts();
  drawStatus();
  drawBanner();
  drawFleet(shown.length === page.order.length ? null : new Set(shown));
  drawList();
  drawNode();
  drawOperations();
  drawLimits();
  drawDrains();
  if (complete && !page.loaded) {
    page.loaded = true; // from here on, what is new is shown as new
    $("grid-empty").hidden = page.order.length > 0;
    drawBanner();
    drawNode();
  }
}

function link(kind, text) {
  $("link").className = `pill ${kind}`;
  $("link").lastChild.textContent = text;
}

let stream = null;
function connect() {
  if (stream) stream.close();
  if (document.hidden) { stream = null; return; } // a browser has six connections for all its tabs
  const mine = stream = new EventSource("/api/v1/events");
  mine.addEventListener("open", () => link("live", "live"));
  mine.addEventListener("snapshot", onSnapshot);
  mine.addEventListener("delta", onDelta);
  mine.addEventListener("board", (event) => { setBoard(JSON.parse(event.data), false).forEach(tell); workStale(); schedule(); });
  mine.addEventListener("operations", (event) => { setOperations(JSON.parse(event.data), false).forEach(tell); schedule(); });
  mine.addEventListener("status", (event) => { setStatus(JSON.parse(event.data), false); schedule(); });
  mine.addEventListener("error", () => {
    link("lost", "connection lost, trying again");
    if (mine.readyState === EventSource.CLOSED) setTimeout(() => { if (stream === mine) connect(); }, 3000);
  });
}
document.addEventListener("visibilitychange", connect);

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
    schedule();
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    $("filter").focus();
  } else if (event.key === "g") {
    focusFleet();
  } else if (event.key === "o") {
    focusOperations();
  } else if (event.key === "l") {
    focusLimits();
  } else if (event.key === "d") {
    $("node-card").focus();
  } else if (event.key === "t") {
    theme();
  }
});
addEventListener("resize", drawRows);

startFleet(schedule);
function followLink() {
  const linked = location.hash.match(/^#(node|operation)=(.+)$/);
  if (!linked) return;
  try {
    (linked[1] === "node" ? page.choose : chooseOperation)(decodeURIComponent(linked[2]));
  } catch { /* the escapes of the address are broken: it names nothing */ }
}
addEventListener("hashchange", followLink);
followLink();
draw();
connect();
