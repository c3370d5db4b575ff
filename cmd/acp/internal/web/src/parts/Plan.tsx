// The plan of an agent.

import { Json } from "./Json";
import { Markdown } from "./Markdown";
import { beginning, plural, prose, visible } from "./text";

const most = 500; // steps

const marks: Record<string, [string, string]> = {
  completed: ["✓", "done"], in_progress: ["▸", "in progress"], pending: ["○", "to do"], cancelled: ["✕", "cancelled"],
};

export interface PlanProps {
  /** The content of the last update: {type: "items", entries} or one that is not known. */
  plan: { type?: string; [key: string]: unknown };
  /** The agent took it away. */
  removed?: boolean;
}

/** PlanView shows the steps of a plan. */
export function PlanView({ plan, removed = false }: PlanProps) {
  const steps = Array.isArray(plan.entries) ? (plan.entries as unknown[]) : null;
  const done = steps?.filter((s) => (s as { status?: unknown } | null)?.status === "completed").length ?? 0;
  return (
    <article class={"entry plan" + (removed ? " removed" : "")}>
      <h3>{removed ? "Plan (taken away)" : "Plan"}{steps && steps.length > 0 && <span class="status">{done} of {plural(steps.length, "step")}</span>}</h3>
      {steps ? (
        <ul>
          {steps.slice(0, most).map((s, i) => <Step key={i} step={s} />)}
          {steps.length > most && <li class="note">{plural(steps.length - most, "step")} more</li>}
        </ul>
      ) : plan.type === "markdown" && typeof plan.content === "string" ? <Markdown text={plan.content} /> : <Json value={plan} />}
    </article>
  );
}

function Step({ step }: { step: unknown }) {
  const s = (step ?? {}) as { content?: unknown; status?: unknown; priority?: unknown };
  const status = typeof s.status === "string" ? s.status : "pending";
  const [mark, name] = Object.hasOwn(marks, status) ? marks[status]! : ["○", visible(beginning(status, 40))];
  return (
    <li class={"step " + (Object.hasOwn(marks, status) ? status : "pending")}>
      <span class="tick" role="img" aria-label={name}>{mark}</span>
      <span class="what" dir="auto">{prose(typeof s.content === "string" ? s.content : "")}</span>
      {s.priority === "high" && <span class="kind">high</span>}
    </li>
  );
}
