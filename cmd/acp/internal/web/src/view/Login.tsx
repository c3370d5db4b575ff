import { useState } from "preact/hooks";
import { isForgotten } from "../forget";
import { login, type Offer, trouble, waits } from "../login";
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
  if (waits.value) return <main class="login"><h1>acp</h1><p role="status">Waiting until somebody approves this browser …</p></main>;
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
      <p id="trouble" class="bad" role="alert">{trouble.value}</p>
    </main>
  );
}

// Offered asks whether a link that somebody has followed is to log this browser in.
export function Offered({ offer: { me, answer } }: { offer: Offer }) {
  return (
    <main class="login">
      <h1>Log in by this link?</h1>
      <p>Whoever made it chose whose sessions this browser sees, and can see what is done in them. Log in if you made it, or trust who did.</p>
      {me && <p class="bad">This browser is logged in{me.user && <> as <b>{visible(me.user)}</b></>}{me.name && <>, by the name <b>{visible(me.name)}</b></>}. That ends if it logs in by the link.</p>}
      <p class="buttons"><button class="primary" autofocus={!me} onClick={() => answer(true)}>Log in</button><button autofocus={!!me} onClick={() => answer(false)}>Not now</button></p>
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
