import { useState } from "preact/hooks";
import type { Conversation } from "../conversation";
import type { Page } from "../page";
import { Usage } from "../parts/Usage";
import { Asks } from "./Asks";
import { Composer } from "./Composer";
import { useHeard } from "./heard";
import { MenuButton } from "./Menu";
import { Options } from "./Options";
import { Scroll } from "./Scroll";
import { prose, visible } from "../parts/text";
import { limitIn, modelIn, taskIn } from "../vendor";

// Talk shows a conversation.
export function Talk({ page, talk }: { page: Page; talk: Conversation }) {
  useHeard(talk);
  const [unfolded, unfold] = useState(false); // the composer, while a question takes its place on a small screen
  const fold = talk.fold.value, about = page.sessions.get(talk.id);
  const tasks = fold.background.value.map(taskIn).filter(Boolean);
  const others = talk.people.value.filter((p) => !p.you);
  const title = prose(fold.title.value || about?.title || "Untitled");
  return (
    <main class="talk">
      <header class="head">
        {page.narrow.value && <a class="back" href="#" aria-label="All sessions">‹</a>}
        <h1 title={title}>{title}</h1>
        {about && <MenuButton page={page} id={talk.id} title="this session" />}
        <span class="about">{visible([about?.agent, about?.cwd].filter(Boolean).join(" · "))}</span>
        {others.length > 0 && <span class="people" title={visible(others.map((p) => `${p.name} (${p.role ?? ""})`).join(", "))}>{others.length === 1 ? `${visible(others[0].name)} is here` : `${others.length} others are here`}</span>}
        {tasks.length > 0 && <span class="people" title={tasks.join(", ")}>{tasks.length === 1 ? tasks[0] : `${tasks.length} tasks in the background`}</span>}
        {fold.usage.value && <Usage usage={fold.usage.value} model={fold.options.value.some((o) => o.category === "model") ? "" : modelIn(fold.usage.value._meta)} limit={limitIn(fold.usage.value._meta, Date.now())} />}
      </header>
      <Scroll key={talk.id} talk={talk} />
      <footer class={unfolded && talk.asks.value.length > 0 ? "foot unfolded" : "foot"}>
        <Asks talk={talk} unfold={() => { unfold(true); setTimeout(() => document.querySelector<HTMLElement>("#prompt")?.focus()); }} />
        <Composer page={page} talk={talk} />
        <Options talk={talk} />
      </footer>
    </main>
  );
}
