// What a gateway says beyond the protocol, in _meta and in methods of its own.

// key is where _meta has it.
export const key = "github.com/goacp/acp";

// own returns the name of a method of the gateway.
export const own = (name: string): `_${string}` => `_${key}/${name}`;

export type Meta = { [key: string]: unknown } | null | undefined;

// A Position is where a client is in a session: what comes after it is what it lacks.
export interface Position {
  cursor: number;
  mark?: string;
  part?: number;
}

// said returns what the gateway says in _meta.
export function said(meta: Meta): Record<string, unknown> {
  const all = meta?.[key];
  return typeof all === "object" && all !== null ? (all as Record<string, unknown>) : {};
}

// to returns _meta with something for the gateway.
export const to = (what: object): Record<string, unknown> => ({ [key]: what });

// positionIn returns the position that _meta has, or undefined.
export function positionIn(meta: Meta): Position | undefined {
  const { cursor, mark, part } = said(meta);
  if (typeof cursor !== "number") return undefined;
  return { cursor, mark: typeof mark === "string" ? mark : undefined, part: typeof part === "number" ? part : undefined };
}

// parentOf returns the session in whose log something is: its own, or that of the parent of a subagent, whose name is
// PARENT.NAME.
export const parentOf = (session: string): string => session.split(".", 1)[0];

// A Person is a client of a session.
export interface Person {
  name: string;
  role?: string;
  you?: boolean;
}

// Presence says who is attached to a session.
export interface Presence {
  sessionId: string;
  people: Person[];
  more?: number;
}

// Decided says who has answered a question.
export interface Decided {
  sessionId: string;
  title?: string;
  by?: string;
  you?: boolean;
  outcome: string;
}

// A Decision is how a question about a tool call was decided.
export interface Decision {
  ask: string; // the name of the question, "" if it is not known
  by: string; // "" if nobody has answered
  rule: boolean; // a rule has
  name: string; // of the option
  kind: string; // of that
  outcome: string;
  at: number; // ms since 1970, or NaN
}

// decisionIn returns the decision that _meta of a tool call has, or undefined.
export function decisionIn(meta: Meta): Decision | undefined {
  const { decided } = said(meta);
  if (typeof decided !== "object" || decided === null) return undefined;
  const d = decided as Record<string, unknown>, text = (v: unknown): string => (typeof v === "string" ? v : "");
  return { ask: text(d.ask), by: text(d.by), rule: d.rule === true, name: text(d.name), kind: text(d.kind), outcome: text(d.outcome), at: Date.parse(text(d.time)) };
}

// Queued says that a prompt is kept.
export interface Queued {
  sessionId: string;
  before?: number;
  operationId?: string;
}
