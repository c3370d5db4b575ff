// The violations of rules, by rule.

import { byId, el } from "./dom";
import { where, word } from "./detail";
import { at, number, plural, seenCode } from "../parts/text";
import type { Store } from "./store";
import { label } from "./timeline";
import type { Finding } from "./types";

const order = ["must", "should", "may", "quirk"];
const most = 50; // frames that are named for a rule, unless asked

/** Findings is the list of violations. */
export class Findings extends EventTarget {
  private node = byId("findings");
  private all = new Set<string>(); // rules of which every frame is listed
  private had = "";

  constructor(private store: Store) {
    super();
  }

  // show lists what was found, if it has changed.
  show(): void {
    const list = this.store.findings;
    const mark = list.length + "/" + this.store.first + "/" + [...this.all].join();
    if (this.had === mark || this.node.hidden) return;
    this.had = mark;
    if (list.length === 0) {
      this.node.replaceChildren(el("div.empty", null, el("h2", null, "No violations"), el("p", null, "Every frame is checked against the rules of the protocol as it passes. Nothing was wrong so far.")));
      return;
    }
    const rules = new Map<string, Finding[]>();
    for (const f of list) {
      const rule = f.rule ?? "", found = rules.get(rule);
      if (found) found.push(f);
      else rules.set(rule, [f]);
    }
    const groups = [...rules].sort(([a, x], [b, y]) => order.indexOf(x[0]!.level ?? "") - order.indexOf(y[0]!.level ?? "") || (a < b ? -1 : 1));
    const focused = (document.activeElement as HTMLElement | null)?.dataset?.key;
    this.node.replaceChildren(
      el("h2.unseen", null, plural(list.length, "violation")),
      ...groups.map(([rule, found]) => this.group(rule, found)));
    if (focused) [...this.node.querySelectorAll<HTMLElement>("[data-key]")].find((b) => b.dataset.key === focused)?.focus();
  }

  private group(rule: string, found: Finding[]): HTMLElement {
    const f = found[0]!;
    const some = this.all.has(rule) ? found.slice(0, 2000) : found.slice(0, most);
    const items = some.map((x) => {
      const row = this.store.row(x.seq);
      return el("li", null, el("button.go", {"data-key": rule + " " + x.seq, onclick: () => this.dispatchEvent(new CustomEvent("go", {detail: x.seq}))},
        el("span.number", null, "#" + x.seq), el("span.time", null, row ? at(row.at || 0) : ""), el("span.method", null, row ? label(row) : ""),
        el("span.why", null, seenCode(x.why || "")), where(x)));
    });
    const rest = found.length - some.length;
    return el("section.group.level-" + word(f.level), {"aria-label": rule},
      el("header", null, el("span.badge", null, seenCode(f.level || "rule")), el("h3", null, seenCode(rule || "")), el("span.count", null, number(found.length)),
        el("p", null, seenCode(f.text || ""), f.cites ? el("span.cites", null, " " + seenCode(f.cites)) : null)),
      el("ol", null, ...items),
      rest > 0 ? el("button.more", {onclick: () => { this.all.add(rule); this.show(); }}, number(rest) + " more") : null);
  }
}
