// One node with its profiles, transitions and checks, as `drydock explain` prints them, kept up to date.
import { $, nodes, page, element, tag, since, when, setClock, activityWords } from "./shared.js";
import { drainOwners, drainWords } from "./drains.js";

const POLL = 2000; // where the replica does not lead, and has no stream to offer
let name = null;
let report = null;
let problem = "";
let stream = null;
let timer = 0;
let shown = "";
let said = "";
let wasThere = false; // the node that is shown has been there
let bring = false; // into view, once there is something to see
const toggled = new Map(); // what a reader has opened or closed

// ---- getting it ----

function stop() {
  if (stream) stream.close();
  stream = null;
  clearTimeout(timer);
}

async function poll(asked) {
  try {
    const reply = await fetch(`/api/v1/explain?node=${encodeURIComponent(asked)}`, { cache: "no-store" });
    const body = await reply.json();
    if (asked !== name) return;
    if (reply.ok) take(body);
    else { problem = reply.status === 404 ? absence(asked) : body.error || `the server answered ${reply.status}`; drawNode(); }
  } catch (error) {
    if (asked !== name) return;
    problem = `cannot be asked: ${error.message}`;
    drawNode();
  }
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(poll, POLL, asked);
}

function listen() {
  stop();
  if (!name || document.hidden) return;
  const asked = name;
  stream = new EventSource(`/api/v1/events?node=${encodeURIComponent(asked)}`);
  stream.addEventListener("explain", (event) => take(JSON.parse(event.data)));
  stream.addEventListener("gone", () => { report = null; problem = absence(asked); drawNode(); });
  stream.addEventListener("error", () => {
    // A lost connection comes back by itself; a refused one never does.
    if (stream && stream.readyState === EventSource.CLOSED) { stop(); poll(asked); }
  });
}

// A name that was never there is a mistake; one that was is news.
function absence(asked) {
  return wasThere ? `${asked} is gone.` : `There is no node ${asked} in this cluster. It has been deleted, or the name is not right.`;
}

function take(next) {
  report = next;
  wasThere = true;
  problem = "";
  setClock(next.now);
  drawNode();
}

// On a narrow screen the node is shown below what was tapped.
function bringIntoView() {
  if (!bring) return;
  $("node-card").scrollIntoView({ block: "start" });
  bring = !report;
}

export function showNode(next, tapped) {
  bring = Boolean(next && tapped);
  if (next === name) { bringIntoView(); return; }
  name = next;
  wasThere = nodes.has(next);
  report = null;
  problem = "";
  toggled.clear();
  listen();
  drawNode();
}

// ---- drawing it ----

const VERDICTS = { pass: "pass", fail: "fail", error: "error", pending: "asking" };

function fold(key, open, attributes, ...children) {
  const isOpen = toggled.has(key) ? toggled.get(key) : open;
  const e = element("details", { ...attributes, open: isOpen, "data-fold": key }, ...children);
  e.addEventListener("toggle", () => { if (e.open !== isOpen || toggled.has(key)) toggled.set(key, e.open); });
  return e;
}

// What a check means for its transition: one that is negated helps by failing.
const meaning = (check) => (!check.negated ? check.answer : { pass: "fail", fail: "pass" }[check.answer] || check.answer);

// Names of checks are marked with their answers; the rest of the expression stays as written.
function expression(transition) {
  const answers = new Map(transition.checks.map((check) => [check.name, check]));
  return element("code", { class: "expression" }, ...transition.expression.split(/([^\s()!&|]+)/).map((part) => {
    const check = answers.get(part);
    return check ? element("span", { class: `in-expression v-${meaning(check)}${check.holds ? " holds" : ""}` }, part) : part;
  }));
}

function drawCheck(check, key) {
  const words = check.error || check.reason;
  const info = Object.keys(check.info).length > 0;
  return element("li", { class: check.holds ? "check holds" : "check" },
    element("span", { class: `verdict v-${meaning(check)}` }, VERDICTS[meaning(check)] || check.answer),
    element("div", { class: "words" },
      element("p", {}, element("b", {}, check.negated ? `!${check.name}` : check.name), " ", element("span", { class: "muted" }, check.type),
        check.holds ? element("span", { class: "sr" }, ", stands in the way") : null),
      words ? element("p", {}, words) : null,
      check.next ? element("p", { class: "muted" }, "could change ", when(check.next)) : null,
      info ? fold(key, false, { class: "info" }, element("summary", {}, "details"), element("pre", { tabindex: "0" }, JSON.stringify(check.info, null, 2))) : null));
}

function drawTransition(transition, key) {
  const answer = transition.passed ? "yes" : transition.error ? "cannot be told" : transition.chainPassed ? "not yet" : "no";
  const kind = transition.passed ? "pass" : transition.error ? "error" : transition.chainPassed ? "pending" : "fail";
  return fold(key, true, { class: "transition" },
    element("summary", {}, element("span", { class: `verdict v-${kind}` }, answer), ` to ${transition.target}`,
      transition.next && !transition.passed ? element("span", { class: "muted" }, ", could change ", when(transition.next)) : null),
    transition.expression ? expression(transition) : null,
    transition.error ? element("p", { class: "bad" }, transition.error) : null,
    transition.held ? element("p", { class: "held" }, transition.held) : null,
    element("ul", { class: "checks" }, ...transition.checks.map((check, i) => drawCheck(check, `${key}/${i}`))));
}

function drawProfile(profile) {
  const moves = profile.next !== profile.state;
  return element("section", { class: "tree", "aria-label": `profile ${profile.name}` },
    element("h4", {}, profile.name, " ", tag(profile.state),
      profile.since ? element("span", { class: "muted" }, " for ", since(profile.since)) : null,
      moves ? element("span", { class: "muted" }, ` goes to ${profile.next}`) : null),
    profile.error ? element("p", { class: "bad" }, profile.error) : null,
    profile.doing && !(report && report.draining && profile.doing === report.drain) ? element("p", { class: "held" }, profile.doing) : null,
    ...profile.transitions.map((transition, i) => drawTransition(transition, `${profile.name}/${i}`)),
    profile.transitions.length === 0 && !profile.error && !profile.doing ? element("p", { class: "muted" }, "There is no transition out of this state.") : null);
}

function facts(node) {
  const parts = [tag(node.state)];
  parts.push(element("span", { class: node.ready ? "tag" : "tag down" }, node.ready ? "ready" : "not ready"));
  if (node.cordoned) parts.push(element("span", { class: "tag" }, "cordoned"));
  if (node.deleting) parts.push(element("span", { class: "tag down" }, "being deleted"));
  return element("p", { class: "facts" }, ...parts);
}

function drawLabels(node) {
  const labels = Object.entries(node.labels).sort();
  return fold("labels", false, { class: "info" }, element("summary", {}, `${labels.length} labels`),
    ...labels.map(([key, value]) => element("button", { type: "button", class: "label", title: "Filter by this label",
      onclick: () => page.filter(`${key}=${value}`) }, `${key}=${value}`)));
}

// A request for the node, or a reservation of it.
function drawClaim(claim) {
  return element("p", { class: "held" }, claim.holds ? "held by " : "asked for by ", claim.who, claim.since ? element("span", {}, " for ", since(claim.since)) : "",
    claim.words ? `: ${claim.words}` : "", claim.until ? `; until ${claim.until}` : "",
    claim.deadline ? element("span", {}, "; deadline ", when(claim.deadline), claim.atDeadline ? `, then ${claim.atDeadline}` : "") : "", claim.limits ? `; under ${claim.limits}` : "");
}

function drawDrain(node, draining) {
  const owners = node ? drainOwners(node) : [];
  return element("p", { class: draining.blocked ? "bad" : "held" }, element("b", {}, draining.blocked ? "The drain is blocked: " : "draining: "), ...drainWords(draining),
    ...(owners.length > 0 ? ["; ", ...owners] : []));
}

function say(text) {
  if (said !== text) $("node-said").textContent = said = text;
}

export function drawNode() {
  const box = $("node");
  const node = name && nodes.get(name);
  $("node-live").textContent = report && stream ? "live" : "";
  // `now` alone is no change: elements that stay can be read and clicked.
  const key = JSON.stringify([name, node, report && { ...report, now: 0 }, problem, page.loaded]);
  if (key === shown) return;
  shown = key;
  if (!name || (!node && !report)) {
    box.replaceChildren(element("p", { class: name && problem ? "bad" : "muted" }, name ? problem || (page.loaded ? absence(name) : `${name} is asked for…`) : "Choose a node in the fleet or the list to see what its profiles wait for."));
    return;
  }
  const active = document.activeElement && box.contains(document.activeElement) ? document.activeElement.closest("[data-fold]") : null;
  const now = { ...node, ...(report ? { state: report.state, ready: report.ready, cordoned: report.cordoned, deleting: report.deleting } : {}) };
  const parts = [element("h3", { class: "name" }, name), facts(now)];
  if (problem) parts.push(element("p", { class: "bad" }, problem));
  if (report) {
    if (report.error) parts.push(element("p", { class: "bad" }, report.error));
    if (report.waits) parts.push(element("p", { class: "held" }, `waits: ${report.waits}`));
    if (report.draining) parts.push(drawDrain(node, report.draining));
    else if (report.drain && !report.profiles.some((p) => p.doing === report.drain)) parts.push(element("p", { class: "held" }, `drain: ${report.drain}`));
    parts.push(...(report.claims || []).map(drawClaim));
    parts.push(...(report.operations || []).filter((op) => op.state !== "done" && op.state !== "skipped").map((op) =>
      element("p", { class: op.state === "failed" ? "bad" : "held" }, `${op.maintenance}: ${op.words}`, op.next ? element("span", {}, "; next ", when(op.next)) : "")));
    parts.push(...(report.integrations || []).map((a) => element("p", { class: "held integration" }, `${a.name}: `, ...activityWords(a))));
    parts.push(...report.profiles.map(drawProfile));
  }
  if (node) parts.push(drawLabels(node));
  box.replaceChildren(...parts);
  if (active) {
    const again = [...box.querySelectorAll("[data-fold]")].find((e) => e.dataset.fold === active.dataset.fold);
    if (again) again.querySelector("summary").focus({ preventScroll: true });
  }
  bringIntoView();
  const gists = report ? report.profiles.map((p) => `${p.name} ${p.state}`).join(", ") : now.state;
  say(`${name}: ${gists}`);
}

document.addEventListener("visibilitychange", listen);
