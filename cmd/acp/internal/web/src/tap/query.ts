// What people type into the search.

import type { Row } from "./types";

/** A Test says whether a row is meant. */
export type Test = (row: Row) => boolean;

const fields = ["method", "id", "session", "code"] as const;

/** parseQuery returns the test for a text, or null if every row is meant. */
export function parseQuery(text: string): Test | null {
  const tests: Test[] = [];
  for (const [, minus, field, quoted, plain] of text.matchAll(/(-?)(?:(\w+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const word = (quoted ?? plain ?? "").toLowerCase();
    if (word === "") continue;
    const known = fields.find((f) => f === field);
    const test = known ? within(known, word) : anywhere((field ? field + ":" : "").toLowerCase() + word);
    tests.push(minus ? (row) => !test(row) : test);
  }
  if (tests.length === 0) return null;
  return (row) => tests.every((test) => test(row));
}

function within(field: (typeof fields)[number], word: string): Test {
  return (row) => (row[field] != null && String(row[field]).toLowerCase().includes(word)) ||
    (field === "method" && (row.update ?? "").includes(word));
}

function anywhere(word: string): Test {
  return (row) => (row.body ?? "").toLowerCase().includes(word) ||
    (row.method ?? "").toLowerCase().includes(word) ||
    (row.update ?? "").includes(word) ||
    (row.summary ?? "").toLowerCase().includes(word) ||
    (row.session ?? "").toLowerCase().includes(word) ||
    (row.marks ?? []).some((f) => (f.rule + " " + f.why).toLowerCase().includes(word));
}
