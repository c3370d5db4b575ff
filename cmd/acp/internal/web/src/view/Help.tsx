import type { Page } from "../page";
import { list } from "./keys";
import { Modal } from "./Modal";

// Help has every action by keyboard.
export function Help({ page }: { page: Page }) {
  const places = [...new Set(list.map((k) => k.where))];
  return (
    <Modal title="Keys" close={() => { page.dialog.value = ""; }}>
      {places.map((p) => (
        <section key={p} class="help" aria-labelledby={"keys-" + p}>
          <h3 id={"keys-" + p}>{p}</h3>
          <dl class="keys">
            {list.filter((k) => k.where === p).map((k) => <div key={k.shown}><dt><kbd>{k.shown}</kbd></dt><dd>{k.what}</dd></div>)}
          </dl>
        </section>
      ))}
    </Modal>
  );
}
