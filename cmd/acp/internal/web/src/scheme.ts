// Whether the page is dark or light: as the system is, or as the user has chosen for this browser.

import { signal } from "@preact/signals";

export type Scheme = "system" | "light" | "dark";

const kept = "acp.scheme", dark = "(prefers-color-scheme: dark)";
const grounds = { light: "#f5f6f9", dark: "#1c202b" }; // around the page, on phones

export const scheme = signal<Scheme>(read());

function read(): Scheme {
  try {
    const s = localStorage.getItem(kept);
    return s === "light" || s === "dark" ? s : "system";
  } catch {
    return "system";
  }
}

// choose changes the scheme, and keeps it.
export function choose(s: Scheme) {
  scheme.value = s;
  try {
    if (s === "system") localStorage.removeItem(kept);
    else localStorage.setItem(kept, s);
  } catch {
    // There is no storage.
  }
  apply();
}

const rules: CSSMediaRule[] = []; // those for the dark scheme

function collect(list: CSSRuleList) {
  for (const rule of list) {
    if (rule instanceof CSSMediaRule && rule.media.mediaText === dark) rules.push(rule);
    else if (rule instanceof CSSGroupingRule) collect(rule.cssRules);
  }
}

// apply makes the style sheets follow what was chosen.
export function apply() {
  const s = scheme.value, root = document.documentElement;
  if (rules.length === 0) {
    for (const sheet of document.styleSheets) collect(sheet.cssRules);
    for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) meta.dataset.own = meta.content;
  }
  for (const rule of rules) rule.media.mediaText = s === "system" ? dark : s === "dark" ? "all" : "not all";
  root.style.colorScheme = s === "system" ? "" : s;
  if (s === "system") delete root.dataset.scheme;
  else root.dataset.scheme = s;
  for (const meta of document.querySelectorAll<HTMLMetaElement>('meta[name="theme-color"]')) meta.content = s === "system" ? (meta.dataset.own ?? meta.content) : grounds[s];
}
