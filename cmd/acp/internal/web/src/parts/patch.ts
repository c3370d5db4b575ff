// What a patch changes, file by file and line by line.

import type { DiffChange, DiffPatch } from "@agentclientprotocol/sdk/experimental/v2";
import { diffWordsWithSpace, parsePatch, type StructuredPatch } from "diff";

const largest = 2_000_000; // characters of a patch that is taken apart
const longest = 500; // characters of lines that are compared word by word
const mostEdits = 80; // words that differ; what differs more is not looked at further

export interface Row {
  old?: number;
  new?: number;
  text: string;
  /** The last line of the file does not end. */
  endless?: boolean;
}

/** A Group is lines that are the same in both files, or lines that were removed and those that were added for them. */
export interface Group {
  same: Row[];
  removed: Row[];
  added: Row[];
}

export interface File {
  path: string;
  from: string;
  operation: string;
  note: string;
  plus: number;
  minus: number;
  hunks: { head: string; groups: Group[] }[];
}

/** files returns what is changed. If the patch cannot be read, or is not a Git patch, rest is its text. */
export function files(changes: readonly DiffChange[], patch: DiffPatch | null | undefined): { files: File[]; rest: string } {
  let parsed: StructuredPatch[] = [];
  let rest = "";
  const text = typeof patch?.text === "string" ? patch.text : "";
  if (text !== "") {
    try {
      if (text.length > largest) throw new RangeError("too long");
      parsed = read(text.replace(/\r\n/g, "\n"));
    } catch {
      rest = text;
    }
    if (rest === "" && parsed.every((p) => p.hunks.length === 0 && p.newFileName === undefined && p.oldFileName === undefined)) {
      parsed = [];
      rest = text;
    }
  }
  const list: File[] = [];
  for (const c of changes) {
    const change = (c ?? {}) as { operation?: unknown; path?: unknown; oldPath?: unknown; fileType?: unknown };
    const path = str(change.path), old = str(change.oldPath);
    let i = parsed.findIndex((p) => is(path, name(p)));
    if (i < 0 && changes.length === 1 && parsed.length === 1) i = 0;
    const p = i >= 0 ? parsed.splice(i, 1)[0] : undefined;
    list.push(file(path, old, str(change.operation) || "modify", change.fileType === "text" ? "" : str(change.fileType), p));
  }
  for (const p of parsed) {
    const operation = p.isCreate || p.oldFileName === "/dev/null" ? "add" : p.isDelete || p.newFileName === "/dev/null" ? "delete" : p.isRename ? "move" : p.isCopy ? "copy" : "modify";
    list.push(file(name(p), p.isRename || p.isCopy ? bare(p.oldFileName) : "", operation, "", p));
  }
  return { files: list, rest };
}

function read(text: string): StructuredPatch[] {
  try {
    return parsePatch(text);
  } catch {
    return parsePatch(recount(text)); // models count badly
  }
}

// recount writes into the heads of hunks how many lines follow.
function recount(text: string): string {
  const list = text.split("\n");
  for (let i = 0; i < list.length; i++) {
    const m = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(list[i]!);
    if (!m) continue;
    let old = 0, now = 0;
    for (let j = i + 1; j < list.length; j++) {
      const line = list[j]!;
      if (/^(?:@@ |diff --git )/.test(line) || (/^--- /.test(line) && list[j + 1]?.startsWith("+++ "))) break;
      // An empty line is one whose space was lost, unless the text ends with it.
      if (line === "" && (j === list.length - 1 || /^(?:@@ |diff --git |--- )/.test(list[j + 1]!))) break;
      if (line === "") list[j] = " ";
      const c = list[j]![0];
      if (c === " " || c === "-") old++;
      if (c === " " || c === "+") now++;
      if (c !== " " && c !== "-" && c !== "+" && c !== "\\") break;
    }
    list[i] = `@@ -${m[1]},${old} +${m[2]},${now} @@`;
  }
  return list.join("\n");
}

function str(v: unknown): string {
  return typeof v === "string" ? v : "";
}

function bare(name: string | undefined): string {
  return (name ?? "").replace(/^[ab]\//, "");
}

function name(p: StructuredPatch): string {
  return bare(p.newFileName === undefined || p.newFileName === "/dev/null" ? p.oldFileName : p.newFileName);
}

// is reports whether a path, absolute in the way of any system, is the one that a patch names.
function is(path: string, name: string): boolean {
  const p = path.replace(/\\/g, "/"), n = name.replace(/\\/g, "/").replace(/^\/+/, "");
  return n !== "" && (p === n || p.endsWith("/" + n));
}

function file(path: string, from: string, operation: string, type: string, p: StructuredPatch | undefined): File {
  const f: File = { path, from, operation, note: type, plus: 0, minus: 0, hunks: [] };
  if (!p) return f;
  if (p.isBinary) f.note = "binary";
  else if (p.oldMode && p.newMode && p.oldMode !== p.newMode) f.note = "mode " + p.oldMode + " → " + p.newMode;
  for (const h of p.hunks) {
    const groups: Group[] = [];
    let old = h.oldStart, now = h.newStart;
    let last: Row | undefined;
    for (const line of h.lines) {
      const text = line.slice(1);
      let g = groups[groups.length - 1];
      const begin = () => {
        g = { same: [], removed: [], added: [] };
        groups.push(g);
        return g;
      };
      switch (line[0]) {
        case "-":
          if (!g || g.same.length > 0 || g.added.length > 0) g = begin();
          g.removed.push((last = { old: old++, text }));
          f.minus++;
          break;
        case "+":
          if (!g || g.same.length > 0) g = begin();
          g.added.push((last = { new: now++, text }));
          f.plus++;
          break;
        case "\\":
          if (last) last.endless = true;
          break;
        default:
          if (!g || g.removed.length > 0 || g.added.length > 0) g = begin();
          g.same.push((last = { old: old++, new: now++, text }));
      }
    }
    f.hunks.push({ head: `@@ −${start(h.oldStart, h.oldLines)} +${start(h.newStart, h.newLines)} @@`, groups });
  }
  return f;
}

// start writes where lines are. The package counts from one also where there are none.
function start(line: number, count: number): string {
  return (count === 0 ? line - 1 : line) + (count === 1 ? "" : "," + count);
}

/** A Mark is a piece of a line, changed or not. */
export interface Mark {
  text: string;
  changed: boolean;
}

/** words compares two lines word by word. It returns null if they have too little in common, or are too long. */
export function words(before: string, after: string): { before: Mark[]; after: Mark[] } | null {
  if (before.length >= longest || after.length >= longest) return null;
  const list = { before: [] as Mark[], after: [] as Mark[] };
  let common = 0;
  const changes = diffWordsWithSpace(before, after, { maxEditLength: mostEdits });
  if (!changes) return null;
  for (const c of changes) {
    if (!c.added) list.before.push({ text: c.value, changed: c.removed });
    if (!c.removed) list.after.push({ text: c.value, changed: c.added });
    if (!c.added && !c.removed) common += c.value.trim().length;
  }
  if (common * 3 < Math.max(before.trim().length, after.trim().length)) return null;
  return list;
}

/** lines returns how many lines a file has to show. */
export function lines(f: File): number {
  let n = 0;
  for (const h of f.hunks) for (const g of h.groups) n += g.same.length + g.removed.length + g.added.length;
  return n;
}

/** first returns as much of a file as has n lines. */
export function first(f: File, n: number): File {
  const hunks: File["hunks"] = [];
  for (const h of f.hunks) {
    if (n <= 0) break;
    const groups: Group[] = [];
    for (const g of h.groups) {
      if (n <= 0) break;
      const take = (rows: Row[]) => {
        const some = rows.slice(0, Math.max(n, 0));
        n -= some.length;
        return some;
      };
      groups.push({ same: take(g.same), removed: take(g.removed), added: take(g.added) });
    }
    hunks.push({ head: h.head, groups });
  }
  return { ...f, hunks };
}
