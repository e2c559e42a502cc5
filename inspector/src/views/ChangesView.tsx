import { useMemo, useState } from "react";
import { diffLines } from "../parts/diff";
import { DiffView } from "../parts/DiffView";
import { Icon } from "../parts/Icon";
import { below } from "../parts/root";
import { Empty } from "../parts/small";
import { type ChangedFile, changesOf, changingTurns } from "../state/changes";
import { address } from "../state/route";
import type { Timeline } from "../state/timeline";
import "./ChangesView.css";

interface Props {
  timeline: Timeline;
  version: number;
  root: string;
  sessionId: string;
  agent: string;
}

/** What the session has changed: its files, and the difference of each. */
export function ChangesView({ timeline, version, root, sessionId, agent }: Props) {
  const [turn, setTurn] = useState<number | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the items are mutable: the version stands for them
  const turns = useMemo(() => changingTurns(timeline.items), [timeline, version]);
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const files = useMemo(() => changesOf(timeline.items, turn), [timeline, version, turn]);
  const shown = files.find(({ path }) => path === chosen) ?? files[0];
  if (turns.length === 0) {
    return (
      <section className="changes" aria-label="Changes">
        <Empty title="Nothing has been changed yet">
          <p>Files that the agent edits in this session are listed here, with what was changed in each.</p>
        </Empty>
      </section>
    );
  }
  return (
    <section className="changes" aria-label="Changes">
      <div className="toolbar">
        <select aria-label="Since when" value={turn ?? ""} onChange={(event) => setTurn(event.target.value === "" ? null : Number(event.target.value))}>
          <option value="">Since the beginning</option>
          {turns.map(({ key, text }) => (
            <option key={key} value={key}>
              Turn: {text}
            </option>
          ))}
        </select>
        <span className="muted">{files.length === 1 ? "1 file" : `${files.length} files`}</span>
        <Counts files={files} />
      </div>
      <div className="changes-panes">
        <Tree files={files} root={root} chosen={shown?.path ?? null} onChoose={setChosen} />
        <div className="hunks" tabIndex={0} role="region" aria-label="Differences">
          {shown !== undefined && (
            <a className="open-file" href={address(["sessions", sessionId], { agent, tab: "files", path: shown.path })}>
              Open in Files
            </a>
          )}
          {shown?.hunks.map(({ before, after }, index) => <DiffView key={`${shown.path} ${index}`} path={shown.path} before={before} after={after} />)}
        </div>
      </div>
    </section>
  );
}

interface TreeProps {
  files: ChangedFile[];
  root: string;
  chosen: string | null;
  onChoose: (path: string) => void;
}

/** Files below the directories that they are in. */
function Tree({ files, root, chosen, onChoose }: TreeProps) {
  const byDirectory = new Map<string, ChangedFile[]>();
  for (const file of files) {
    const directory = file.path.slice(0, file.path.lastIndexOf("/")) || "/";
    byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), file]);
  }
  return (
    <nav className="tree" aria-label="Changed files">
      {[...byDirectory].map(([directory, those]) => (
        <section key={directory}>
          <p className="mono muted" title={directory}>
            <Icon name="folder" size={14} />
            {directory === root ? "." : below(directory, root)}
          </p>
          <ul>
            {those.map((file) => (
              <li key={file.path}>
                <button type="button" className="quiet" aria-pressed={file.path === chosen} onClick={() => onChoose(file.path)}>
                  <Icon name="file" size={14} />
                  <span className="mono name">{file.path.split("/").at(-1)}</span>
                  <Counts files={[file]} />
                </button>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </nav>
  );
}

const counted = new WeakMap<ChangedFile, [number, number]>();

function Counts({ files }: { files: ChangedFile[] }) {
  const [added, removed] = files.map(countsOf).reduce(([a, r], [more, less]) => [a + more, r + less], [0, 0]);
  return (
    <span className="counts">
      <span className="added">+{added}</span> <span className="removed">−{removed}</span>
    </span>
  );
}

function countsOf(file: ChangedFile): [number, number] {
  const known = counted.get(file);
  if (known !== undefined) return known;
  const lines = file.hunks.flatMap(({ before, after }) => diffLines(before, after));
  const counts: [number, number] = [lines.filter(({ kind }) => kind === "added").length, lines.filter(({ kind }) => kind === "removed").length];
  counted.set(file, counts);
  return counts;
}
