// The list of frames.

import { byId, el, on, setText } from "./dom";
import { List } from "./list";
import { at, number, size, took, seenCode } from "../parts/text";
import { type Change, isError, type Store } from "./store";
import type { Finding, Row } from "./types";

type Cells = [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];

const rowHeight = 24;
const levels: Record<string, number> = {must: 3, should: 2, may: 1, quirk: 1};

/** How a row is chosen. */
interface Choice {
  by?: "" | "mouse";
  middle?: boolean; // the row is put into the middle if it is not in sight
}

/** A Timeline is the list of frames. */
export class Timeline extends EventTarget {
  selected = 0;
  following = true;
  private moved = false;
  private grid = byId("grid");
  list: List;

  constructor(private store: Store) {
    super();
    this.list = new List(this.grid, byId("rows"), {
      height: rowHeight,
      make: () => this.make(),
      fill: (node, i) => this.fill(node, i),
      scrolled: () => this.scrolled(),
    });
    byId("rows").addEventListener("mousedown", (e) => {
      const row = (e.target as Element).closest<HTMLElement>(".row");
      if (row && e.button === 0) this.select(Number(row.dataset.seq), {by: "mouse"});
    });
    byId("rows").addEventListener("dblclick", () => this.dispatchEvent(new Event("open")));
    // What people do with the wheel or the bar ends following, unless they go to
    // the end.
    for (const kind of ["wheel", "touchmove", "pointerdown"]) {
      this.grid.addEventListener(kind, () => { this.moved = true; }, {passive: true});
    }
    byId("newer").addEventListener("click", () => this.follow(true));
    on<Change>(store, "change", (change) => this.update(change));
  }

  private make(): HTMLElement {
    const cell = (name: string) => el("span." + name, {role: "gridcell"});
    const node = el("div.row", {role: "row"}, cell("time"), cell("arrow"), cell("method"), cell("id"), cell("summary"), cell("latency.num"), cell("bytes.num"));
    return node;
  }

  private fill(node: HTMLElement, i: number): void {
    const seq = this.store.at(i);
    const row = this.store.row(seq);
    if (!row) return;
    const [time, arrow, method, id, summary, latency, bytes] = [...node.children] as Cells;
    const selected = seq === this.selected;
    const answer = row.type === "answer" || row.type === "error";
    const current = this.store.row(this.selected);
    node.dataset.seq = String(seq);
    node.id = "row-" + seq;
    node.className = "row " + row.type + (row.dir === ">" ? " out" : row.dir === "<" ? " in" : "") +
      (selected ? " selected" : "") + (isError(row) && row.type !== "request" ? " bad" : "") +
      (current && (current.answer === seq || current.asked === seq) ? " joined" : "") +
      (row.marks ? " marked level-" + worst(row.marks) : "") + (i % 2 ? " odd-row" : "");
    node.setAttribute("aria-rowindex", String(i + 1));
    node.setAttribute("aria-selected", String(selected));
    setText(time, at(row.at || 0));
    setText(arrow, row.dir === ">" ? "→" : row.dir === "<" ? "←" : row.type === "stderr" ? "!" : "•");
    arrow.setAttribute("aria-label", row.dir === ">" ? "to the agent" : row.dir === "<" ? "to the client" : row.type);
    setText(method, label(row));
    method.title = seenCode(row.method || "");
    setText(id, answer || row.type === "request" ? seenCode(row.id || "") : "");
    setText(summary, seenCode(row.summary || ""));
    setText(latency, row.took !== undefined ? took(row.took) : row.type === "request" && row.seq > 0 && !row.answer ? "…" : "");
    latency.classList.toggle("slow", (row.took ?? 0) >= 1e9);
    setText(bytes, row.size !== undefined ? size(row.size) : "");
  }

  private update({ refined, dropped }: Change): void {
    const store = this.store;
    // The row that is chosen, or where it would be, stays where it is.
    const keep = refined && !this.following && store.row(this.selected) ? store.indexOf(this.selected) : -1;
    this.list.resize(store.shown);
    this.grid.setAttribute("aria-rowcount", String(store.shown));
    if (this.following && !store.paused) this.list.toEnd();
    else if (keep >= 0) this.list.show(Math.min(keep, store.shown - 1), true);
    else if (dropped) this.list.shift(dropped);
    this.newer();
    this.active();
  }

  // newer tells how many rows are below what is in sight.
  private newer(): void {
    const store = this.store, button = byId("newer");
    const n = store.paused ? store.last - store.viewed : 0;
    const below = Math.max(0, store.shown - Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / rowHeight));
    const hidden = this.following && !store.paused || store.shown === 0;
    if (button.hidden !== hidden) button.hidden = hidden;
    setText(button, store.paused ? "paused · " + number(n) + " new · go on" : below > 0 ? "↓ " + number(below) + " below · follow" : "↓ follow");
  }

  private scrolled(): void {
    if (this.moved) {
      this.moved = false;
      if (this.following !== this.list.atEnd) this.follow(this.list.atEnd);
    }
    this.newer();
    this.active();
  }

  // active names the chosen row for assistive software, while it is there.
  private active(): void {
    if (byId("row-" + this.selected)) this.grid.setAttribute("aria-activedescendant", "row-" + this.selected);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  follow(on: boolean): void {
    this.following = on;
    if (on) {
      if (this.store.paused) this.dispatchEvent(new Event("resume"));
      this.list.toEnd();
    }
    this.newer();
    this.dispatchEvent(new Event("follow"));
  }

  // select chooses a row and shows it; 0 chooses none.
  select(seq: number, { by = "", middle = false }: Choice = {}): void {
    this.selected = this.store.row(seq) ? seq : 0;
    if (this.selected) {
      const i = this.store.indexOf(seq);
      if (by !== "mouse") {
        const last = i >= this.store.shown - 1 && !this.store.filtered;
        if (this.following && !last) this.follow(false);
        this.list.show(i, middle);
      } else if (this.following && i < this.store.shown - 1) this.follow(false);
    }
    this.list.stale = true;
    this.list.draw();
    this.active();
    this.dispatchEvent(new Event("select"));
  }

  // move goes from the chosen row by a number of rows.
  move(by: number): void {
    const store = this.store;
    if (store.shown === 0) return;
    let i = store.indexOf(this.selected);
    if (!this.selected) i = by > 0 ? Math.floor(this.grid.scrollTop / rowHeight) - 1 : Math.floor((this.grid.scrollTop + this.grid.clientHeight) / rowHeight);
    else if (store.at(i) !== this.selected && by > 0) i--;
    this.select(store.at(Math.max(0, Math.min(store.shown - 1, i + by))));
  }

  toFirst(): void { if (this.store.shown) this.select(this.store.at(0)); }
  toLast(): void { if (this.store.shown) this.select(this.store.at(this.store.shown - 1)); }
}

// label is what the column of methods says.
export function label(row: Row): string {
  switch (row.type) {
    case "stderr": return "stderr";
    case "text": return "not JSON";
    case "odd": return "no message";
    case "event": return seenCode(row.method || "event");
    case "answer": case "error": return seenCode(row.method || "answer to nothing known");
    default: return seenCode(row.update || row.method || "");
  }
}

// worst is the strictest level of some findings.
export function worst(findings: Finding[]): string {
  return findings.reduce((a, f) => (levels[f.level ?? ""] ?? 0) > (levels[a] ?? 0) ? f.level! : a, findings[0]?.level || "may");
}
