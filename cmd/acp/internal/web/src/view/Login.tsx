import { useState } from "preact/hooks";
import { isForgotten } from "../forget";
import { login, trouble, waits } from "../login";
import { visible } from "../parts/text";
import { teamLogin } from "../team";
import type { Page } from "../page";

export function Login({ page }: { page: Page }) {
  const [said, say] = useState("");
  const [busy, wait] = useState(false);
  const send = async (e: Event) => {
    e.preventDefault();
    const text = said.trim();
    if (!text) return;
    wait(true);
    const digits = text.replace(/[\s-]/g, "");
    const ok = await login(/^\d{6}$/.test(digits) ? { code: digits } : { token: text });
    wait(false);
    if (!ok) return;
    if (isForgotten()) location.reload(); // or else nothing would be kept
    else page.link.start();
  };
  const team = page.link.team.value;
  if (page.staying.value) return <Leaving page={page} {...page.staying.value} />;
  return (
    <main class="login">
      <h1>acp</h1>
      {team && <p class="buttons"><a class="button primary" href={teamLogin()}>Log in with {visible(team)}</a></p>}
      <p>This browser is not paired with the gateway. Run <kbd>acp devices pair --role owner</kbd> on its machine, and enter the code that it shows. A token works, too.</p>
      <form onSubmit={send}>
        <label for="code">Code or token</label>
        <input id="code" value={said} onInput={(e) => say(e.currentTarget.value)} autocomplete="one-time-code" autocapitalize="off" spellcheck={false} autofocus aria-describedby="trouble" />
        <button class="primary" disabled={busy}>Pair</button>
      </form>
      <p role="status">{waits.value ? "Waiting until somebody approves this browser …" : ""}</p>
      <p id="trouble" class="bad" role="alert">{trouble.value}</p>
    </main>
  );
}

// Leaving is what is shown while somebody logs out, and what has gone wrong.
function Leaving({ page, wrong, again }: { page: Page; wrong: string; again: boolean }) {
  if (!wrong) return <main class="login"><h1>acp</h1><p role="status">Logging out …</p></main>;
  return (
    <main class="login">
      <h1>{again ? "This browser is still logged in" : "This browser has logged out, but"}</h1>
      <p role="alert" class="bad">{wrong}</p>
      <p>What this browser had kept of the sessions is removed.{again && " The gateway knows the browser still. You can also revoke it from another device, or with acp devices revoke."}</p>
      <p class="buttons"><button class="primary" autofocus onClick={() => (again ? void page.logout() : location.replace("/"))}>{again ? "Try again" : "Continue"}</button></p>
    </main>
  );
}
