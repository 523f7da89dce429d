// NodeMaintenances: how each stands, when windows open, and of the one that is chosen the waves, the machines, what they wait for and what failed.
// The stream tells them in brief; the machines of the chosen one are asked for. Hidden where the cluster has none.
import { $, nodes, page, byName, count, element, since, when, length } from "./shared.js";

const DAYS = 7; // that the timeline shows
const DAY = 86400000;
const ASK_EVERY = 2000; // between two questions for the machines of the chosen one
const LIST_MAX = 40;
const TONES = { Running: "s-in-maintenance", Complete: "s-operational", Paused: "fault", Invalid: "fault", Degraded: "fault", Suspended: "paused", Waiting: "s-maintenance-required" };
const STATES = ["done", "skipped", "visited", "retried", "failed", "held", "unreachable", "pending"]; // in the order of a bar and of the legend
const URGENT = ["Paused", "Degraded", "Running"]; // what is shown first to those who have not chosen

let operations = null; // as the stream tells them
let chosen = null; // by a person
let detail = null; // of the one that is shown, with all its machines
let asking = false;
let askedAt = 0;
let asked = { name: "", brief: "" }; // for whom, and as the stream told it then
let timer = null;
let shown = "";

const current = () => {
  const list = operations ? operations.maintenances : [];
  return list.find((m) => m.name === chosen) || URGENT.map((phase) => list.find((m) => m.phase === phase)).find(Boolean) || list[0] || null;
};

// ---- the machines of the one that is shown ----

async function ask(name, brief) {
  asking = true;
  askedAt = Date.now();
  asked = { name, brief };
  try {
    const answer = await fetch(`/api/v1/explain?nodemaintenance=${encodeURIComponent(name)}`, { cache: "no-store" });
    detail = answer.ok ? (await answer.json()).maintenances[0] : null;
  } catch {
    detail = null; // the stream tells when the connection is back
  }
  asking = false;
  draw();
}

function follow() {
  const m = current();
  const brief = m ? JSON.stringify(m) : "";
  if (!m || brief === asked.brief || asking || document.hidden) return;
  const wait = asked.name === m.name ? askedAt + ASK_EVERY - Date.now() : 0;
  clearTimeout(timer);
  if (wait > 0) timer = setTimeout(follow, wait);
  else ask(m.name, brief);
}

// ---- one line for each ----

function segments(counts) {
  return STATES.filter((state) => counts[state] > 0).map((state) => {
    const part = element("i", { class: `place m-${state}` });
    part.style.flexGrow = counts[state];
    return part;
  });
}

const barWords = (m) => STATES.filter((state) => m.counts[state] > 0).map((state) => `${count(m.counts[state])} ${state}`).join(", ") || "no machines";

function drawMaintenance(m) {
  const pressed = current() === m;
  const done = m.counts.done + m.counts.skipped;
  return element("li", { class: `limit operation${pressed ? " pressed" : ""}` },
    element("div", { class: "limit-head" },
      element("button", { type: "button", class: "link", "data-key": `operation/${m.name}`, "aria-pressed": String(pressed), title: "Show its waves and machines", onclick: () => choose(m.name) }, m.name),
      element("span", { class: `tag ${TONES[m.phase] || ""}` }, m.phase || "not looked at yet"),
      element("span", { class: "muted rule" }, `${count(done)} of ${count(m.counts.selected)} done`)),
    m.counts.selected > 0 ? element("div", { class: "bar", role: "img", "aria-label": `${m.name}: ${barWords(m)}` }, ...segments(m.counts)) : null,
    element("p", { class: "limit-words" },
      m.counts.visited > 0 ? element("span", {}, element("b", {}, count(m.counts.visited)), " visited") : null,
      m.counts.failed > 0 ? element("span", { class: "problem" }, element("b", {}, count(m.counts.failed)), " failed") : null,
      element("span", { class: m.phase === "Invalid" ? "problem" : "" }, m.message || m.reason),
      m.next ? element("span", {}, "next ", when(m.next)) : null));
}

// ---- when: a row for each window, from now on ----

const DAYNAME = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", timeZone: "UTC" });
const STAMP = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

function span(from, to, start, classes) {
  const [a, b] = [Math.max(0, from - start), Math.min(DAYS * DAY, to - start)];
  if (b <= 0 || a >= DAYS * DAY) return null;
  const e = element("i", { class: classes, title: `${STAMP.format(from)} to ${STAMP.format(to)} UTC, ${length(to - from)}` });
  e.style.left = `${100 * a / (DAYS * DAY)}%`;
  e.style.width = `${100 * (b - a) / (DAYS * DAY)}%`;
  return e;
}

function track(window, start, classes) {
  const all = window.upcoming.map(({ start: from, end: to }) => [Date.parse(from), to ? Date.parse(to) : start + 10 * DAYS * DAY]);
  if (window.open) all.unshift([start, window.until ? Date.parse(window.until) : start + 10 * DAYS * DAY]);
  return all.map(([from, to]) => span(from, to, start, classes)).filter(Boolean);
}

function tickMarks(m, start) {
  return m.operations.filter((op) => op.nextTick).map((op) => {
    const at = Date.parse(op.nextTick) - start;
    if (at < 0 || at > DAYS * DAY) return null;
    const e = element("i", { class: "tick", title: `${op.name} is due ${STAMP.format(start + at)} UTC` });
    e.style.left = `${100 * at / (DAYS * DAY)}%`;
    return e;
  }).filter(Boolean);
}

function windowWords(window) {
  const next = window.upcoming[0];
  if (window.problem) return "never";
  if (window.open) return window.until ? element("span", {}, "until ", when(window.until)) : "open";
  return next ? element("span", {}, when(next.start)) : "never";
}

function drawRow(name, window, start, { freeze = false, own = false, marks = [] } = {}) {
  const state = window.problem ? "is wrong" : window.open ? (freeze ? "freezes now" : "is open") : "is shut";
  return element("li", {},
    element("span", { class: "mono track-name" }, name),
    element("span", { class: `tag ${window.problem ? "fault" : window.open ? (freeze ? "fault" : "s-operational") : ""}`, title: window.problem || null }, freeze ? "freeze" : own ? "operation" : window.open ? "open" : "shut"),
    element("div", { class: "track", role: "img", "aria-label": `${name} ${state}` }, ...track(window, start, `span${freeze ? " freeze" : own ? " own" : ""}`), ...marks),
    element("span", { class: "muted track-when" }, windowWords(window)));
}

function drawTimeline() {
  const start = Date.now();
  const days = [];
  for (let at = Math.ceil(start / DAY) * DAY; at < start + DAYS * DAY; at += DAY) {
    const e = element("span", {}, DAYNAME.format(at));
    e.style.left = `${100 * (at - start) / (DAYS * DAY)}%`;
    days.push(e);
  }
  const own = operations.maintenances.filter((m) => m.window.limited || m.operations.some((op) => op.nextTick));
  const rows = [
    ...operations.windows.map((w) => drawRow(w.name, w, start, { freeze: w.effect === "Freeze" })),
    ...own.map((m) => drawRow(m.name, m.window, start, { own: true, marks: tickMarks(m, start) })),
  ];
  $("timeline").replaceChildren(...rows);
  $("timeline-days").replaceChildren(...days);
  $("timeline-box").hidden = rows.length === 0;
}

// ---- the one that is shown ----

function drawWave(wave) {
  const ended = wave.done + wave.failed;
  const words = wave.state === "soaking" && wave.soakUntil ? element("span", {}, "soaks until ", when(wave.soakUntil))
    : wave.state === "coming" && wave.manual ? "coming, needs approval" : wave.state;
  const soak = wave.soakSeconds > 0 && (wave.state === "now" || wave.state === "coming") ? `, then quiet for ${length(wave.soakSeconds * 1000)}` : "";
  return element("li", { class: `step ${wave.state.split(" ")[0]}${wave.failed > 0 ? " bad-step" : ""}`, "aria-current": wave.state === "now" ? "step" : null },
    element("b", {}, wave.name),
    element("span", {}, `${count(ended)} of ${count(wave.machines)}${wave.failed > 0 ? `, ${count(wave.failed)} failed` : ""}`),
    element("span", { class: "step-state" }, words, soak));
}

function machineWords(machine) {
  const parts = [machine.state, machine.phase, machine.operation, machine.waitsFor ? `waits: ${machine.waitsFor}` : "", machine.reason].filter(Boolean);
  return parts.join(", ");
}

function drawCells(m) {
  const many = m.machines.length > 300;
  $("machines").className = `machines${many ? " many" : ""}`;
  $("machines").replaceChildren(...m.machines.map((machine) => element("button", { type: "button", class: `machine m-${machine.state}`, "data-machine": machine.name,
    tabindex: "-1", title: `${machine.name}: ${machineWords(machine)}`, "aria-label": `${machine.name}: ${machineWords(machine)}` })));
  if ($("machines").firstChild) $("machines").firstChild.tabIndex = 0;
  $("machine-legend").replaceChildren(...STATES.filter((state) => m.counts[state] > 0).map((state) =>
    element("span", {}, element("i", { class: `machine m-${state}` }), `${count(m.counts[state])} ${state}`)));
}

function machineName(name) {
  return nodes.has(name) ? element("button", { type: "button", class: "link", "data-key": `machine/${name}`, onclick: () => page.choose(name) }, name) : element("span", { class: "mono" }, name);
}

function drawVisit(machine) {
  return element("li", {}, machineName(machine.name),
    element("span", { class: "tag s-in-maintenance" }, machine.phase),
    element("span", { class: "muted age" }, machine.since ? since(machine.since) : ""),
    element("span", { class: "words" }, machine.operation ? `operation ${machine.operation}` : "", machine.waitsFor ? element("span", { class: "why" }, `waits: ${machine.waitsFor}`) : null));
}

function drawFailure(machine) {
  return element("li", {}, machineName(machine.name),
    element("span", { class: "tag fault" }, machine.reason || "failed"),
    element("span", { class: "muted age" }, machine.since ? since(machine.since) : ""),
    element("span", { class: "words" }, `operation ${machine.operation}, attempt ${machine.attempts}`, machine.next ? element("span", {}, "; tried again ", when(machine.next)) : "",
      machine.message ? element("pre", { class: "output" }, machine.message) : null));
}

// Those that wait for the same are one line.
function waitingGroups(m) {
  const groups = new Map();
  for (const machine of m.machines) {
    if (!["pending", "held", "unreachable"].includes(machine.state)) continue;
    const why = machine.waitsFor || "its turn";
    if (!groups.has(why)) groups.set(why, []);
    groups.get(why).push(machine.name);
  }
  return [...groups].map(([why, names]) => element("li", {},
    element("span", { class: "mono" }, names.length <= 3 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and ${count(names.length - 3)} more`),
    element("span", { class: "tag" }, count(names.length)), element("span", {}), element("span", { class: "words" }, why)));
}

function drawList(id, rows) {
  const more = rows.length - LIST_MAX;
  $(id).replaceChildren(...rows.slice(0, LIST_MAX), ...(more > 0 ? [element("li", { class: "muted more" }, `and ${count(more)} more: drydock explain ndm NAME -o wide`)] : []));
  $(`${id}-box`).hidden = rows.length === 0;
  $(`${id}-note`).textContent = count(rows.length);
}

function drawChosen() {
  const brief = current();
  const m = detail && brief && detail.name === brief.name ? detail : brief;
  $("operation-box").hidden = !m || m.counts.selected === 0;
  if (!m) return;
  $("operation-name").textContent = m.name;
  $("operation-note").textContent = m.operations.map((op) => `${op.name} (${op.type}${op.version ? ` ${op.version}` : ""})`).join(", ");
  $("waves").replaceChildren(...m.waves.map(drawWave));
  $("waves").hidden = m.waves.length === 0;
  drawCells(m);
  drawList("visits", m.machines.filter((machine) => machine.state === "visited").map(drawVisit));
  drawList("failures", m.machines.filter((machine) => machine.state === "failed" || machine.state === "retried").map(drawFailure));
  drawList("waiting", waitingGroups(m));
}

export function draw() {
  const some = operations && (operations.maintenances.length > 0 || operations.windows.length > 0);
  $("operations-card").hidden = !some;
  if (!some) return;
  follow();
  const key = JSON.stringify([operations, detail, current() && current().name, nodes.size, Math.floor(Date.now() / 60000)]);
  if (key === shown) return;
  shown = key;
  const card = $("operations-card");
  const focused = document.activeElement && card.contains(document.activeElement) ? document.activeElement.dataset : {};
  const waiting = operations.known ? "" : "as of the last leader's word";
  $("operations-note").textContent = waiting || (operations.maintenances.length > 0 ? count(operations.maintenances.length) : "");
  $("operations").replaceChildren(...operations.maintenances.map(drawMaintenance));
  drawTimeline();
  drawChosen();
  const again = [...card.querySelectorAll("[data-key], [data-machine]")].find((e) => (focused.key && e.dataset.key === focused.key) || (focused.machine && e.dataset.machine === focused.machine));
  if (again) again.focus({ preventScroll: true });
}

// ---- cells: a click shows the node, arrows walk ----

$("machines").addEventListener("click", (event) => { if (event.target.dataset.machine) page.choose(event.target.dataset.machine); });
$("machines").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  const cells = [...$("machines").children];
  const next = step && cells[cells.indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});

// Takes over what the stream says; answers what is worth telling.
export function setOperations(next, quiet) {
  const news = [];
  const before = new Map((operations ? operations.maintenances : []).map((m) => [m.name, m.phase]));
  if (!quiet && next) {
    for (const { name, phase } of next.maintenances) {
      if (before.get(name) !== phase) news.push(before.has(name) ? `operation ${name} is ${phase}` : `operation ${name} is new`);
      before.delete(name);
    }
    for (const name of before.keys()) news.push(`operation ${name} is gone`);
  }
  if (next) next.maintenances.sort((a, b) => byName(a.name, b.name));
  operations = next;
  draw();
  return news;
}

export function choose(name) {
  chosen = name;
  detail = null;
  history.replaceState(null, "", `#operation=${encodeURIComponent(name)}`);
  draw();
}

export function focusOperations() {
  if ($("operations-card").hidden) return;
  $("operations-card").scrollIntoView({ block: "nearest" });
  const first = $("operations").querySelector("button");
  (first || $("operations-card")).focus();
}
