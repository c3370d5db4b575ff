import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { NoConnection, reasonOf } from "../link";
import type { SessionConfigOption } from "@agentclientprotocol/sdk/experimental/v2";
import type { Agent, Page } from "../page";
import { One } from "./Options";
import { Modal } from "./Modal";
import { prose, visible } from "../parts/text";

const choice = (a: Agent) => <option key={a.name} value={a.name}>{visible(a.title && a.title !== a.name ? `${a.title} (${a.name})` : a.name)}</option>;

const few = 6; // recent directories that are buttons

// New begins a session: the agent and the directory.
export function New({ page }: { page: Page }) {
  const agents = page.agents.value, directories = page.directories.value;
  const [agent, setAgent] = useState("");
  useEffect(() => void page.askStarts(), []);
  const [written, setCwd] = useState<string | null>(null); // what the user has written, or chosen
  const cwd = written ?? page.sessions.get(page.route.value)?.cwd ?? directories[0] ?? "";
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => { // what is written takes the place of what was proposed
    if (written === null && document.activeElement === field.current) field.current?.select();
  }, [cwd]);
  const [values, setValues] = useState<Map<string, string | boolean>>(new Map());
  useEffect(() => setValues(new Map()), [agent, cwd]); // those of another agent may be others
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const close = () => { page.dialog.value = ""; };
  const begin = async (e: Event) => {
    e.preventDefault();
    const dir = cwd.trim();
    if (busy) return;
    if (!/^(\/|~|[A-Za-z]:[\\/]|\\\\)/.test(dir)) return setWrong("Write the whole path, from the root: /home/me/project.");
    setBusy(true);
    setWrong("");
    try {
      await page.create(agent || agents[0]?.name || "", dir, values);
      setTimeout(() => document.getElementById("prompt")?.focus(), 100);
    } catch (err) {
      setWrong(err instanceof NoConnection ? "There is no connection to the gateway. Whether the session was begun is in the list when there is one again." : reasonOf(err));
      setBusy(false);
    }
  };
  return (
    <Modal title="New session" close={close}>
      <form class="form" onSubmit={begin}>
        {agents.length > 0 && (
          <label>Agent
            <select value={agent || agents[0].name} onChange={(e) => setAgent(e.currentTarget.value)}>
              {agents.filter((a) => !a.missing).map(choice)}
              {agents.some((a) => a.missing) && <optgroup label="Not installed">{agents.filter((a) => a.missing).map(choice)}</optgroup>}
            </select>
          </label>
        )}
        <label>Directory on the gateway's machine
          <input ref={field} value={cwd} onInput={(e) => setCwd(e.currentTarget.value)} list="directories" required spellcheck={false} autocapitalize="off" autocomplete="off" placeholder="/home/me/project" autofocus onFocus={(e) => e.currentTarget.select()} aria-describedby="new-wrong" aria-invalid={wrong ? true : undefined} />
        </label>
        <datalist id="directories">{directories.slice(0, 50).map((d) => <option key={d} value={d} />)}</datalist>
        {directories.length > 1 && (
          <div class="recent" role="group" aria-label="Recent directories">
            {directories.slice(0, few).map((d) => <button key={d} type="button" aria-pressed={cwd === d} title={visible(d)} onClick={() => setCwd(d)}>{visible(d.length > 44 ? "…" + d.slice(-43) : d)}</button>)}
          </div>
        )}
        <Offers key={agent + "\n" + cwd} page={page} agent={agent || agents[0]?.name || ""} cwd={cwd.trim()} values={values} set={(id, v) => setValues(new Map(values).set(id, v))} />
        <p class="bad" role="alert" id="new-wrong">{wrong}</p>
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button class="primary" disabled={busy}>{busy ? "Starting …" : "Begin"}</button></div>
      </form>
    </Modal>
  );
}

// Offers are the options that the session would begin with. To ask for them starts the agent, so that is done when somebody looks.
function Offers({ page, agent, cwd, values, set }: { page: Page; agent: string; cwd: string; values: Map<string, string | boolean>; set: (id: string, v: string | boolean) => void }) {
  const [list, setList] = useState<SessionConfigOption[] | string | null>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!open || list !== null || !cwd) return;
    let here = true;
    page.offers(agent, cwd).then((l) => here && setList(l ?? "This gateway does not say that."), (err) => here && setList(reasonOf(err)));
    return () => { here = false; };
  }, [open]);
  return (
    <details class="begins" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Mode, model and other options</summary>
      {list === null ? <p class="note" role="status">Asking the agent …</p>
        : typeof list === "string" ? <p class="note">{prose(list)}</p>
        : list.length === 0 ? <p class="note">The agent names no options before the session is open.</p>
        : <div class="agent-options">{list.map((o) => <One key={o.configId} may o={{ ...o, ...(values.has(o.configId) ? { currentValue: values.get(o.configId) } : {}) } as SessionConfigOption} set={(v) => set(o.configId, v)} />)}</div>}
    </details>
  );
}
