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
