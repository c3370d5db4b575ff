// What is offered while a prompt is written: commands of the agent after a slash, and files after an @.

import type { AvailableCommand } from "@agentclientprotocol/sdk/experimental/v2";
import { NoConnection, type Link } from "./link";
import { textOf } from "./conversation";
import type { Suggestion } from "./fold";
import { own } from "./meta";
import { plain } from "./parts/text";
import { written } from "./attach";

// A Choice replaces the text from one place to the caret.
export interface Choice {
  label: string;
  hint: string; // what the command expects after its name
  about: string;
  from: number;
  text: string; // what is written instead
  file?: string; // the path, if it is a file
}

const most = 50; // choices that are offered
const longest = 1024; // bytes of what is searched for

// commandsFor returns the commands that a text may be the beginning of.
export function commandsFor(commands: AvailableCommand[], text: string, caret: number): Choice[] {
  const typed = /^\/(\S*)$/.exec(text.slice(0, caret));
  if (!typed || /^\S/.test(text.slice(caret))) return [];
  const word = typed[1].toLowerCase(), rank = (c: AvailableCommand) => c.name.toLowerCase().indexOf(word);
  return commands
    .filter((c) => typeof c.name === "string" && rank(c) >= 0)
    .sort((a, b) => Math.sign(rank(a)) - Math.sign(rank(b)))
    .slice(0, most)
    .map((c) => ({ label: "/" + c.name, hint: hintOf(c), about: aboutOf(c), from: 0, text: `/${c.name} ` }));
}

// aboutOf says what a command does, and whether it is a skill.
const aboutOf = (c: AvailableCommand) => ((c as { type?: unknown }).type === "skill" ? "skill: " : "") + (c.description ?? "");

// hintOf returns what a command expects after its name.
export function hintOf(c: AvailableCommand): string {
  const input = (c as { input?: { hint?: unknown } | null }).input;
  return typeof input?.hint === "string" ? input.hint : "";
}

const longestSuggestion = 16 << 10; // characters of a prompt that is offered

// offered returns the first of the prompts that the agent suggests that is text alone and can be seen; "" if there is none.
export function offered(list: Suggestion[]): string {
  for (const s of list) {
    const prompt = Array.isArray(s?.prompt) ? s.prompt : [];
    if (prompt.some((b) => b.type !== "text" || typeof (b as { text: unknown }).text !== "string")) continue;
    const text = plain(textOf(prompt)).trim();
    if (text && text.length <= longestSuggestion) return text;
  }
  return "";
}

// mentionAt returns the beginning of a mention that ends at the caret, and what has been written of it.
export function mentionAt(text: string, caret: number): { from: number; query: string } | null {
  const m = /(?:^|[\s(])@("[^"\n]*|[^\s"]*)$/.exec(text.slice(0, caret));
  return m && { from: caret - m[1].length - 1, query: m[1].replace(/^"/, "") };
}

// Files asks the gateway for the files of a session's directory.
export class Files {
  private missing = false;

  constructor(private readonly link: Link, private readonly session: string) {}

  // find returns those that a query is a part of. There are none if the gateway does not tell.
  async find(query: string, from: number): Promise<Choice[]> {
    if (this.missing || new TextEncoder().encode(query).length > longest) return [];
    try {
      const got = await this.link.request<{ files?: unknown[] }>(own("files"), { sessionId: this.session, query, limit: most });
      return (got.files ?? []).filter((p): p is string => typeof p === "string" && p !== "").slice(0, most).map((path) => ({
        label: path, hint: "", about: "", from, text: written(path) + (path.endsWith("/") ? "" : " "), file: path,
      }));
    } catch (err) {
      if (!(err instanceof NoConnection) && (err as { code?: number }).code === -32601) this.missing = true;
      return [];
    }
  }
}
