import type { Page } from "../page";
import type { PushState } from "../push";

const ipad = /iPhone|iPad/.test(navigator.userAgent);

// why says why there are no notifications.
const why: Partial<Record<PushState, string>> = {
  browser: ipad ? "Add this page to the home screen, and open it there: browsers of iPhones and iPads have notifications for such pages alone."
    : "This browser has none for this page. It needs a push service, and TLS unless the gateway is on the same machine.",
  denied: "The browser does not allow them: permit notifications in its settings for this site.",
  device: "They are for browsers that were paired, as devices.",
  gateway: "This gateway sends none.",
};

// Notifications has what is about notifications of the system.
export function Notifications({ page }: { page: Page }) {
  const { push } = page, state = push.state.value, on = state === "on";
  return (
    <fieldset class="field">
      <legend>Notifications</legend>
      {why[state] ? <p class="about">{why[state]}</p> : (
        <>
          <label class="tick">
            <input type="checkbox" id="push" checked={on} disabled={state === "asking"} aria-describedby="push-about"
              onChange={(e) => { const wants = e.currentTarget.checked; e.currentTarget.checked = on; void (wants ? push.subscribe(push.title.value, true) : push.unsubscribe()); }} />
            <span>Tell me when a session waits</span>
          </label>
          <label class="tick">
            <input type="checkbox" id="push-title" checked={push.title.value} disabled={!on} onChange={(e) => void push.subscribe(e.currentTarget.checked, true)} />
            <span>Show its title</span>
          </label>
          <p class="about" id="push-about">When the agent asks something, or has finished while nobody watches. It is sent by the push service of the browser's maker, encrypted: that learns when, and not what.</p>
        </>
      )}
      <p class="bad" role="alert">{push.wrong.value}</p>
    </fieldset>
  );
}
