// The fleet as cells: by profile and state, where a node that moves on changes lanes, or by zone.
import { $, ZONE, LANES, nodes, page, byName, count, element } from "./shared.js";

const NONE = "not labelled yet";
const cells = new Map(); // key -> { cell, name, state }
const board = new Map(); // profile -> { lanes: Map(lane -> { holder, badge, box, members }), element }
let byProfile = true;
let stale = true;

export const fleetStale = () => { stale = true; };

function wide() { return page.order.length <= 60; }

function cellOf(key, name, state) {
  let entry = cells.get(key);
  if (!entry) {
    entry = { cell: element("button", { type: "button", role: "option", tabindex: "-1", "data-key": key, "data-name": name }), name, fresh: page.loaded };
    entry.cell.addEventListener("animationend", () => { entry.fresh = false; dress(entry, entry.cell.classList.contains("dim")); });
    cells.set(key, entry);
  } else if (entry.state !== state) {
    entry.fresh = page.loaded;
  }
  entry.state = state;
  entry.used = true;
  return entry;
}

// What a cell shows is kept beside it: asking five thousand elements costs more than drawing the few that changed.
function put(entry, key, value, apply) {
  if (entry[key] === value) return;
  entry[key] = value;
  apply(entry.cell, value);
}
const putClass = (cell, value) => { cell.className = value; };
const putText = (cell, value) => { cell.textContent = value; };
const putLabel = (cell, value) => { cell.title = value; cell.setAttribute("aria-label", value); };
const putSelected = (cell, value) => cell.setAttribute("aria-selected", value);

function dress(entry, dim) {
  const node = nodes.get(entry.name);
  let names = `cell s-${entry.state || "none"}`;
  if (node.draining) names += node.draining.blocked ? " blocked" : " draining";
  if (!node.ready) names += " down";
  if (node.error) names += " fault";
  if (dim) names += " dim";
  if (entry.fresh) names += " fresh";
  put(entry, "names", names, putClass);
  let label = `${node.name}, ${entry.state || "not labelled yet"}`;
  if (!node.ready) label += ", not ready";
  if (node.cordoned) label += ", cordoned";
  if (node.draining) label += node.draining.blocked ? `, its drain is blocked: ${node.draining.reason || "nobody knows why"}` : ", draining";
  if (node.error) label += `, ${node.error}`;
  put(entry, "label", label, putLabel);
  put(entry, "text", wide() ? node.name : "", putText);
  put(entry, "selected", String(page.chosen === node.name), putSelected);
}

function box(title, members, level) {
  const badge = element("span", {}, count(members.length));
  const holder = element("div", { class: "cells", role: "presentation" }, ...members.map((member) => member.cell));
  const e = element("div", { class: "group", role: "group", "aria-label": `${title}, ${members.length} nodes` },
    element(level, { "aria-hidden": "true" }, title, badge), holder);
  return { title, box: e, badge, holder, members: members.map((member) => member.name) };
}

const laneOf = (profile) => (LANES.includes(profile.state) ? profile.state : NONE);
const profilesOf = (node) => (node.profiles.length > 0 ? node.profiles : [{ name: "default", state: node.state }]);

function recount(profile) {
  for (const lane of profile.lanes.values()) {
    lane.badge.textContent = count(lane.members.length);
    lane.box.setAttribute("aria-label", `${lane.title}, ${lane.members.length} nodes`);
  }
  // Room for the many, and enough for the few.
  const widths = LANES.map((lane) => `minmax(min(180px, 100%), ${3 + Math.round(Math.sqrt(profile.lanes.get(lane).members.length))}fr)`);
  profile.element.style.setProperty("--lanes", widths.join(" "));
}

function layoutProfiles() {
  const profiles = new Map((page.status.profiles || []).map((name) => [name, new Map()]));
  for (const name of page.order) {
    for (const p of profilesOf(nodes.get(name))) {
      if (!profiles.has(p.name)) profiles.set(p.name, new Map());
      const lanes = profiles.get(p.name);
      if (!lanes.has(laneOf(p))) lanes.set(laneOf(p), []);
      lanes.get(laneOf(p)).push(cellOf(`${p.name}/${name}`, name, LANES.includes(p.state) ? p.state : ""));
    }
  }
  board.clear();
  const used = (name) => (profiles.get(name).size > 0 ? 0 : 1); // those that nobody has come last
  return [...profiles.keys()].sort((a, b) => used(a) - used(b) || byName(a, b)).map((name) => {
    const found = profiles.get(name);
    const total = [...found.values()].reduce((sum, list) => sum + list.length, 0);
    const head = element("h3", { "aria-hidden": "true" }, name, element("span", {}, total === 0 ? "no node has this profile" : count(total)));
    if (total === 0) return element("div", { class: "profile unused", role: "presentation" }, head);
    const lanes = new Map([...LANES, ...(found.has(NONE) ? [NONE] : [])].map((lane) => [lane, box(lane, found.get(lane) || [], "h4")]));
    for (const [lane, part] of lanes) part.box.classList.add("lane", `lane-${lane === NONE ? "none" : lane}`);
    const row = element("div", { class: "lanes", role: "presentation" }, ...[...lanes.values()].map((lane) => lane.box));
    board.set(name, { lanes, element: row });
    recount(board.get(name));
    return element("div", { class: "profile", role: "group", "aria-label": `profile ${name}` }, head, row);
  });
}

// Where a name is in a sorted list, or would be.
function place(members, name) {
  let low = 0;
  let high = members.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (byName(members[middle], name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

// One cell to another lane; false when the board has no such lanes and must be laid out anew.
function move(name, from, to) {
  const profile = board.get(to.name);
  const entry = cells.get(`${to.name}/${name}`);
  const source = profile && profile.lanes.get(laneOf(from));
  const target = profile && profile.lanes.get(laneOf(to));
  if (!source || !target || !entry) return false;
  const at = place(source.members, name);
  if (source.members[at] !== name) return false;
  source.members.splice(at, 1);
  const next = place(target.members, name);
  target.holder.insertBefore(entry.cell, target.holder.children[next] || null);
  target.members.splice(next, 0, name);
  entry.state = LANES.includes(to.state) ? to.state : "";
  entry.fresh = page.loaded;
  moved.add(profile);
  return source.title !== NONE || source.members.length > 0;
}
const moved = new Set(); // profiles whose numbers have changed

// A node is not what it was: what can be moved is moved, so that a fleet of thousands is not laid out for one of them.
export function fleetChanged(old, node) {
  if (stale) return;
  if (!byProfile) {
    const entry = cells.get(`/${node.name}`);
    if (!entry || old.labels[ZONE] !== node.labels[ZONE]) { stale = true; return; }
    if (entry.state !== node.state) { entry.state = node.state; entry.fresh = page.loaded; }
    return;
  }
  const before = profilesOf(old);
  const after = profilesOf(node);
  if (before.length !== after.length || before.some((p, i) => p.name !== after[i].name)) { stale = true; return; }
  after.forEach((p, i) => {
    if (p.state !== before[i].state && !move(node.name, before[i], p)) stale = true;
  });
}

function layoutZones() {
  const zones = new Map();
  for (const name of page.order) {
    const node = nodes.get(name);
    const zone = node.labels[ZONE] || "";
    if (!zones.has(zone)) zones.set(zone, []);
    zones.get(zone).push(cellOf(`/${name}`, name, node.state));
  }
  return [...zones.keys()].sort(byName).map((zone) => box(zone || "no zone", zones.get(zone), "h3").box);
}

function layout() {
  const grid = $("grid");
  const n = page.order.length;
  grid.classList.toggle("wide", wide());
  grid.classList.toggle("many", n > 400);
  grid.classList.toggle("tiny", n > 1500);
  grid.style.setProperty("--cell", wide() ? "28px" : n <= 400 ? "24px" : n <= 1500 ? "15px" : "8px");
  grid.style.setProperty("--least", wide() ? "96px" : "var(--cell)");
  grid.style.setProperty("--gap", n > 1500 ? "2px" : n > 400 ? "3px" : "5px");
  grid.style.setProperty("--round", n > 1500 ? "2px" : n > 400 ? "4px" : "6px");
  const focused = document.activeElement && grid.contains(document.activeElement) ? document.activeElement.dataset : null;
  for (const entry of cells.values()) entry.used = false;
  const parts = byProfile ? layoutProfiles() : layoutZones();
  for (const [key, entry] of cells) if (!entry.used) cells.delete(key);
  grid.replaceChildren(...parts);
  if (focused && cells.has(focused.key)) cells.get(focused.key).cell.focus({ preventScroll: true });
  rove(focused && cells.has(focused.key) ? focused.key : firstKey());
  $("grid-empty").hidden = n > 0 || !page.loaded;
  const zones = new Set([...nodes.values()].map((node) => node.labels[ZONE]).filter(Boolean)).size;
  $("fleet-note").textContent = zones > 1 ? `${zones} zones` : "";
}

function firstKey() {
  for (const [key, entry] of cells) if (entry.name === page.chosen) return key;
  const first = $("grid").querySelector("[data-key]"); // not dressed yet
  return first ? first.dataset.key : null;
}

// One stop for the Tab key; arrows walk inside.
function rove(key) {
  const old = $("grid").querySelector('[tabindex="0"]');
  if (old) old.tabIndex = -1;
  if (key && cells.has(key)) cells.get(key).cell.tabIndex = 0;
}

function step(from, key) {
  const all = [...$("grid").querySelectorAll(".cell")];
  const at = all.indexOf(from);
  if (key === "ArrowRight") return all[at + 1];
  if (key === "ArrowLeft") return all[at - 1];
  if (key === "Home") return all[0];
  if (key === "End") return all[all.length - 1];
  const here = from.getBoundingClientRect();
  const down = key === "ArrowDown";
  let best = null;
  for (const other of all) {
    const place = other.getBoundingClientRect();
    const far = (place.top - here.top) * (down ? 1 : -1);
    if (far < 2) continue;
    const score = far * 4 + Math.abs(place.left - here.left);
    if (!best || score < best.score) best = { other, score };
  }
  return best && best.other;
}

export function drawFleet(match) {
  if (stale) { layout(); stale = false; moved.clear(); }
  for (const profile of moved) recount(profile);
  moved.clear();
  for (const entry of cells.values()) dress(entry, match && !match.has(entry.name));
}

export function focusFleet() {
  const cell = $("grid").querySelector('[tabindex="0"]');
  if (cell) cell.focus();
}

function arrange(profiles, draw) {
  byProfile = profiles;
  $("by-profile").setAttribute("aria-pressed", String(profiles));
  $("by-zone").setAttribute("aria-pressed", String(!profiles));
  stale = true;
  draw();
}

export function startFleet(draw) {
  $("by-profile").addEventListener("click", () => arrange(true, draw));
  $("by-zone").addEventListener("click", () => arrange(false, draw));
  $("grid").addEventListener("keydown", (event) => {
    if (!/^(Arrow|Home$|End$)/.test(event.key) || !event.target.dataset.key) return;
    event.preventDefault();
    const next = step(event.target, event.key);
    if (next) { rove(next.dataset.key); next.focus(); }
  });
  $("grid").addEventListener("click", (event) => {
    if (!event.target.dataset.name) return;
    rove(event.target.dataset.key);
    page.choose(event.target.dataset.name);
  });
}
