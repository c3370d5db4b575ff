import { Blocks } from "../parts/Blocks";
import type { Conversation } from "../conversation";
import type { Sending } from "../outbox";
import { prose } from "../parts/text";

// Sendings are the prompts of this page that are not in the log yet.
export function Sendings({ talk }: { talk: Conversation }) {
  return <>{talk.sending.value.map((s) => <One key={s.operationId} talk={talk} s={s} />)}</>;
}

function One({ talk, s }: { talk: Conversation; s: Sending }) {
  const says = s.failed ? "Not sent: " + prose(s.failed) : s.steering ? "For the turn that runs" : s.before === null ? "Sending …" : s.before === 0 ? "Next" : s.before === 1 ? "Waits for another prompt" : `Waits for ${s.before} other prompts`;
  return (
    <article class={"message user sending" + (s.failed ? " failed" : "")}>
      <h3>You <span class="status" role="status">{says}</span></h3>
      <Blocks content={s.content} live={false} />
      {s.before !== null && !s.failed && <p class="buttons"><button disabled={s.taking} onClick={() => void talk.takeBack(s)}>{s.taking ? "Taking back …" : "Take back"}</button></p>}
      {s.failed && <p class="buttons"><button onClick={() => talk.retry(s)}>Send again</button><button onClick={() => talk.discard(s)}>Discard</button></p>}
    </article>
  );
}
