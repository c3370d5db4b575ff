// What the agents of Claude and codex say in _meta. What it does not understand says nothing.

import { beginning, visible } from "./parts/text";

type Meta = { [key: string]: unknown } | null | undefined;

const object = (v: unknown): Record<string, unknown> => (typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Record<string, unknown>) : {});

const line = (v: unknown): string => (typeof v === "string" ? visible(beginning(v, 200)) : "");

/** modelIn returns the model that the usage names, or "". */
export const modelIn = (meta: Meta): string => line(object(meta)["_claude/model"]);

const limits: Record<string, string> = {
  five_hour: "5-hour limit", seven_day: "weekly limit", seven_day_opus: "weekly limit of Opus", seven_day_sonnet: "weekly limit of Sonnet", overage: "extra usage",
};

/** limitIn says how near the limit of the account is, if the agent warns of it and it has not been reset; or "". */
export function limitIn(meta: Meta, now: number): string {
  const { status, rateLimitType, utilization, resetsAt } = object(object(meta)["_claude/rateLimit"]);
  if (typeof status !== "string" || status === "" || status === "allowed") return "";
  let at = typeof resetsAt === "number" && resetsAt > 0 && resetsAt < 1e14 ? resetsAt : 0;
  if (at < 1e11) at *= 1000; // it is in seconds
  if (at > 0 && now >= at) return "";
  const kind = line(rateLimitType), name = Object.hasOwn(limits, kind) ? limits[kind] : kind.replaceAll("_", " ") || "limit";
  const used = typeof utilization === "number" && utilization >= 0 && utilization <= 1000 ? `${Math.round(utilization <= 1 ? utilization * 100 : utilization)}% used` : "near";
  const resets = at > 0 ? ", resets " + new Date(at).toLocaleString([], { weekday: "short", hour: "2-digit", minute: "2-digit" }) : "";
  return `${name} ${status === "rejected" ? "reached" : used}${resets}`;
}

/** parentIn returns the tool call in which another one was made, or "". */
export function parentIn(meta: Meta): string {
  const { parentToolUseId } = object(object(meta).claudeCode);
  return typeof parentToolUseId === "string" ? parentToolUseId : "";
}

/** worksOn reports whether the agent works on while somebody answers. */
export const worksOn = (meta: Meta): boolean => object(object(meta).codex).delivery === "async";

/** taskIn says what an item of the background does that is neither a command nor a subagent, or "". */
export function taskIn(item: unknown): string {
  const { type, description } = object(item);
  if (type === "terminal" || type === "subagent" || typeof type !== "string") return "";
  return (type === "_claude/task" && line(description)) || `a task of the agent (${line(type)})`;
}
