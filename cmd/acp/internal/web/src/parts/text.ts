// How values are written.

// Characters that are not seen, or that change the order of others.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202f\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// Of these, what no prose needs. Marks of direction, soft hyphens and narrow spaces stay: languages use them.
const misleading = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

function escape(c: string): string {
  return "\\u{" + c.codePointAt(0)!.toString(16) + "}";
}

/** visible writes characters that are not seen as escapes: for names, paths, commands and code. */
export function visible(s: string): string {
  return s.replace(unseen, escape);
}

/** prose writes only those characters as escapes that no language needs. */
export function prose(s: string): string {
  return s.replace(misleading, escape);
}

/** plain leaves out what no prose needs: for texts that can be sent as they are shown. */
export function plain(s: string): string {
  return s.replaceAll("\r\n", "\n").replace(misleading, "");
}

// What has no look of its own, or that of a space, and combining characters beyond eight on one base.
const unshown = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Z}\p{DI}\p{NChar}\u2800]|(?<=\p{M}{8})\p{M}/gu;

const unlessBlank = (c: string): string => (c === " " || c === "\n" || c === "\t" ? c : escape(c));

/** seenCode writes everything out that nobody sees, for what somebody decides about: two texts that look the same are the
 * same. Line feeds, tabs and spaces stay, and a carriage return at the end of a line does not matter. The functions of
 * package safetext in Go do the same, and are held to the same table. */
export function seenCode(s: string): string {
  return s.replaceAll("\r\n", "\n").replace(unshown, unlessBlank);
}

/** seen is as seenCode for a text as a whole, such as a command: blanks at its ends are written out, and so is every carriage return. */
export function seen(s: string): string {
  const [, before, rest] = /^([ \t\n]*)([^]*)$/.exec(s)!;
  const inside = rest.replace(/[ \t\n]+$/, "");
  return all(before) + inside.replaceAll("\r", "\\u{d}").replace(unshown, unlessBlank) + all(rest.slice(inside.length));
}

/** seenLine is as seen for what is one line, such as a path. */
export function seenLine(s: string): string {
  return seen(s).replace(/[\n\t]/g, escape);
}

function all(blanks: string): string {
  return [...blanks].map(escape).join("");
}

/** size writes a number of bytes. */
export function size(n: number): string {
  if (n < 1000) return n + " B";
  if (n < 999_500) return (n / 1000).toFixed(n < 9995 ? 1 : 0) + " kB";
  return (n / 1e6).toFixed(n < 9_995_000 ? 1 : 0) + " MB";
}

/** took writes a length of time in nanoseconds. */
export function took(ns: number): string {
  const ms = ns / 1e6;
  if (ms < 0.995) return Math.max(ms, 0.01).toFixed(2) + " ms";
  if (ms < 999.5) return ms.toFixed(ms < 9.95 ? 1 : 0) + " ms";
  if (ms < 59_950) return (ms / 1000).toFixed(ms < 9950 ? 2 : 1) + " s";
  return Math.floor(ms / 60_000) + " m " + String(Math.floor(ms / 1000) % 60).padStart(2, "0") + " s";
}

/** at writes a time since the start, in nanoseconds, as on a clock. */
export function at(ns: number): string {
  const ms = Math.floor(ns / 1e6);
  const s = Math.floor(ms / 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  const rest = two(s % 60) + "." + String(ms % 1000).padStart(3, "0");
  const m = Math.floor(s / 60);
  if (m < 60) return m + ":" + rest;
  return Math.floor(m / 60) + ":" + two(m % 60) + ":" + rest;
}

/** since writes how long ago a time is; now is for tests. A time that is to come counts as now. */
export function since(date: Date, now = Date.now()): string {
  const s = (now - date.getTime()) / 1000;
  if (!Number.isFinite(s)) return "";
  if (s < 5) return "now";
  if (s < 60) return Math.floor(s) + "s ago";
  if (s < 3600) return Math.floor(s / 60) + "m ago";
  if (s < 86_400) return Math.floor(s / 3600) + "h ago";
  if (s < 30 * 86_400) return Math.floor(s / 86_400) + "d ago";
  return date.toISOString().slice(0, 10);
}

/** number writes a count. */
export function number(n: number): string {
  return n.toLocaleString("en");
}

export function plural(n: number, word: string, several = word + "s"): string {
  return number(n) + " " + (n === 1 ? word : several);
}

/** beginning returns at most n characters of s, and not half a character. */
export function beginning(s: string, n: number): string {
  if (s.length <= n) return s;
  const c = s.charCodeAt(n - 1);
  return s.slice(0, c >= 0xd800 && c < 0xdc00 ? n - 1 : n);
}

/** begins reports whether s begins with start, in a fraction of the time of startsWith. */
export function begins(s: string, start: string): boolean {
  return s.length >= start.length && s.slice(0, start.length) === start;
}
