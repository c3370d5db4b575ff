import { useEffect, useRef } from "preact/hooks";
import { textOf, type Conversation } from "../conversation";
import { prose } from "../parts/text";
import { say } from "../say";

const enough = 1000; // characters; whoever wants to hear more goes to the message

// useHeard tells people who cannot see the page what the agent has said, once it has ended. The log itself is silent: what
// comes in it in pieces would be read in pieces.
export function useHeard(talk: Conversation) {
  const busy = talk.busy.value, before = useRef(busy);
  useEffect(() => {
    const ended = before.current && !busy;
    before.current = busy;
    if (!ended || talk.loading.peek()) return;
    const last = talk.later.peek() ? undefined : talk.fold.peek().entries.peek().at(-1);
    if (last?.kind !== "message" || last.role !== "agent") return say("The agent has ended");
    const text = prose(textOf(last.content));
    say("The agent: " + (text.length > enough ? "… " + text.slice(-enough) : text));
  }, [busy]);
}
