// The fields of a form that the agent shows, and what is wrong with what was filled in.

import type { ElicitationSchema } from "@agentclientprotocol/sdk/experimental/v2";
import { seenCode, seenLine } from "./parts/text";

// An Option is what can be chosen.
export interface Option {
  value: string;
  title: string;
  about: string;
}

// A Field is one of a form. Its value is what the user has written or chosen, as the page keeps it.
export interface Field {
  name: string;
  title: string;
  about: string;
  required: boolean;
  kind: "text" | "number" | "integer" | "boolean" | "one" | "some" | "unknown";
  type: string; // of the schema
  options: Option[];
  format: string;
  min: number | undefined; // of characters, of the number, or of choices
  max: number | undefined;
  pattern: string;
  value: Value;
}

export type Value = string | boolean | string[];

const text = (v: unknown): string => (typeof v === "string" ? v : "");
const number = (v: unknown): number | undefined => (typeof v === "number" && Number.isFinite(v) ? v : undefined);
const strings = (v: unknown): string[] => (Array.isArray(v) ? v.filter((x): x is string => typeof x === "string") : []);

// Bounds: what a form has beyond them is not shown, and if it is required, the form can only be declined.
export const maxFields = 100;
const maxText = 64 << 10; // characters of a text

function titled(v: unknown): Option[] {
  if (!Array.isArray(v)) return [];
  return v.flatMap((o) => {
    const { const: value, title, description } = (o ?? {}) as { const?: unknown; title?: unknown; description?: unknown };
    return typeof value === "string" ? [{ value, title: seenLine(text(title) || value), about: seenCode(text(description)) }] : [];
  });
}

const plain = (v: unknown): Option[] => strings(v).map((value) => ({ value, title: seenLine(value), about: "" }));

// fieldsOf returns the fields that a schema has.
export function fieldsOf(schema: ElicitationSchema): Field[] {
  const required = new Set(strings(schema?.required));
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const p = (property ?? {}) as Record<string, unknown>, type = text(p.type);
    const f: Field = {
      name, title: seenLine(text(p.title) || name), about: seenCode(text(p.description)), required: required.has(name), kind: "unknown", type,
      options: [], format: text(p.format), min: undefined, max: undefined, pattern: text(p.pattern), value: "",
    };
    switch (type) {
      case "string":
        f.options = p.oneOf ? titled(p.oneOf) : plain(p.enum);
        f.kind = f.options.length > 0 ? "one" : "text";
        f.min = number(p.minLength);
        f.max = number(p.maxLength);
        f.value = text(p.default);
        if (f.kind === "one" && !f.options.some((o) => o.value === f.value)) f.value = "";
        if (f.format === "date-time" && f.value) f.value = localOf(text(f.value));
        break;
      case "number":
      case "integer":
        f.kind = type;
        f.min = number(p.minimum);
        f.max = number(p.maximum);
        f.value = typeof p.default === "number" ? String(p.default) : "";
        break;
      case "boolean":
        f.kind = "boolean";
        f.value = p.default === true;
        break;
      case "array": {
        const items = (p.items ?? {}) as Record<string, unknown>;
        f.options = items.anyOf ? titled(items.anyOf) : plain(items.enum);
        if (f.options.length > 0) f.kind = "some";
        f.min = number(p.minItems);
        f.max = number(p.maxItems);
        f.value = strings(p.default).filter((d) => f.options.some((o) => o.value === d));
      }
    }
    return f;
  });
}

// valueOf returns what is sent for a field, or undefined, and what is wrong with it, or "".
export function valueOf(f: Field, value: Value): [unknown, string] {
  const missing: [undefined, string] = [undefined, f.required ? "This is needed." : ""];
  switch (f.kind) {
    case "boolean": return [value === true, ""];
    case "text": {
      const t = String(value);
      if (t === "") return missing;
      const wrong = textProblem(f, t);
      return wrong ? [undefined, wrong] : [f.format === "date-time" ? new Date(t).toISOString() : t, ""];
    }
    case "number":
    case "integer": {
      const t = String(value).trim();
      if (t === "") return missing;
      const n = Number(t);
      if (f.kind === "integer" && !(/^[+-]?\d+$/.test(t) && Number.isSafeInteger(n))) return [undefined, "This is not a whole number."];
      if (!Number.isFinite(n) || /^[+-]?0[xob]/i.test(t)) return [undefined, "This is not a number."];
      if (f.min !== undefined && n < f.min) return [undefined, `At least ${f.min}.`];
      if (f.max !== undefined && n > f.max) return [undefined, `At most ${f.max}.`];
      return [n, ""];
    }
    case "one": return value === "" ? missing : [value, ""];
    case "some": {
      const all = Array.isArray(value) ? value : [];
      if (all.length === 0 && !f.required) return [undefined, ""];
      if (f.min !== undefined && all.length < f.min) return [undefined, `Choose at least ${f.min}.`];
      if (f.max !== undefined && all.length > f.max) return [undefined, `Choose at most ${f.max}.`];
      return all.length === 0 && f.min === undefined ? missing : [all, ""];
    }
  }
  return [undefined, f.required ? "This page cannot ask for this, and the agent needs it: decline, or answer in a terminal." : ""];
}

function textProblem(f: Field, t: string): string {
  const n = [...t].length;
  if (f.min !== undefined && n < f.min) return f.min === 1 ? "At least 1 character." : `At least ${f.min} characters.`;
  if (f.max !== undefined && n > f.max) return `At most ${f.max} characters.`;
  if (n > maxText) return `At most ${maxText} characters.`;
  if (f.pattern && matches(f.pattern, t) === false) return `This must match ${f.pattern}`;
  switch (f.format) {
    case "email": return /^[^\s@<>]+@[^\s@<>]+$/.test(t) ? "" : "This is not an e-mail address.";
    case "uri": return URL.canParse(t) ? "" : "This is not a URL.";
    case "date": return /^\d{4}-\d{2}-\d{2}$/.test(t) && !Number.isNaN(Date.parse(t)) ? "" : "This is not a date such as 2026-01-31.";
    case "date-time": return Number.isNaN(Date.parse(t)) ? "This is not a time such as 2026-01-31 15:04." : "";
  }
  return "";
}

// matches reports whether a text matches a pattern of the agent. What may take forever, or is no pattern, is left to the
// agent: undefined.
function matches(pattern: string, t: string): boolean | undefined {
  if (pattern.length > 200 || t.length > 2000 || /[+*}]\)*[+*{]|\([^()]*[+*|{][^()]*\)[+*{]|\\\d/.test(pattern)) return undefined;
  try {
    return new RegExp(pattern, "u").test(t);
  } catch {
    return undefined;
  }
}

// localOf returns a time as a field for local times has it.
function localOf(t: string): string {
  const d = new Date(t);
  return Number.isNaN(d.getTime()) ? "" : new Date(d.getTime() - d.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
