// Drains: what blocks one, in words that lead to the pod, its budget, the request and the limits.
import { $, nodes, page, byName, element, since } from "./shared.js";
import { claimsOf, showClaim, showLimit } from "./limits.js";

let shown = "";

export const isDraining = (node) => Boolean(node.draining);
export const isBlocked = (node) => Boolean(node.draining && node.draining.blocked);

// The browser cannot show a pod; a command that does is one click away.
function command(text, kind, namespace, name) {
  const line = `kubectl -n ${namespace} describe ${kind} ${name}`;
  const button = element("button", { type: "button", class: "link", title: `Copy: ${line}`, "data-key": `${kind}/${namespace}/${name}`,
    onclick: async () => {
      const note = $("copied");
      try {
        await navigator.clipboard.writeText(line);
        note.textContent = `Copied: ${line}`;
      } catch {
        note.textContent = line; // no clipboard here: it can be selected
      }
      note.hidden = false;
    } }, text);
  return button;
}

// "pod shop/web-0: its budget allows none; budget web; for 5m"
export function drainWords(draining) {
  const { namespace, pod, budget, reason, left } = draining;
  const parts = [`${left} ${left === 1 ? "pod is" : "pods are"} left`];
  if (pod) {
    parts.push("; pod ", command(`${namespace}/${pod}`, "pod", namespace, pod), reason ? `: ${reason}` : "");
    if (budget) parts.push("; budget ", command(`${namespace}/${budget}`, "pdb", namespace, budget));
    if (draining.since) parts.push("; waiting for ", since(draining.since));
  }
  return parts;
}

// Who the drain is for: a request, or a profile.
export function drainOwners(node) {
  const claims = claimsOf(node.name).filter((claim) => !claim.waits);
  const parts = [];
  for (const claim of claims) {
    const profile = claim.name.startsWith("profile/");
    parts.push(parts.length > 0 ? ", " : "for ", profile ? `profile ${claim.name.slice(8)}`
      : element("span", {}, "request ", element("button", { type: "button", class: "link", "data-key": `drain/${claim.uid}`, onclick: () => showClaim(claim) }, claim.name), claim.client ? ` of ${claim.client}` : ""));
    claim.limits.forEach((limit, i) => parts.push(i > 0 ? ", " : " under limit ",
      element("button", { type: "button", class: "link", "data-key": `drain/${claim.uid}/${limit}`, onclick: () => showLimit(limit) }, limit)));
  }
  if (parts.length > 0) return parts;
  const busy = node.profiles.filter((p) => p.state && p.state !== "operational").map((p) => p.name);
  return busy.length > 0 ? [`for profile ${busy.join(", ")}`] : [];
}

function drawBlocked(node) {
  return element("li", {},
    element("button", { type: "button", class: "link", "data-key": `blocked/${node.name}`, onclick: () => page.choose(node.name) }, node.name),
    element("span", { class: "words" }, ...drainWords(node.draining)),
    element("span", { class: "muted owner" }, ...drainOwners(node)));
}

export function drawDrains() {
  const blocked = [...nodes.values()].filter(isBlocked).sort((a, b) => byName(a.name, b.name));
  const key = JSON.stringify(blocked.map((node) => [node.name, node.draining, node.profiles, claimsOf(node.name)]));
  $("blocked-card").hidden = blocked.length === 0;
  if (key === shown) return;
  shown = key;
  const card = $("blocked-card");
  const focused = document.activeElement && card.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  $("blocked-note").textContent = blocked.length === 1 ? "one node waits until somebody sees to it" : `${blocked.length} nodes wait until somebody sees to them`;
  $("blocked").replaceChildren(...blocked.map(drawBlocked));
  $("copied").hidden = true;
  const again = focused && [...card.querySelectorAll("[data-key]")].find((e) => e.dataset.key === focused);
  if (again) again.focus({ preventScroll: true });
}
