// What a question must show before somebody answers it: the whole command with its directory, or else the changes, or else
// the whole input of the tool. Package shown has the same for terminals.

import type { RequestPermissionRequest } from "@agentclientprotocol/sdk/experimental/v2";
import type { ToolCall } from "./parts/Tool";
import { seen, seenCode, seenLine } from "./parts/text";

/** An Asked is what is shown of a question, with everything written out that nobody sees. */
export interface Asked {
  title: string;
  /** The title is what the agent says. */
  theirs: boolean;
  description: string;
  command: string;
  cwd: string;
  /** The tool call, or null. Its input is in input. */
  call: ToolCall | null;
  input: readonly Input[];
}

/** An Input is a part of the input of a tool, such as edits[0].path. */
export interface Input {
  name: string;
  text: string;
}

const runThis = "Run this command?";
const deepest = 8; // parts of parts that are shown by themselves

/** asked returns what is shown of a question; call is what is known of its tool call. */
export function asked(request: RequestPermissionRequest, call: ToolCall | null): Asked {
  const subject = request.subject as { type?: string; command?: unknown; cwd?: string | null } | null | undefined;
  const about = subject?.type === "command";
  const found = about ? String(subject.command ?? "") : call ? commandOf(call) : "";
  const raw = record(call?.rawInput);
  const cwd = about ? (subject.cwd ?? "") : typeof raw?.cwd === "string" ? raw.cwd : "";
  const said = [found, ...(call?.locations ?? []).map((l) => l?.path ?? "")];
  let title = String(request.title ?? ""), theirs = true;
  if (title.trim() === "") [title, theirs] = ["The agent asks for permission", false];
  else if (squeeze(title) === runThis || same(title, found)) [title, theirs] = [runThis, false];
  const changes = call?.content?.some((c) => c?.type === "diff" && (c as { patch?: unknown }).patch) ?? false;
  const input = call === null || changes || about ? [] : inputs(call.rawInput, found && !about ? [...said, cwd] : said, found !== "");
  return {
    title: seenLine(title.trim()), theirs, description: seenCode(String(request.description ?? "")),
    command: seen(found.replace(/\n+$/, "")), cwd: found ? seenLine(cwd) : "", call: call && seenCall(call, found), input,
  };
}

// commandOf returns the command that a tool call would run, or "" if that is not certain.
function commandOf(call: ToolCall): string {
  if (call.kind !== "execute" && call.kind !== "other" && call.kind) return "";
  const command = record(call.rawInput)?.command;
  if (typeof command === "string") return command;
  if (!Array.isArray(command) || !command.every((c) => typeof c === "string")) return "";
  if (command.length === 3 && /(^|\/)(ba|da|z)?sh$/.test(command[0]) && /^-l?c$/.test(command[1])) return command[2];
  return command.every((c) => /^[\w./:=@%+-]+$/.test(c)) ? command.join(" ") : "";
}

function record(v: unknown): Record<string, unknown> | null {
  return v !== null && typeof v === "object" && !Array.isArray(v) ? (v as Record<string, unknown>) : null;
}

const squeeze = (s: string) => s.trim().replace(/\s+/g, " ");

// same reports whether a title is no more than the command, perhaps as code.
function same(title: string, command: string): boolean {
  return command !== "" && squeeze(title.trim().replace(/^(`+)([^]*)\1$/, "$2").replace(/^\$ /, "")) === squeeze(command);
}

// inputs returns an input as values that can be read, without those that are said elsewhere. Of a command, the member that
// has it is said.
function inputs(raw: unknown, said: readonly string[], command: boolean): Input[] {
  if (raw === undefined || raw === null) return [];
  const out: Input[] = [];
  const add = (name: string, v: unknown, depth: number) => {
    if (typeof v === "string") {
      if (v === "" || !said.includes(v)) out.push({ name, text: seenCode(v) });
    } else if (v === null || typeof v !== "object" || depth === deepest || Object.keys(v).length === 0 || Array.isArray(v) && v.every((x) => typeof x !== "object" && !/[\n]/.test(String(x)))) {
      out.push({ name, text: seenCode(JSON.stringify(v)) });
    } else {
      for (const [k, x] of Object.entries(v)) {
        if (command && depth === 0 && k === "command") continue;
        add(Array.isArray(v) ? `${name}[${k}]` : (name && name + ".") + seenLine(k), x, depth + 1);
      }
    }
  };
  add("", raw, 0);
  return out;
}

// seenCall returns a tool call with everything written out that nobody sees, and without its input.
function seenCall(call: ToolCall, command: string): ToolCall {
  const deep = (v: unknown): unknown => {
    if (typeof v === "string") return seenCode(v);
    if (Array.isArray(v)) return v.map(deep);
    const r = record(v);
    // Data of pictures is not text, and types and ids choose what is drawn.
    return r ? Object.fromEntries(Object.entries(r).map(([k, x]) => [k, k === "data" || k === "type" || k === "terminalId" || k === "format" ? x : deep(x)])) : v;
  };
  const title = String(call.title ?? "");
  return {
    ...call, title: same(title, command) ? "" : seenLine(title.trim()), name: seenLine(String(call.name ?? "")), content: deep(call.content ?? []) as ToolCall["content"],
    locations: call.locations?.map((l) => ({ ...l, path: seenLine(l?.path ?? "") })), rawInput: undefined,
  };
}
