import { useContext, useMemo, useState } from "react";
import { type DiffLine, diffLines, sideBySide, withContext } from "./diff";
import { type Token, tokenLines, useHighlight } from "./highlight";
import { below, Root } from "./root";
import "./DiffView.css";
import "./highlight.css";

const SIGNS = { same: " ", added: "+", removed: "−" } as const;
/** Rows beyond which the rest is drawn on demand. */
const MANY = 400;

type Tokens = (line: DiffLine) => Token[] | null;

export function DiffView({ path, before, after }: { path: string; before: string; after: string }) {
  const [isSplit, setSplit] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const highlight = useHighlight();
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const all = useMemo(() => withContext(lines), [lines]);
  const shown = useMemo(() => (isWhole ? all : all.slice(0, MANY)), [all, isWhole]);
  const tokens = useMemo((): Tokens => {
    const old = tokenLines(highlight, before, path);
    const now = tokenLines(highlight, after, path);
    return (line) => (line.new === null ? (old?.[(line.old ?? 0) - 1] ?? null) : (now?.[line.new - 1] ?? null));
  }, [highlight, before, after, path]);
  const name = below(path, useContext(Root));
  const added = lines.filter(({ kind }) => kind === "added").length;
  const removed = lines.filter(({ kind }) => kind === "removed").length;
  return (
    <figure className="diff" dir="ltr">
      <figcaption>
        <span className="mono path" title={path}>
          <span className="folder">{name.slice(0, name.lastIndexOf("/") + 1)}</span>
          <span>{name.slice(name.lastIndexOf("/") + 1)}</span>
        </span>
        <span className="added">+{added}</span>
        <span className="removed">−{removed}</span>
        <button type="button" className="quiet small" aria-pressed={isSplit} onClick={() => setSplit(!isSplit)}>
          {isSplit ? "Inline" : "Side by side"}
        </button>
      </figcaption>
      <div className="scroll-x">{isSplit ? <Split lines={shown} tokens={tokens} /> : <Inline lines={shown} tokens={tokens} />}</div>
      {shown.length < all.length && (
        <button type="button" className="quiet small" onClick={() => setWhole(true)}>
          Show {all.length - shown.length} more lines
        </button>
      )}
    </figure>
  );
}

interface Lines {
  lines: (DiffLine | null)[];
  tokens: Tokens;
}

function Inline({ lines, tokens }: Lines) {
  return (
    <table className="mono">
      <tbody>
        {lines.map((line, index) =>
          line === null ? (
            <tr key={index} className="cut">
              <td colSpan={3}>⋯</td>
            </tr>
          ) : (
            <tr key={index} className={line.kind}>
              <td className="number">{line.old ?? ""}</td>
              <td className="number">{line.new ?? ""}</td>
              <td className="code">
                <span className="sign">{SIGNS[line.kind]}</span>
                <Words line={line} tokens={tokens(line)} />
              </td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

function Split({ lines, tokens }: Lines) {
  const rows = useMemo(() => sideBySide(lines), [lines]);
  const cell = (line: DiffLine | null) => <td className={`code ${line?.kind ?? "none"}`}>{line && <Words line={line} tokens={tokens(line)} />}</td>;
  return (
    <table className="mono split">
      <colgroup>
        <col className="number" />
        <col />
        <col className="number" />
        <col />
      </colgroup>
      <tbody>
        {rows.map((row, index) =>
          row === null ? (
            <tr key={index} className="cut">
              <td colSpan={4}>⋯</td>
            </tr>
          ) : (
            <tr key={index}>
              <td className="number">{row[0]?.old ?? ""}</td>
              {cell(row[0])}
              <td className="number">{row[1]?.new ?? ""}</td>
              {cell(row[1])}
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

/** A line with the colours of its language, and with the words marked that changed. */
function Words({ line: { text, marks, kind }, tokens }: { line: DiffLine; tokens: Token[] | null }) {
  if (tokens === null && (marks === null || kind === "same")) return text;
  const spans = cut(tokens ?? [{ text, look: "" }], kind === "same" ? [] : (marks ?? []));
  return spans.map(({ text: piece, look }, index) => (look === "" ? piece : <span key={index} className={look}>{piece}</span>));
}

/** Tokens cut at the edges of the marks. */
function cut(tokens: Token[], marks: [number, number][]): Token[] {
  const found: Token[] = [];
  let at = 0;
  for (const { text, look } of tokens) {
    const edges = marks.flat().filter((edge) => edge > at && edge < at + text.length);
    let from = at;
    for (const to of [...edges, at + text.length]) {
      const isMarked = marks.some(([start, end]) => start <= from && to <= end);
      found.push({ text: text.slice(from - at, to - at), look: `${look}${isMarked ? " changed" : ""}`.trim() });
      from = to;
    }
    at += text.length;
  }
  return found;
}
