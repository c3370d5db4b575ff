import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { NoConnection, reasonOf } from "../link";
import type { Agent, Page } from "../page";
import { Modal } from "./Modal";
import { visible } from "../parts/text";

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
      await page.create(agent || agents[0]?.name || "", dir);
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
        <p class="bad" role="alert" id="new-wrong">{wrong}</p>
        <div class="buttons"><button type="button" onClick={close}>Cancel</button><button class="primary" disabled={busy}>{busy ? "Starting …" : "Begin"}</button></div>
      </form>
    </Modal>
  );
}
