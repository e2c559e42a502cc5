import type { Item } from "./items";

/** A stretch of a file that was changed: what it was, and what it is now. */
export interface Hunk {
  before: string;
  after: string;
}

export interface ChangedFile {
  path: string;
  hunks: Hunk[];
}

export interface TurnLabel {
  /** The key of the prompt that began it. */
  key: number;
  text: string;
}

/**
 * What a session's tool calls changed, by file, in one turn or since the beginning. Agents tell of whole files or of
 * stretches: a change that begins with what the one before it left is part of the same hunk.
 */
export function changesOf(items: readonly Item[], turn: number | null = null): ChangedFile[] {
  const files = new Map<string, Hunk[]>();
  let current: number | null = null;
  for (const item of items) {
    if (item.kind === "user") current = item.key;
    if (item.kind !== "tool" || (turn !== null && turn !== current) || item.call.status === "failed") continue;
    for (const content of item.call.content ?? []) {
      if (content.type !== "diff") continue;
      const hunks = files.get(content.path) ?? [];
      files.set(content.path, hunks);
      const last = hunks.findLast(({ after }) => after === (content.oldText ?? ""));
      if (last !== undefined && last.after !== "") last.after = content.newText;
      else hunks.push({ before: content.oldText ?? "", after: content.newText });
    }
  }
  return [...files]
    .map(([path, hunks]) => ({ path, hunks: hunks.filter(({ before, after }) => before !== after) }))
    .filter(({ hunks }) => hunks.length > 0)
    .sort((one, other) => one.path.localeCompare(other.path, undefined, { numeric: true }));
}

/** The turns in which something was changed, the newest first. */
export function changingTurns(items: readonly Item[]): TurnLabel[] {
  const turns: TurnLabel[] = [];
  let current: TurnLabel | null = null;
  for (const item of items) {
    if (item.kind === "user") current = { key: item.key, text: item.body.text.trim().split("\n")[0]?.slice(0, 60) ?? "" };
    else if (item.kind === "tool" && current !== null && turns.at(-1) !== current && item.call.content?.some(({ type }) => type === "diff")) turns.push(current);
  }
  return turns.reverse();
}
