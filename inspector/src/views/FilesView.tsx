import type { FsEntry } from "sandbox-agent-client";
import { type ChangeEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { languageOf, useHighlight } from "../parts/highlight";
import { MarkdownText } from "../parts/markdown";
import { bytes, Dialog, Empty, ErrorLine, save, Time } from "../parts/small";
import { changesOf } from "../state/changes";
import { reasonOf, sandbox } from "../state/server";
import type { Timeline } from "../state/timeline";
import { Icon } from "../parts/Icon";
import "./FilesView.css";

const SHOWN = 512_000;
/** Milliseconds between two looks at a directory in which an agent is at work. */
const EVERY = 3_000;

interface Props {
  root: string;
  sessionId: string;
  timeline: Timeline;
  /** When a turn is over, what it has left behind is shown. */
  isBusy: boolean;
  /** A file to begin with. */
  wanted: string | null;
}

/** The session's directory: look around, read, bring files in and take them out. */
export function FilesView({ root, sessionId, timeline, isBusy, wanted }: Props) {
  const changed = useMemo(() => new Set(changesOf(timeline.items).map(({ path: one }) => one)), [timeline, isBusy]);
  const [path, setPath] = useState(directoryOf(wanted) ?? root);
  const [entries, setEntries] = useState<FsEntry[] | null>(null);
  const [opened, setOpened] = useState<FsEntry | null>(null);
  const [stamp, setStamp] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [clash, setClash] = useState<File[] | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const load = useCallback(async () => {
    try {
      const found = await sandbox.files.list(path, { sessionId });
      setEntries(found.sort(inNaturalOrder));
      setStamp((times) => times + 1);
      setOpened((before) => found.find((entry) => entry.path === before?.path && entry.modified !== before?.modified) ?? before);
      setError(null);
    } catch (reason) {
      setError(reasonOf(reason));
      setEntries([]);
    }
  }, [path, sessionId]);
  useEffect(() => setPath(directoryOf(wanted) ?? root), [root, wanted]);
  useEffect(() => void load(), [load, isBusy]);
  useEffect(() => {
    if (!isBusy) return;
    const timer = setInterval(() => void (document.hidden || load()), EVERY);
    return () => clearInterval(timer);
  }, [load, isBusy]);
  useEffect(() => {
    if (wanted !== null) setOpened((before) => before ?? entries?.find((entry) => entry.path === wanted) ?? null);
  }, [wanted, entries]);
  const upload = async (files: File[]): Promise<void> => {
    setClash(null);
    setDone(files.length === 1 ? `Uploading ${files[0]?.name}` : `Uploading ${files.length} files`);
    try {
      for (const file of files) await sandbox.files.write(join(path, file.name), file, { sessionId });
      await load();
      setOpened(null);
      setDone(files.length === 1 ? `Uploaded ${files[0]?.name}` : `Uploaded ${files.length} files`);
    } catch (reason) {
      setDone(null);
      setError(reasonOf(reason));
    }
  };
  const offer = (files: File[]): void => {
    const names = new Set(entries?.map(({ name }) => name));
    if (files.some(({ name }) => names.has(name))) setClash(files);
    else if (files.length > 0) void upload(files);
  };
  const onChosen = (event: ChangeEvent<HTMLInputElement>): void => {
    offer(Array.from(event.target.files ?? []));
    event.target.value = "";
  };
  const enter = (directory: string): void => {
    setPath(directory);
    setOpened(null);
    setDone(null);
  };
  const choose = (entry: FsEntry): void => {
    setDone(null);
    if (entry.entryType === "directory") enter(entry.path);
    else setOpened(entry);
  };
  return (
    <section className="files" aria-label="Files">
      <div className="toolbar">
        <Crumbs path={path} root={root} onGo={enter} />
        <input ref={chooser} type="file" multiple hidden onChange={onChosen} />
        <button type="button" className="quiet icon-button" aria-label="Refresh" title="Refresh" onClick={() => void load()}>
          <Icon name="refresh" />
        </button>
        <button type="button" onClick={() => chooser.current?.click()}>
          <Icon name="upload" />
          Upload
        </button>
      </div>
      <ErrorLine text={error} />
      {done !== null && (
        <p className="done muted" role="status">
          {done}
        </p>
      )}
      {clash !== null && (
        <Dialog title="Replace what is there?" onClose={() => setClash(null)}>
          <p>A file of the same name is in this directory already.</p>
          <footer>
            <button type="button" data-first onClick={() => setClash(null)}>
              Keep it
            </button>
            <button type="button" className="danger" onClick={() => void upload(clash)}>
              Replace
            </button>
          </footer>
        </Dialog>
      )}
      <div className={`files-panes ${opened === null ? "" : "with-file"}`}>
        <div className="entries">
          {entries !== null && entries.length === 0 && error === null && <Empty title="An empty directory" />}
          <ul>
            {entries?.map((entry) => (
              <Branch key={entry.path} entry={entry} tree={{ sessionId, changed, opened: opened?.path ?? null, stamp, onChoose: choose }} />
            ))}
          </ul>
        </div>
        {opened !== null && <FileView key={`${opened.path} ${opened.modified}`} entry={opened} sessionId={sessionId} onClose={() => setOpened(null)} />}
      </div>
    </section>
  );
}

interface Tree {
  sessionId: string;
  changed: ReadonlySet<string>;
  opened: string | null;
  /** Counts how often the directory was read: what is unfolded is read with it. */
  stamp: number;
  onChoose: (entry: FsEntry) => void;
}

/** An entry; a directory can be unfolded in its place. */
function Branch({ entry, tree }: { entry: FsEntry; tree: Tree }) {
  const { sessionId, changed, opened, stamp, onChoose } = tree;
  const isDirectory = entry.entryType === "directory";
  const [isOpen, setOpen] = useState(false);
  const [children, setChildren] = useState<FsEntry[]>([]);
  useEffect(() => {
    if (!isOpen) return;
    let isOver = false;
    sandbox.files.list(entry.path, { sessionId }).then(
      (found) => !isOver && setChildren(found.sort(inNaturalOrder)),
      () => !isOver && setOpen(false), // gone, or not to be read
    );
    return () => {
      isOver = true;
    };
  }, [isOpen, entry.path, sessionId, stamp]);
  return (
    <li>
      <div className="branch">
        {isDirectory ? (
          <button type="button" className="quiet icon-button fold" aria-label={`${isOpen ? "Fold" : "Unfold"} ${entry.name}`} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            <Icon name={isOpen ? "down" : "open"} size={14} />
          </button>
        ) : (
          <span className="fold" />
        )}
        <button type="button" className="entry-row" aria-pressed={entry.path === opened} onClick={() => onChoose(entry)}>
          <span className="mono name">
            <Icon name={isDirectory ? "folder" : "file"} />
            <span className="label">
              {entry.name}
              {isDirectory ? "/" : ""}
            </span>
            {isChanged(entry, changed) && <span className="changed-mark" role="img" aria-label="changed in this session" title="Changed in this session" />}
          </span>
          <span className="muted size">{entry.entryType === "file" ? bytes(entry.size) : ""}</span>
          <span className="muted when">{entry.modified && <Time at={Date.parse(entry.modified)} withDate />}</span>
        </button>
      </div>
      {isOpen && (
        <ul className="unfolded">
          {children.map((child) => (
            <Branch key={child.path} entry={child} tree={tree} />
          ))}
        </ul>
      )}
    </li>
  );
}

/** Directories first; `part2` before `part10`. */
function inNaturalOrder(a: FsEntry, b: FsEntry): number {
  if (a.entryType !== b.entryType) return a.entryType === "directory" ? -1 : b.entryType === "directory" ? 1 : 0;
  return a.name.localeCompare(b.name, undefined, { numeric: true });
}

function isChanged({ path, entryType }: FsEntry, changed: ReadonlySet<string>): boolean {
  return entryType === "directory" ? [...changed].some((one) => one.startsWith(`${path}/`)) : changed.has(path);
}

function directoryOf(file: string | null): string | null {
  return file === null ? null : file.slice(0, file.lastIndexOf("/")) || "/";
}

function Crumbs({ path, root, onGo }: { path: string; root: string; onGo: (path: string) => void }) {
  const base = root === "/" ? "" : root;
  const below = path.startsWith(`${base}/`) ? path.slice(base.length + 1).split("/").filter(Boolean) : [];
  const at = (count: number): string => [base, ...below.slice(0, count)].join("/") || "/";
  return (
    <nav className="crumbs mono" aria-label="Directory">
      <button type="button" className="quiet" title={root} onClick={() => onGo(root)}>
        {root.split("/").filter(Boolean).at(-1) ?? "/"}
      </button>
      {below.map((name, index) => (
        <span key={index}>
          / {" "}
          <button type="button" className="quiet" onClick={() => onGo(at(index + 1))}>
            {name}
          </button>
        </span>
      ))}
    </nav>
  );
}

type Content = { kind: "text"; text: string; isCut: boolean } | { kind: "image"; url: string } | { kind: "binary" };

function FileView({ entry, sessionId, onClose }: { entry: FsEntry; sessionId: string; onClose: () => void }) {
  const [content, setContent] = useState<Content | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [isPreview, setPreview] = useState(false);
  useEffect(() => {
    let isOver = false;
    readContent(entry, sessionId).then(
      (read) => !isOver && setContent(read),
      (reason: unknown) => !isOver && setError(reasonOf(reason)),
    );
    return () => {
      isOver = true;
    };
  }, [entry, sessionId]);
  const download = async (): Promise<void> => {
    try {
      save(entry.name, await (await sandbox.files.open(entry.path, { sessionId })).blob());
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  return (
    <div className="file">
      <header>
        <strong className="mono">{entry.name}</strong>
        <span className="muted">{bytes(entry.size)}</span>
        {/\.(md|markdown)$/i.test(entry.name) && (
          <button type="button" className="small" aria-pressed={isPreview} onClick={() => setPreview(!isPreview)}>
            Preview
          </button>
        )}
        <button type="button" className="small" onClick={() => void download()}>
          Download
        </button>
        <button type="button" className="quiet small" aria-label="Close the file" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <ErrorLine text={error} />
      {content?.kind === "text" && isPreview && (
        <div className="preview-text">
          <MarkdownText source={content.text} />
        </div>
      )}
      {content?.kind === "text" && !isPreview && <Source path={entry.path} text={content.text} />}
      {content?.kind === "text" && content.isCut && <p className="muted cut-note">{bytes(entry.size)} in all: download it to see the rest.</p>}
      {content?.kind === "image" && <img src={content.url} alt={entry.name} />}
      {content?.kind === "binary" && <Empty title="Not a text file" />}
    </div>
  );
}

/** Lines with their numbers, in the colours of the language. */
function Source({ path, text }: { path: string; text: string }) {
  const highlight = useHighlight();
  const html = useMemo(() => highlight?.(text, languageOf(path)) ?? null, [highlight, text, path]);
  const numbers = useMemo(() => Array.from({ length: text.replace(/\n$/, "").split("\n").length }, (_, index) => index + 1).join("\n"), [text]);
  return (
    <div className="source mono" tabIndex={0} role="region" aria-label="Content of the file">
      <div className="numbers" aria-hidden="true">
        {numbers}
      </div>
      {html === null ? <pre>{text}</pre> : <pre dangerouslySetInnerHTML={{ __html: html }} />}
    </div>
  );
}

const IMAGES: Record<string, string> = { png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" };

async function readContent(entry: FsEntry, sessionId: string): Promise<Content> {
  const type = IMAGES[entry.name.split(".").at(-1)?.toLowerCase() ?? ""];
  if (type !== undefined && entry.size < 10_000_000) {
    const raw = await (await sandbox.files.open(entry.path, { sessionId })).blob();
    return { kind: "image", url: await dataUrl(new Blob([raw], { type })) };
  }
  const range = entry.size > SHOWN ? { range: `bytes=0-${SHOWN - 1}` } : {};
  const raw = new Uint8Array(await (await sandbox.files.open(entry.path, { sessionId, ...range })).arrayBuffer());
  if (raw.subarray(0, 8000).includes(0)) return { kind: "binary" };
  return { kind: "text", text: new TextDecoder().decode(raw), isCut: entry.size > SHOWN };
}

async function dataUrl(blob: Blob): Promise<string> {
  return await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

function join(directory: string, name: string): string {
  return `${directory.replace(/\/$/, "")}/${name.replaceAll("/", "_")}`;
}
