import { useLayoutEffect } from "preact/hooks";
import { waits } from "../login";
import type { Page } from "../page";
import { Dialogs } from "./Dialogs";
import { Help } from "./Help";
import { keys } from "./keys";
import { List } from "./List";
import { Login } from "./Login";
import { Menu } from "./Menu";
import { New } from "./New";
import { Settings } from "./Settings";
import { Talk } from "./Talk";
import { prose } from "../parts/text";

export function App({ page }: { page: Page }) {
  useLayoutEffect(() => keys(page), [page]); // as soon as there is something to see
  const state = page.link.state.value;
  if (state === "refused" || waits.value) return <Login page={page} />;
  const open = page.open.value, both = !page.narrow.value;
  return (
    <div class="app">
      {(both || !page.route.value) && <List page={page} />}
      {open ? <Talk key={open.id} page={page} talk={open} /> : both && <main class="nothing"><p>Choose a session, or begin one.</p></main>}
      <Status page={page} />
      <Menu page={page} />
      <Dialogs page={page} />
      {page.dialog.value === "help" && <Help page={page} />}
      {page.dialog.value === "settings" && <Settings page={page} />}
      {page.dialog.value === "new" && <New page={page} />}
    </div>
  );
}

// Status says what is wrong with the connection, and what has gone wrong otherwise.
function Status({ page }: { page: Page }) {
  const state = page.link.state.value;
  const lost = state === "lost" || (state === "open" && page.link.doubt.value);
  return (
    <div class="toast" role="status">
      {lost && <p class="bad">No connection. Trying again … <button onClick={() => page.link.wake()}>Now</button></p>}
      {page.message.value && <p>{prose(page.message.value)}</p>}
    </div>
  );
}
