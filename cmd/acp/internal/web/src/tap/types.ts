// What the server of a tap says.

import type { ToolCall } from "../parts/Tool";
import type { UsageState } from "../parts/Usage";

/** A Finding is a rule that a frame breaks. */
export interface Finding {
  seq: number;
  rule?: string;
  level?: string;
  why?: string;
  text?: string;
  cites?: string;
  path?: string;
}

/** A Row is a record, as appendRow in fold.go makes it. */
export interface Row {
  seq: number;
  at?: number; // ns since the start
  type: string;
  dir?: string;
  method?: string;
  update?: string; // the kind of one
  id?: string;
  session?: string;
  asked?: number; // the number of the request that it answers
  took?: number; // ns
  code?: number;
  summary?: string;
  size?: number;
  body?: string;
  cut?: number; // the server has more of the body
  short?: number; // nobody has
  findings?: Finding[];

  // What the page adds.
  answer?: number; // the number of the answer
  failed?: boolean; // the answer is an error
  marks?: Finding[]; // the findings about it
}

/** A Hello says what is shown. */
export interface Hello {
  title?: string;
  command?: string[];
  file?: string;
  recorded?: boolean;
  redacted?: boolean;
  run: string;
  maxRows: number;
  maxBytes: number;
}

/** A SessionInfo is a session in the list of them. */
export interface SessionInfo {
  id: string;
  title?: string;
  changes: number;
}

/** An Update is what the updates of an entry come to. */
export interface Update extends Partial<ToolCall> {
  sessionUpdate?: string;
  content?: never[];
  terminalId?: string;
  command?: string;
  cwd?: string;
  output?: { data?: string } | null;
  exitStatus?: { exitCode?: number | null; signal?: string | null } | null;
  plan?: { type?: string; [key: string]: unknown };
  description?: string;
}

/** An Entry is one of a conversation, as package transcript writes it. */
export interface Entry {
  kind: string;
  update?: Update;
  removed?: boolean;
  text?: string;
  skipped?: number;
  dropped?: number;
  title?: string;
  description?: string;
  options?: { optionId?: string; name?: string }[];
  outcome?: { outcome?: string; optionId?: string };
}

/** A Talk is the conversation of a session. */
export interface Talk {
  changes: number;
  transcript: {
    entries?: Entry[];
    dropped?: { entries?: number };
    session?: { state?: { state: string; stopReason?: string }; usage?: UsageState };
  };
  failed?: number; // the status of an answer that had none
}

