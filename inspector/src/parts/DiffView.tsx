import { useMemo, useState } from "react";
import { type DiffLine, diffLines, sideBySide, withContext } from "./diff";
import "./DiffView.css";

const SIGNS = { same: " ", added: "+", removed: "−" } as const;

export function DiffView({ path, before, after }: { path: string; before: string; after: string }) {
  const [isSplit, setSplit] = useState(false);
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const shown = useMemo(() => withContext(lines), [lines]);
  const added = lines.filter(({ kind }) => kind === "added").length;
  const removed = lines.filter(({ kind }) => kind === "removed").length;
  return (
    <figure className="diff">
      <figcaption>
        <span className="mono path" title={path}>
          {path}
        </span>
        <span className="added">+{added}</span>
        <span className="removed">−{removed}</span>
        <button type="button" className="quiet small" aria-pressed={isSplit} onClick={() => setSplit(!isSplit)}>
          {isSplit ? "Inline" : "Side by side"}
        </button>
      </figcaption>
      <div className="scroll-x">{isSplit ? <Split lines={shown} /> : <Inline lines={shown} />}</div>
    </figure>
  );
}

function Inline({ lines }: { lines: (DiffLine | null)[] }) {
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
                {line.text}
              </td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}

function Split({ lines }: { lines: (DiffLine | null)[] }) {
  const rows = useMemo(() => sideBySide(lines), [lines]);
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
              <td className={`code ${row[0]?.kind ?? "none"}`}>{row[0]?.text ?? ""}</td>
              <td className="number">{row[1]?.new ?? ""}</td>
              <td className={`code ${row[1]?.kind ?? "none"}`}>{row[1]?.text ?? ""}</td>
            </tr>
          ),
        )}
      </tbody>
    </table>
  );
}
