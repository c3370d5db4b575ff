import type { SessionConfigOption } from "@agentclientprotocol/sdk/experimental/v2";
import type { Conversation } from "../conversation";
import { prose, visible } from "../parts/text";

// Options are those of the agent: modes, models and the like.
export function Options({ talk }: { talk: Conversation }) {
  const list = talk.fold.value.options.value;
  if (list.length === 0) return null;
  const may = talk.role.value !== "viewer" && talk.role.value !== "prompter";
  return <div class="agent-options">{ordered(list).map((o) => <One key={o.configId} may={may} o={o} set={(v) => void talk.set(o, v)} />)}</div>;
}

// ordered has the speed beside the model.
function ordered(list: SessionConfigOption[]): SessionConfigOption[] {
  const is = (o: SessionConfigOption, category: string) => o.category === category;
  const at = list.findIndex((o) => is(o, "model"));
  if (at < 0) return list;
  const rest = (part: SessionConfigOption[]) => part.filter((o) => !is(o, "speed"));
  return [...rest(list.slice(0, at + 1)), ...list.filter((o) => is(o, "speed")), ...rest(list.slice(at + 1))];
}

type Choice = { value: string; name: string };
type Group = { name: string; options: Choice[] };

// One is an option, which some may set.
export function One({ may, o, set }: { may: boolean; o: SessionConfigOption; set: (value: string | boolean) => void }) {
  const title = o.description ? prose(o.description) : undefined;
  if (o.type === "boolean") {
    return <label title={title}><input type="checkbox" disabled={!may} checked={(o as { currentValue?: boolean }).currentValue === true} onChange={(e) => set(e.currentTarget.checked)} /> {visible(o.name)}</label>;
  }
  if (o.type !== "select") return null;
  const { currentValue, options } = o as unknown as { currentValue: string; options: (Choice | Group)[] };
  const choice = (c: Choice) => <option key={c.value} value={c.value}>{visible(c.name)}</option>;
  return (
    <label title={title}><span class="unseen">{visible(o.name)}</span>
      <select disabled={!may} value={currentValue} onChange={(e) => set(e.currentTarget.value)}>
        {options.map((x) => ("options" in x ? <optgroup key={x.name} label={visible(x.name)}>{x.options.map(choice)}</optgroup> : choice(x)))}
      </select>
    </label>
  );
}
