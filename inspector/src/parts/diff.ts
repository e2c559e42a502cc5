export interface DiffLine {
  kind: "same" | "added" | "removed";
  old: number | null;
  new: number | null;
  text: string;
}

const LIMIT = 4_000_000;

/** Lines that differ, by their longest common subsequence; of very large texts, all lines count as changed. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = linesOf(before);
  const b = linesOf(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const lines: DiffLine[] = [];
  const same = (index: number, shift: number): void =>
    void lines.push({ kind: "same", old: index + 1, new: index + shift + 1, text: a[index] as string });
  for (let index = 0; index < start; index += 1) same(index, 0);
  lines.push(...diffMiddle(a, b, start, a.length - end, b.length - end));
  for (let index = a.length - end; index < a.length; index += 1) same(index, b.length - a.length);
  return lines;
}

function diffMiddle(a: string[], b: string[], start: number, aEnd: number, bEnd: number): DiffLine[] {
  const n = aEnd - start;
  const m = bEnd - start;
  const removed = (i: number): DiffLine => ({ kind: "removed", old: i + 1, new: null, text: a[i] as string });
  const added = (j: number): DiffLine => ({ kind: "added", old: null, new: j + 1, text: b[j] as string });
  const all = (count: number, make: (index: number) => DiffLine): DiffLine[] =>
    Array.from({ length: count }, (_, index) => make(start + index));
  if (n === 0 || m === 0 || n * m > LIMIT) return [...all(n, removed), ...all(m, added)];
  const width = m + 1;
  const lengths = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let j = m - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        a[start + i] === b[start + j]
          ? (lengths[(i + 1) * width + j + 1] as number) + 1
          : Math.max(lengths[(i + 1) * width + j] as number, lengths[i * width + j + 1] as number);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && a[start + i] === b[start + j]) {
      lines.push({ kind: "same", old: start + i + 1, new: start + j + 1, text: a[start + i] as string });
      i += 1;
      j += 1;
    } else if (i < n && (j >= m || (lengths[(i + 1) * width + j] as number) >= (lengths[i * width + j + 1] as number))) {
      lines.push(removed(start + i));
      i += 1;
    } else {
      lines.push(added(start + j));
      j += 1;
    }
  }
  return lines;
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
