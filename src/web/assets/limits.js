// Limits with what they allow, who holds them and who waits, as the stream tells them. Hidden where the cluster knows no limits.
import { $, nodes, page, byName, count, element, since, when } from "./shared.js";

const CELLS = 24; // up to so many places are drawn one by one
let board = null;
let only = null; // the limit that the lists are narrowed to
let shown = "";

const TONES = { Preparing: "s-maintenance-required", Approved: "s-operational", InProgress: "s-in-maintenance", InMaintenance: "s-in-maintenance", Expired: "fault" };
const STANDINGS = { open: "s-operational", full: "s-maintenance-required", paused: "paused" };

const isProfile = (claim) => claim.name.startsWith("profile/");
const who = (claim) => isProfile(claim) ? `profile ${claim.name.slice(8)}` : claim.client ? `${claim.name} of ${claim.client}` : claim.name;

// ---- a limit: its name, a bar of its places, and words ----

function segments(limit) {
  const room = Math.max(0, limit.allowed - limit.held - limit.unavailable);
  const kinds = [["held", limit.held], ["unavailable", limit.unavailable], ["room", room]];
  const total = Math.max(limit.allowed, limit.held + limit.unavailable);
  const cells = total <= CELLS;
  let at = 0;
  const parts = [];
  for (const [kind, n] of kinds) {
    for (let left = n; left > 0;) {
      // What is above the limit stands apart from what is within it.
      const over = at >= limit.allowed && kind !== "room";
      const most = cells ? 1 : over ? left : Math.min(left, limit.allowed - at);
      const part = element("i", { class: `place ${kind}${over ? " over" : ""}` });
      part.style.flexGrow = most;
      parts.push(part);
      at += most;
      left -= most;
    }
  }
  return parts;
}

function barWords(limit) {
  return `${limit.held} held and ${limit.unavailable} unavailable of ${limit.allowed} allowed`;
}

function drawLimit(limit) {
  const pressed = only === limit.name;
  const rule = [`${limit.percent} %`, limit.minimum > 1 ? `at least ${limit.minimum}` : "", limit.maxCount !== undefined ? `at most ${limit.maxCount}` : ""].filter(Boolean).join(", ");
  const scope = limit.selects ? `${limit.type}: ${limit.selects}` : `every ${limit.type || "object"}`;
  const bad = limit.overCommitted || !limit.computed;
  return element("li", { class: "limit" },
    element("div", { class: "limit-head" },
      element("button", { type: "button", class: "link", "data-key": `limit/${limit.name}`, "aria-pressed": String(pressed),
        title: pressed ? "Show the claims of all limits" : "Show only the claims of this limit", onclick: () => { only = pressed ? null : limit.name; draw(); } }, limit.name),
      element("span", { class: `tag ${bad ? "fault" : STANDINGS[limit.standing] || ""}` }, limit.standing),
      element("span", { class: "muted scope" }, `${scope}${limit.exclusive ? ", alone" : ""}`),
      element("span", { class: "muted rule" }, limit.computed ? `${count(limit.allowed)} of ${count(limit.population)} (${rule})` : rule)),
    limit.computed ? element("div", { class: `bar${limit.paused ? " paused" : ""}`, role: "img", "aria-label": `${limit.name}: ${barWords(limit)}` }, ...segments(limit)) : null,
    element("p", { class: "limit-words" },
      limit.computed ? element("span", {}, element("b", {}, count(limit.held)), " held") : null,
      limit.computed && limit.unavailable > 0 ? element("span", {}, element("b", {}, count(limit.unavailable)), " unavailable") : null,
      limit.computed ? element("span", {}, element("b", {}, count(limit.paused ? 0 : limit.room)), " free") : null,
      element("span", {}, element("b", {}, count(limit.waiting)), " waiting"),
      limit.gapEnd && Date.parse(limit.gapEnd) > Date.now() ? element("span", { class: "muted" }, "next grant ", when(limit.gapEnd)) : null,
      limit.problem ? element("span", { class: "problem" }, limit.problem) : null));
}

// ---- who holds and who waits ----

function targetOf(claim) {
  const key = `claim/${claim.uid}/${claim.name}`;
  return claim.type === "node" && nodes.has(claim.target)
    ? element("button", { type: "button", class: "link", "data-key": key, onclick: () => page.choose(claim.target) }, claim.target)
    : element("span", { class: "mono" }, claim.type === "node" ? claim.target : `${claim.type} ${claim.target}`);
}

function drawHolder(claim) {
  const node = claim.type === "node" && nodes.get(claim.target);
  const blocked = node && node.draining && node.draining.blocked;
  const doing = claim.phase === "Preparing" || claim.phase === "Expired" ? claim.message : "";
  return element("li", { "data-claim": claim.uid },
    targetOf(claim),
    element("span", { class: `tag ${blocked ? "blocked" : TONES[claim.phase] || ""}` }, blocked ? "drain is blocked" : claim.step || claim.phase || "held"),
    element("span", { class: "muted age" }, claim.since ? since(claim.since) : ""),
    element("span", { class: "words" }, who(claim),
      claim.limits.length > 0 ? element("span", { class: "muted" }, ` under ${claim.limits.join(", ")}`) : element("span", { class: "muted" }, ", no limit concerns it"),
      claim.deadline ? element("span", { class: "muted" }, "; deadline ", when(claim.deadline), claim.atDeadline ? `, then ${claim.atDeadline}` : "") : null,
      doing ? element("span", { class: "why" }, doing) : null));
}

function drawBlocker(claim) {
  const by = claim.blocker;
  if (!by) return [];
  const other = by.target !== claim.target;
  return ["; ", other ? `longest held: ${by.target} by ${who(by)}` : `held by ${who(by)}`, by.since ? element("span", {}, " for ", since(by.since)) : "",
    by.deadline ? element("span", {}, ", deadline ", when(by.deadline)) : ""];
}

function drawWaiting(claim) {
  return element("li", {},
    targetOf(claim),
    element("span", { class: "tag" }, claim.position > 0 ? `place ${claim.position}` : "waits"),
    element("span", { class: "muted age" }, claim.since ? since(claim.since) : ""),
    element("span", { class: "words" }, who(claim), claim.priority ? element("span", { class: "muted" }, ` priority ${claim.priority}`) : null,
      element("span", { class: "why" }, claim.message || claim.reason || "its turn has come"),
      claim.until ? element("span", { class: "muted until" }, "until ", claim.until, claim.next ? element("span", {}, ", ", when(claim.next)) : "", ...drawBlocker(claim)) : null));
}

function drawList(id, claims, all, make) {
  const rows = claims.map(make);
  if (!only && all > claims.length) rows.push(element("li", { class: "muted more" }, `and ${count(all - claims.length)} more: drydock status -o wide`));
  $(id).replaceChildren(...rows);
  $(`${id}-note`).textContent = count(only ? claims.length : all);
  $(`${id}-empty`).hidden = claims.length > 0;
}

export function draw() {
  $("limits-card").hidden = !board;
  if (!board) return;
  if (only && !board.limits.some((limit) => limit.name === only)) only = null;
  const blocked = [...nodes.values()].filter((node) => node.draining && node.draining.blocked).map((node) => node.name);
  const key = JSON.stringify([board, only, nodes.size, blocked]);
  if (key === shown) return;
  shown = key;
  const card = $("limits-card");
  const focused = document.activeElement && card.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const claims = board.claims.filter((claim) => !only || claim.limits.includes(only));
  $("limits-note").textContent = only ? `only ${only}` : board.limits.length > 0 ? count(board.limits.length) : "";
  $("limits").replaceChildren(...board.limits.map(drawLimit));
  $("limits-empty").hidden = board.limits.length > 0;
  drawList("held", claims.filter((claim) => !claim.waits), board.holding, drawHolder);
  drawList("queue", claims.filter((claim) => claim.waits), board.waiting, drawWaiting);
  const again = focused && [...card.querySelectorAll("[data-key]")].find((e) => e.dataset.key === focused);
  if (again) again.focus({ preventScroll: true });
}

// Takes over what the stream says; answers what is worth telling.
export function setBoard(next, quiet) {
  const news = [];
  const before = new Map((board ? board.limits : []).map((limit) => [limit.name, limit.standing]));
  if (!quiet && next) {
    for (const { name, standing } of next.limits) {
      if (before.get(name) !== standing) news.push(before.has(name) ? `limit ${name} is ${standing}` : `limit ${name} is new`);
      before.delete(name);
    }
    for (const name of before.keys()) news.push(`limit ${name} is gone`);
  }
  if (next) next.limits.sort((a, b) => byName(a.name, b.name));
  board = next;
  draw();
  return news;
}

// What is held of a node, and who waits for it.
export const claimsOf = (node) => (board ? board.claims.filter((claim) => claim.type === "node" && claim.target === node) : []);

export function showLimit(name) {
  only = name;
  draw();
  const button = [...$("limits").querySelectorAll("[data-key]")].find((e) => e.dataset.key === `limit/${name}`);
  $("limits-card").scrollIntoView({ block: "start" });
  (button || $("limits-card")).focus({ preventScroll: true });
}

export function showClaim(claim) {
  only = null;
  draw();
  const row = [...$("limits-card").querySelectorAll("[data-claim]")].find((e) => e.dataset.claim === claim.uid);
  (row || $("limits-card")).scrollIntoView({ block: "center" });
  const button = row && row.querySelector("button");
  (button || $("limits-card")).focus({ preventScroll: true });
}

export function focusLimits() {
  if (!board) return;
  $("limits-card").scrollIntoView({ block: "nearest" });
  const first = $("limits").querySelector("button");
  (first || $("limits-card")).focus();
}
