// The rows that the page has, and those of them that the filters let through.

import { parseQuery, type Test } from "./query";
import type { Finding, Row } from "./types";

const rowBytes = 200; // of a row besides its body, about
const slice = 4000; // rows that are looked through at once

/** A Filter says which rows are shown. */
export interface Filter {
  dir: Set<string>;
  kind: Set<string>;
  errors: boolean;
  findings: boolean;
  method: string;
  session: string;
  text: string;
}

/** everything returns the filter that lets all rows through. */
export function everything(): Filter {
  return { dir: new Set("><"), kind: new Set(["request", "answer", "notification", "other"]), errors: false, findings: false, method: "", session: "", text: "" };
}

/** A Change says what is different in a store. */
export interface Change {
  added?: number;
  dropped?: number; // rows that were shown
  refined?: boolean; // the view is another one
}

/** A Store keeps the rows. */
export class Store extends EventTarget {
  limits = { rows: 200_000, bytes: 256 << 20 };
  private rows: (Row | undefined)[] = []; // those before start are forgotten
  private start = 0;
  first = 1; // the number of the row at start
  bytes = 0;
  methods = new Map<string, number>();
  findings: Finding[] = [];
  private view: number[] = []; // the numbers of the rows that are shown
  private viewStart = 0;
  viewed = 0; // the last row that was looked at for the view
  private query: Test | null = null;
  filter = everything();
  paused = false;
  private pausedAt = 0;
  private run = 0; // of the filter
  searching = false;

  clear(): void {
    this.rows = [];
    this.start = 0;
    this.first = 1;
    this.bytes = 0;
    this.methods = new Map();
    this.findings = [];
    this.view = [];
    this.viewStart = 0;
    this.viewed = 0;
    this.query = null;
    this.filter = everything();
    this.paused = false;
    this.pausedAt = 0;
    this.run = 0;
  }

  get last(): number { return this.first + this.rows.length - this.start - 1; }
  get count(): number { return this.rows.length - this.start; }
  get shown(): number { return this.view.length - this.viewStart; }
  get filtered(): boolean {
    const f = this.filter;
    return f.dir.size < 2 || f.kind.size < 4 || f.errors || f.findings || f.method !== "" || f.session !== "" || f.text !== "";
  }

  // row returns a row by its number, or undefined.
  row(seq: number): Row | undefined { return seq < this.first ? undefined : this.rows[this.start + seq - this.first]; }

  // at returns the number of the i-th row that is shown, or 0.
  at(i: number): number { return this.view[this.viewStart + i] ?? 0; }

  // indexOf returns where a row is shown, or the place before which it would be.
  indexOf(seq: number): number {
    let low = this.viewStart, high = this.view.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.view[mid]! < seq) low = mid + 1;
      else high = mid;
    }
    return low - this.viewStart;
  }

  // add takes rows in.
  add(list: Row[]): void {
    let anew = false;
    const touched: Row[] = []; // older rows of which something else is known now
    for (const row of list) {
      if (row.seq <= this.last) continue;
      if (row.seq > this.last + 1) {
        this.gap(row.seq);
        anew = true;
      }
      this.rows.push(row);
      this.bytes += rowBytes + 2 * (row.body || "").length;
      if (row.method) this.methods.set(row.method, (this.methods.get(row.method) || 0) + 1);
      const request = row.asked && this.row(row.asked);
      if (request) {
        request.answer = row.seq;
        request.took = row.took;
        request.failed = row.type === "error";
        touched.push(request);
      }
      for (const f of row.findings || []) {
        const target = this.row(f.seq) || row;
        (target.marks ||= []).push(f);
        f.seq = target.seq;
        this.findings.push(f);
        touched.push(target);
      }
    }
    const dropped = this.forget();
    if (this.filter.errors || this.filter.findings) this.join(touched);
    if (!this.paused) this.look();
    this.changed({added: list.length, dropped, refined: anew});
  }

  // gap starts anew behind rows that were forgotten by the server before they
  // came here.
  private gap(seq: number): void {
    const {filter, limits, paused, pausedAt} = this;
    this.clear();
    Object.assign(this, {filter, limits, paused, pausedAt, first: seq, viewed: seq - 1});
    this.query = parseQuery(filter.text);
  }

  // forget drops the oldest rows that are beyond the limits, and returns how many
  // of them were shown.
  private forget(): number {
    while (this.count > 1 && (this.count > this.limits.rows || this.bytes > this.limits.bytes)) {
      const row = this.rows[this.start]!;
      this.rows[this.start++] = undefined;
      this.first++;
      this.bytes -= rowBytes + 2 * (row.body ?? "").length;
    }
    if (this.start > 20_000) {
      this.rows.splice(0, this.start);
      this.start = 0;
    }
    const before = this.viewStart;
    while (this.viewStart < this.view.length && this.view[this.viewStart]! < this.first) this.viewStart++;
    const dropped = this.viewStart - before;
    if (this.viewStart > 20_000) {
      this.view.splice(0, this.viewStart);
      this.viewStart = 0;
    }
    if (this.findings.length && this.findings[0]!.seq < this.first) this.findings = this.findings.filter((f) => f.seq >= this.first);
    return dropped;
  }

  // look takes new rows into the view, unless a search goes through older ones.
  private look(): void {
    if (this.searching) return;
    for (let seq = Math.max(this.viewed + 1, this.first); seq <= this.last; seq++) {
      if (this.passes(this.row(seq)!)) this.view.push(seq);
      this.viewed = seq;
    }
  }

  // join takes rows into the view that pass only now.
  private join(rows: Row[]): void {
    for (const row of rows) {
      if (row.seq > this.viewed || row.seq < this.first || !this.passes(row)) continue;
      const i = this.indexOf(row.seq);
      if (this.at(i) !== row.seq) this.view.splice(this.viewStart + i, 0, row.seq);
    }
  }

  // refine changes the filter and goes through all rows again, in slices that
  // leave the page time to answer.
  async refine(change: Partial<Filter>): Promise<void> {
    Object.assign(this.filter, change);
    this.query = parseQuery(this.filter.text);
    const run = ++this.run;
    this.searching = true;
    const view: number[] = [];
    const until = () => this.paused ? this.pausedAt : this.last;
    let seq = this.first;
    while (seq <= until()) {
      seq = Math.max(seq, this.first);
      const end = Math.min(seq + slice, until() + 1);
      for (; seq < end; seq++) if (this.passes(this.row(seq)!)) view.push(seq);
      if (seq <= until() && this.query) {
        await new Promise((next) => setTimeout(next));
        if (run !== this.run) return;
      }
    }
    this.searching = false;
    this.viewed = until();
    this.view = view;
    this.viewStart = 0;
    this.changed({refined: true});
  }

  pause(on: boolean): void {
    this.paused = on;
    this.pausedAt = this.last;
    if (!on) this.look();
    this.changed({});
  }

  passes(row: Row): boolean {
    const f = this.filter;
    if (row.dir && !f.dir.has(row.dir)) return false;
    if (!f.kind.has(kindOf(row))) return false;
    if (f.errors && !isError(row)) return false;
    if (f.findings && !row.marks) return false;
    if (f.method && row.method !== f.method) return false;
    if (f.session && row.session !== f.session) return false;
    return !this.query || this.query(row);
  }

  private changed(detail: Change): void { this.dispatchEvent(new CustomEvent("change", {detail})); }
}

// kindOf returns which of the kinds of the filter a row is of.
export function kindOf(row: Row): string {
  switch (row.type) {
    case "request": case "notification": case "answer": return row.type;
    case "error": return "answer";
    default: return "other";
  }
}

// isError reports whether something failed there.
export function isError(row: Row): boolean {
  return row.type === "error" || row.failed === true || row.type === "odd" || row.type === "text" || row.type === "event" && row.method === "lost";
}
