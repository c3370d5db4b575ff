import { useLayoutEffect } from "preact/hooks";
import { offer, waits } from "../login";
import type { Page } from "../page";
import { Dialogs } from "./Dialogs";
import { Help } from "./Help";
import { keys } from "./keys";
import { List } from "./List";
import { Login, Offered } from "./Login";
import { Menu } from "./Menu";
import { New } from "./New";
import { Settings } from "./Settings";
import { Talk } from "./Talk";
import { prose } from "../parts/text";

export function App({ page }: { page: Page }) {
  useLayoutEffect(() => keys(page), [page]); // as soon as there is something to see
  const state = page.link.state.value;
  if (offer.value) return <Offered offer={offer.value} />;
  if (state === "refused" || waits.value) return <Login page={page} />;
  const lost = state === "lost" || (state === "open" && page.link.doubt.value);
  const open = page.open.value, both = !page.narrow.value;
  return (
    <div class="app">
      <div class="strip" role="status">{lost && <p>No connection. Trying again … <button onClick={() => page.link.wake()}>Now</button></p>}</div>
      {(both || !page.route.value) && <List page={page} />}
      {open ? <Talk key={open.id} page={page} talk={open} /> : both && <main class="nothing"><p>Choose a session, or begin one.</p></main>}
      <div class="toast" role="status">{page.message.value && <p>{prose(page.message.value)}</p>}</div>
      <Menu page={page} />
      <Dialogs page={page} />
      {page.dialog.value === "help" && <Help page={page} />}
      {page.dialog.value === "settings" && <Settings page={page} />}
      {page.dialog.value === "new" && <New page={page} />}
    </div>
  );
}
