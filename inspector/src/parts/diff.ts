import { diffArrays, diffWordsWithSpace } from "diff";

export interface DiffLine {
  kind: "same" | "added" | "removed";
  old: number | null;
  new: number | null;
  text: string;
  /** Where in the text the change is, from and to; null where the whole line is new. */
  marks: [number, number][] | null;
}

/** Milliseconds after which two very different texts are shown as all removed, all added. */
const PATIENCE = 400;
const LONG_LINE = 600;

/** Lines that differ, with the words that do. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = linesOf(before);
  const b = linesOf(after);
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  for (const { added, removed, count } of diffArrays(a, b, { timeout: PATIENCE }) ?? replaced(a, b)) {
    for (let step = 0; step < count; step += 1) {
      if (removed) lines.push({ kind: "removed", old: ++i, new: null, text: a[i - 1] as string, marks: null });
      else if (added) lines.push({ kind: "added", old: null, new: ++j, text: b[j - 1] as string, marks: null });
      else lines.push({ kind: "same", old: ++i, new: ++j, text: a[i - 1] as string, marks: null });
    }
  }
  markWords(lines);
  return lines;
}

function replaced(a: string[], b: string[]): { added: boolean; removed: boolean; count: number }[] {
  return [
    { added: false, removed: true, count: a.length },
    { added: true, removed: false, count: b.length },
  ];
}

/** Lines that were removed and added at one place belong together, one by one. */
function markWords(lines: DiffLine[]): void {
  for (let at = 0; at < lines.length; ) {
    const removed = runOf(lines, at, "removed");
    const added = runOf(lines, at + removed, "added");
    if (removed === added) for (let step = 0; step < removed; step += 1) markPair(lines[at + step] as DiffLine, lines[at + removed + step] as DiffLine);
    at += Math.max(1, removed + added);
  }
}

function runOf(lines: DiffLine[], at: number, kind: DiffLine["kind"]): number {
  let count = 0;
  while (lines[at + count]?.kind === kind) count += 1;
  return count;
}

function markPair(before: DiffLine, after: DiffLine): void {
  if (before.text.length > LONG_LINE || after.text.length > LONG_LINE) return;
  const [old, now]: [number, number][][] = [[], []];
  let kept = 0;
  let i = 0;
  let j = 0;
  for (const { added, removed, value } of diffWordsWithSpace(before.text, after.text)) {
    if (removed) old?.push([i, i + value.length]);
    else if (added) now?.push([j, j + value.length]);
    else kept += value.trim().length;
    if (!added) i += value.length;
    if (!removed) j += value.length;
  }
  if (kept * 3 < Math.min(before.text.length, after.text.length)) return; // another line rather than a changed one
  before.marks = old ?? null;
  after.marks = now ?? null;
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}

/** Runs of unchanged lines longer than `context` on both sides are left out; null stands for what was left out. */
export function withContext(lines: DiffLine[], context = 3): (DiffLine | null)[] {
  const isNear = lines.map(() => false);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let near = Math.max(0, index - context); near <= Math.min(lines.length - 1, index + context); near += 1) isNear[near] = true;
  });
  const kept: (DiffLine | null)[] = [];
  lines.forEach((line, index) => {
    if (isNear[index]) kept.push(line);
    else if (kept.at(-1) !== null) kept.push(null);
  });
  return kept;
}

/** Removed and added lines that belong together, next to each other. */
export function sideBySide(lines: (DiffLine | null)[]): ([DiffLine | null, DiffLine | null] | null)[] {
  const rows: ([DiffLine | null, DiffLine | null] | null)[] = [];
  let left: DiffLine[] = [];
  let right: DiffLine[] = [];
  const flush = (): void => {
    for (let index = 0; index < Math.max(left.length, right.length); index += 1) rows.push([left[index] ?? null, right[index] ?? null]);
    left = [];
    right = [];
  };
  for (const line of lines) {
    if (line?.kind === "removed") left.push(line);
    else if (line?.kind === "added") right.push(line);
    else {
      flush();
      rows.push(line === null ? null : [line, line]);
    }
  }
  flush();
  return rows;
}
