// A command that an agent runs.

import { Ansi } from "./Ansi";
import { Copy } from "./Code";
import { beginning, plural, size, visible } from "./text";
import { useCut } from "./whole";

/** A TerminalState is what is known of a command. */
export interface TerminalState {
  command: string;
  cwd: string;
  /** What it wrote, decoded. */
  text: string;
  /** Characters before text that are not kept. */
  skipped: number;
  /** Bytes before text that are not kept, where these are counted instead. */
  skippedBytes?: number;
  /** How it ended; null as long as it runs; undefined if nobody knows. */
  exit: { exitCode?: number | null; signal?: string | null } | null | undefined;
  /** A signal that changes with each of these, if they change in place. */
  rev?: { readonly value: number };
}

/** TerminalView shows a command and what it writes. */
export function TerminalView({ terminal }: { terminal: TerminalState }) {
  const cut = useCut();
  void terminal.rev?.value; // drawn again when this is another one
  const { command, cwd, text, skipped, skippedBytes = 0, exit } = terminal;
  const failed = exit != null && (exit.signal != null || (exit.exitCode != null && exit.exitCode !== 0));
  return (
    <div class="terminal">
      {command && (
        <div class="command">
          <code><span class="prompt" aria-hidden="true">$ </span>{visible(cut(command, 10_000))}</code>
          <Copy text={command} />
        </div>
      )}
      {cwd && <div class="cwd">in {visible(cut(cwd, 1000))}</div>}
      {skipped > 0 && <p class="note">{plural(skipped, "character")} before this are not kept.</p>}
      {skippedBytes > 0 && <p class="note">{size(skippedBytes)} before this are not kept.</p>}
      {text && <Ansi text={text} />}
      {exit !== undefined && <div class={"exit" + (failed ? " bad" : "")}>{exit === null ? <><span class="pulse" aria-hidden="true" />running</> : ending(exit)}</div>}
    </div>
  );
}

function ending(exit: { exitCode?: number | null; signal?: string | null }): string {
  if (exit.signal != null) return "ended by " + visible(beginning(exit.signal, 80));
  return exit.exitCode != null ? "exit status " + exit.exitCode : "ended";
}
