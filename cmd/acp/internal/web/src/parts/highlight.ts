// Colours of code. This module is large and is loaded when the first code is shown.

import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const low = createLowlight({
  bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, makefile, markdown, php, python,
  ruby, rust, sql, swift, typescript, xml, yaml,
});
low.registerAlias({ bash: ["shell", "console", "zsh", "sh-session"], javascript: ["node"], xml: ["vue", "svelte"], json: ["json5"] });

/** A piece of code: a text, or pieces that have classes in common. */
export type Piece = string | { classes: string[]; pieces: Piece[] };

const kept = new Map<string, Piece[]>(); // the last ones, as a row that scrolls back into view asks again
const most = 100;

/** highlight returns the pieces of a code, or null if the language is unknown. */
export function highlight(language: string, text: string): Piece[] | null {
  const name = language.toLowerCase();
  if (!low.registered(name)) return null;
  const key = name + "\n" + text;
  let pieces = kept.get(key);
  if (pieces === undefined) {
    pieces = piecesOf(low.highlight(name, text, { prefix: "hl-" }).children);
    if (kept.size >= most) kept.delete(kept.keys().next().value!);
    kept.set(key, pieces);
  }
  return pieces;
}

// piecesOf takes nothing over from a tree but texts and the names of classes.
function piecesOf(nodes: readonly { type: string }[]): Piece[] {
  const list: Piece[] = [];
  for (const n of nodes as readonly { type: string; value?: string; properties?: { className?: unknown }; children?: { type: string }[] }[]) {
    if (n.type === "text") list.push(n.value ?? "");
    else if (n.type === "element") {
      const names = n.properties?.className;
      list.push({ classes: Array.isArray(names) ? names.map(String) : [], pieces: piecesOf(n.children ?? []) });
    }
  }
  return list;
}
