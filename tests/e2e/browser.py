"""browser: headless Chromium, and what is asked of every page for the sake of those who cannot see or click."""

import json
import os

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from backend import ROOT
from wait import wait_for

SHOTS = os.path.join(ROOT, "build", "screenshots")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
         "--force-prefers-reduced-motion", "--hide-scrollbars")

# Answers a list of sentences about what is wrong; none is good.
INSPECT = r"""
const wrong = [];
const name = (e) => `<${e.tagName.toLowerCase()}${e.id ? " #" + e.id : ""}${e.className ? " ." + e.className : ""}>`;
const shown = (e) => e.getClientRects().length > 0 && getComputedStyle(e).visibility === "visible";
const text = (id) => (document.getElementById(id) || { textContent: "" }).textContent.trim();

if (!document.documentElement.lang) wrong.push("the page has no language");
if (!document.title) wrong.push("the page has no title");
if (document.querySelectorAll("h1").length !== 1) wrong.push("the page has not one h1");
if (document.querySelectorAll("main").length !== 1) wrong.push("the page has not one main");

let level = 1;
for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
  if (h.closest("[aria-hidden=true]") || !shown(h)) continue;
  const next = Number(h.tagName[1]);
  if (next > level + 1) wrong.push(`${name(h)} "${h.textContent}" skips a level of headings`);
  level = next;
}

const ids = new Map();
for (const e of document.querySelectorAll("[id]")) {
  if (ids.has(e.id)) wrong.push(`two elements have the id ${e.id}`);
  ids.set(e.id, e);
}
for (const attribute of ["aria-labelledby", "aria-describedby", "aria-activedescendant", "aria-controls", "for"]) {
  for (const e of document.querySelectorAll(`[${attribute}]`)) {
    for (const id of e.getAttribute(attribute).split(/\s+/)) if (!ids.has(id)) wrong.push(`${name(e)} refers to ${id}, which is not there`);
  }
}

const accessible = (e) => e.getAttribute("aria-label") || (e.getAttribute("aria-labelledby") || "").split(/\s+/).map(text).join(" ").trim() ||
  (e.labels && [...e.labels].map((l) => l.textContent.trim()).join(" ")) || e.textContent.trim() || e.title || (e.querySelector("img") || {}).alt;
for (const e of document.querySelectorAll("a[href], button, input, select, textarea, summary, [role=option], [role=listbox], [role=group], section, [tabindex='0']")) {
  if (shown(e) && !accessible(e)) wrong.push(`${name(e)} has no name`);
}
for (const e of document.querySelectorAll("img:not([alt])")) wrong.push(`${name(e)} has no alternative`);
for (const e of document.querySelectorAll("[role=option]")) {
  if (!e.closest("[role=listbox]")) wrong.push(`${name(e)} is an option of nothing`);
  if (!e.hasAttribute("aria-selected")) wrong.push(`${name(e)} does not tell whether it is selected`);
}
for (const box of document.querySelectorAll("[role=listbox]")) {
  const walk = (e) => {
    for (const child of e.children) {
      const role = child.getAttribute("role");
      if (child.getAttribute("aria-hidden") === "true" || role === "option") continue;
      if (role !== "group" && role !== "presentation") wrong.push(`${name(child)} is neither option nor group of a listbox`);
      walk(child);
    }
  };
  walk(box);
}
for (const e of document.querySelectorAll("[tabindex]")) if (e.tabIndex > 0) wrong.push(`${name(e)} jumps the queue of the Tab key`);
for (const e of document.querySelectorAll("[onclick]:not(button, a)")) wrong.push(`${name(e)} can only be clicked`);

// WCAG 1.4.3: text against what is behind it.
const numbers = (color) => { const m = color.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
const light = (rgb) => { const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = (e) => {
  const layers = [];
  for (let at = e; at; at = at.parentElement) {
    const color = numbers(getComputedStyle(at).backgroundColor);
    if (color[3] > 0) layers.push(color);
    if (color[3] === 1) break;
  }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]);
};
let looked = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const e = node.parentElement;
  if (!node.textContent.trim() || !shown(e) || e.closest(".sr, .skip, .dim, noscript, script")) continue;
  const style = getComputedStyle(e);
  const behind = ground(e);
  const front = over(numbers(style.color), behind);
  const [a, b] = [light(front), light(behind)].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  looked++;
  if (ratio < (large ? 3 : 4.5)) wrong.push(`${name(e)} "${node.textContent.trim().slice(0, 30)}" has contrast ${ratio.toFixed(2)}`);
}
if (looked < 20) wrong.push(`only ${looked} texts were found on the page`);
return [...new Set(wrong)];
"""

FOCUS = """
const e = document.activeElement;
if (!e || e === document.body) return null;
const box = e.getBoundingClientRect();
const style = getComputedStyle(e);
return { id: e.id, tag: e.tagName, name: e.dataset.name || "", words: (e.getAttribute("aria-label") || e.textContent).trim().slice(0, 40),
  visible: box.width > 0 && box.height > 0, ring: style.outlineStyle !== "none" || style.boxShadow !== "none" };
"""


class Browser:
    """One window; used as a context manager."""

    def __init__(self, width=1440, height=1000):
        options = webdriver.ChromeOptions()
        for flag in (*FLAGS, f"--window-size={width},{height}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # Without a browser this fails, and the test with it.
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        self.driver.set_script_timeout(120)
        os.makedirs(SHOTS, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def open(self, port, path="/", dark=False):
        self.scheme(dark)
        self.driver.get("about:blank")
        self.complaints()  # of the page before, whose server may be gone
        self.driver.get(f"http://127.0.0.1:{port}{path}")
        self.run("localStorage.clear()")
        wait_for(lambda: self.text("#link") == "live", what="the page is live")

    def scheme(self, dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return e && !e.hidden ? e.textContent.trim() : null", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())", selector)

    def count(self, selector):
        return self.run("return document.querySelectorAll(arguments[0]).length", selector)

    def press(self, *keys):
        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def focus(self):
        return self.run(FOCUS)

    def shoot(self, name):
        """The whole page, as build/screenshots/NAME.png."""
        width, height = self.run("return [innerWidth, Math.min(3000, document.documentElement.scrollHeight)]")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        path = os.path.join(SHOTS, name + ".png")
        assert self.driver.save_screenshot(path)
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        assert os.path.getsize(path) > 10000

    def inspect(self):
        """Asserts what every view owes to everybody."""
        wrong = self.run(INSPECT)
        assert not wrong, "\n".join(wrong)

    def complaints(self):
        """What the console says is wrong."""
        return [json.dumps(entry) for entry in self.driver.get_log("browser")
                if entry["level"] in ("SEVERE", "WARNING")]
