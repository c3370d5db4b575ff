// What has been written and not sent, and what has been sent, as far as this browser keeps it. Logging out forgets all of it.

import { isForgotten, keeps, leaveKey } from "./forget";

// A Draft is the text of a prompt that is not sent, and the files of the session's directory that it mentions.
export interface Draft {
  text: string;
  files: string[];
}

// Bounds of what is kept.
const maxDraft = 64 << 10; // characters of a draft; a longer one is not kept
const maxDrafts = 50; // sessions with a draft
const maxPrompts = 100; // prompts of the history
const maxPrompt = 4000; // characters of a prompt of the history; a longer one is not kept

const prefix = "acp.draft.", past = "acp.prompts";

keeps(() => {
  for (const k of Object.keys(localStorage)) if (k.startsWith("acp.") && k !== leaveKey) localStorage.removeItem(k);
});

function read<T>(key: string, none: T): T {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? "null") as T) ?? none;
  } catch {
    return none; // there is no storage, or somebody else has written there
  }
}

function write(key: string, value: unknown) {
  if (isForgotten()) return;
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // There is no storage, or it is full.
  }
}

// draftOf returns the draft of a session.
export function draftOf(session: string): Draft {
  const d = read<Partial<Draft>>(prefix + session, {});
  return { text: typeof d.text === "string" ? d.text : "", files: Array.isArray(d.files) ? d.files.filter((f) => typeof f === "string") : [] };
}

// keepDraft keeps the draft of a session, and forgets the oldest ones beyond the bound.
export function keepDraft(session: string, d: Draft) {
  try {
    if (d.text === "" || d.text.length > maxDraft) return localStorage.removeItem(prefix + session);
    write(prefix + session, { ...d, at: Date.now() });
    const all = Object.keys(localStorage).filter((k) => k.startsWith(prefix));
    if (all.length <= maxDrafts) return;
    const at = (k: string) => Number(read<{ at?: number }>(k, {}).at) || 0;
    for (const k of all.sort((a, b) => at(a) - at(b)).slice(0, all.length - maxDrafts)) localStorage.removeItem(k);
  } catch {
    // There is no storage.
  }
}

// prompts returns what was sent from this browser, the latest last.
export function prompts(): string[] {
  const list = read<unknown>(past, []);
  return Array.isArray(list) ? list.filter((p): p is string => typeof p === "string") : [];
}

// keepPrompt adds to that.
export function keepPrompt(text: string) {
  if (text.trim() === "" || text.length > maxPrompt) return;
  write(past, [...prompts().filter((p) => p !== text), text].slice(-maxPrompts));
}
