import type { Row } from "./rows";
import { Store } from "./store";

/** What is being looked for in the conversation; null while nobody looks. */
export const wantedText = new Store<string | null>(null);

/** The rows in which a text stands, in order. Upper and lower case are the same. */
export function rowsWith(rows: readonly Row[], text: string): number[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  return rows.flatMap((row, index) => (wordsOf(row).toLowerCase().includes(wanted) ? [index] : []));
}

/** The row of an item in which a word stands, or else its first; -1 where it has none. */
export function rowOf(rows: readonly Row[], item: number, words: readonly string[]): number {
  const first = rows.findIndex((row) => row.item.key === item);
  const sought = words.map((word) => word.toLowerCase());
  for (let at = first; at !== -1 && rows[at]?.item.key === item; at += 1) {
    const text = wordsOf(rows[at] as Row).toLowerCase();
    if (sought.some((word) => text.includes(word))) return at;
  }
  return first;
}

function wordsOf({ item, piece }: Row): string {
  switch (item.kind) {
    case "agent":
    case "user": {
      const content = item.body.piece(piece);
      return typeof content === "string" ? content : "";
    }
    case "thought":
      return item.body.text;
    case "tool":
      return [item.call.title, JSON.stringify(item.call.content ?? []), ...item.terminals.map(({ output }) => output)].join("\n");
    case "plan":
      return item.plan.entries.map(({ content }) => content).join("\n");
    case "ask":
      return JSON.stringify(item.params);
    case "note":
      return `${item.text}\n${item.detail ?? ""}`;
  }
}
