// What somebody decides about is shown whole.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { beginning } from "./text";

/** Whole is true inside of what is shown whole, and open from the start. */
export const Whole = createContext(false);

/** useCut returns what shortens a text to some characters, which nothing does inside of what is shown whole. */
export function useCut(): (text: string, most: number) => string {
  return useContext(Whole) ? (text) => text : beginning;
}
