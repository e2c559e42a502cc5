import type { AvailableCommand, ContentBlock, PromptCapabilities } from "@agentclientprotocol/sdk";
import { type ChangeEvent, type ClipboardEvent, type DragEvent, type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { bytes, ErrorLine } from "../parts/small";
import { completeMention, filesLike, linksIn, openMention } from "../state/mentions";
import { draftOf, keepDraft, watchDraft } from "../state/drafts";
import { Icon } from "../parts/Icon";
import "./Composer.css";

interface Props {
  session: string;
  /** The session's directory, in which `@` finds files. */
  root: string;
  /** Something is asked above: one line is enough. */
  isSlim: boolean;
  isBusy: boolean;
  isLocked: boolean;
  commands: AvailableCommand[];
  capabilities: PromptCapabilities;
  /** What was sent before, the newest last. */
  history: () => string[];
  onSend: (prompt: ContentBlock[]) => void;
  /** Sends into the turn that runs; null where none does, or the agent cannot. */
  onSteer: ((prompt: ContentBlock[]) => void) | null;
  onCancel: () => void;
  /** What can be chosen for the next turn. */
  children: ReactNode;
}

const LIMIT = 8_000_000;

let wantsFocus = false;

/** Who has just started a session wants to write in it. */
export function focusPromptNext(): void {
  wantsFocus = true;
}

export function Composer({ session, root, isSlim, isBusy, isLocked, commands, capabilities, history, onSend, onSteer, onCancel, children }: Props) {
  const [draft, setDraft] = useState(() => draftOf(session));
  const { text, files } = draft;
  const change = (more: Partial<typeof draft>): void => {
    const changed = { ...draft, ...more };
    keepDraft(session, changed);
    setDraft(changed);
  };
  const setText = (words: string): void => change({ text: words });
  const setFiles = (chosen: File[]): void => change({ files: chosen });
  const [back, setBack] = useState(0);
  const [error, setError] = useState<string | null>(null);
  const [picked, setPicked] = useState(0);
  const [isDismissed, setDismissed] = useState(false);
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const listId = useId();
  const mentioned = useRef(new Set<string>());
  const paths = useFiles(isLocked ? null : openMention(text), root, session);
  const offered = useMemo((): Offer[] => {
    if (isDismissed) return [];
    const found = /^\/(\S*)$/.exec(text);
    if (found === null) return paths.map((path) => ({ name: `@${path}`, hint: "", text: completeMention(text, path), path }));
    return commands.filter(({ name }) => name.startsWith(found[1] as string)).map(({ name, description }) => ({ name: `/${name}`, hint: description, text: `/${name} `, path: null }));
  }, [text, commands, paths, isDismissed]);
  useEffect(() => {
    if (isLocked || !wantsFocus) return;
    wantsFocus = false;
    input.current?.focus();
  }, [isLocked]);
  useEffect(
    () =>
      watchDraft(session, (written) => {
        setDraft(written);
        input.current?.focus();
      }),
    [session],
  );
  const isEmpty = text.trim() === "" && files.length === 0;

  const send = async (to: Props["onSend"] = onSend): Promise<void> => {
    if (isEmpty || isLocked) return;
    try {
      const attached = await Promise.all(files.map((file) => blockOf(file, capabilities)));
      to([...(text.trim() === "" ? [] : [{ type: "text" as const, text }]), ...linksIn(text, mentioned.current, root), ...attached]);
      change({ text: "", files: [] });
      setBack(0);
      setError(null);
    } catch (reason) {
      setError(reason instanceof Error ? reason.message : String(reason));
    }
  };
  const complete = (offer: Offer): void => {
    if (offer.path !== null) mentioned.current.add(offer.path);
    setText(offer.text);
    setPicked(0);
    input.current?.focus();
  };
  /** Earlier prompts, as a shell has them; only where nothing would be overwritten. */
  const recall = (steps: number): boolean => {
    const earlier = history();
    const isOurs = text === "" || text === earlier.at(-back);
    const next = Math.min(earlier.length, back + steps);
    if (!isOurs || next < 0 || (back === 0 && steps < 0) || next === back) return false;
    setBack(next);
    setText(next === 0 ? "" : (earlier.at(-next) as string));
    return true;
  };
  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.nativeEvent.isComposing) return;
    const choice = offered[picked];
    if (choice !== undefined && (event.key === "Tab" || event.key === "Enter")) {
      event.preventDefault();
      complete(choice);
    } else if (offered.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setPicked((picked + (event.key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length);
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      void send(event.ctrlKey || event.metaKey ? (onSteer ?? onSend) : onSend);
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !text.includes("\n") && recall(event.key === "ArrowUp" ? 1 : -1)) event.preventDefault();
    else if (event.key === "Escape" && offered.length > 0) setDismissed(true);
    else if (event.key === "Escape" && isBusy) onCancel();
  };
  const attach = (more: FileList | null): void => setFiles([...files, ...Array.from(more ?? [])]);
  const onFiles = (event: ChangeEvent<HTMLInputElement>): void => {
    attach(event.target.files);
    event.target.value = "";
  };
  const onPaste = (event: ClipboardEvent): void => {
    if (event.clipboardData.files.length === 0 || isLocked) return;
    event.preventDefault();
    attach(event.clipboardData.files);
  };
  const onDrag = (event: DragEvent): void => {
    if (isLocked || !event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setOver(event.type === "dragover");
    if (event.type === "drop") attach(event.dataTransfer.files);
  };

  return (
    <form
      className={`composer ${isSlim && isEmpty ? "slim" : ""}`}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div className="inner">
        {offered.length > 0 && (
          <ul className="commands" id={listId} role="listbox" aria-label="Suggestions" tabIndex={0} onKeyDown={onKey}>
            {offered.map((offer, index) => (
              <li key={offer.name} role="option" aria-selected={index === picked} id={`${listId}-${index}`} ref={index === picked ? intoView : null} onClick={() => complete(offer)}>
                <span className="mono">{offer.name}</span>
                <span className="muted">{offer.hint}</span>
              </li>
            ))}
          </ul>
        )}
        {files.length > 0 && (
          <ul className="attachments" aria-label="Attached files">
            {files.map((file, index) => (
              <li key={index} className="attachment">
                <span className="mono">{file.name}</span> <span className="muted">{bytes(file.size)}</span>
                <button type="button" className="quiet small" aria-label={`Remove ${file.name}`} onClick={() => setFiles(files.filter((one) => one !== file))}>
                  <Icon name="close" size={14} />
                </button>
              </li>
            ))}
          </ul>
        )}
        <ErrorLine text={error} />
        <div className={`box ${isOver ? "over" : ""}`} onDragOver={onDrag} onDragLeave={onDrag} onDrop={onDrag}>
          <textarea
            ref={input}
            id="prompt"
            aria-label="Message to the agent"
            aria-controls={offered.length > 0 ? listId : undefined}
            aria-activedescendant={offered.length > 0 ? `${listId}-${picked}` : undefined}
            placeholder={isLocked ? "This session can only be read" : isBusy ? "Write the next message" : "Message the agent. / for commands, @ for files"}
            dir="auto"
            rows={isSlim ? 1 : Math.min(12, Math.max(2, text.split("\n").length))}
            value={text}
            disabled={isLocked}
            onChange={(event) => {
              setText(event.target.value);
              setPicked(0);
              setDismissed(false);
            }}
            onKeyDown={onKey}
            onPaste={onPaste}
          />
          <div className="buttons">
            <input ref={chooser} type="file" multiple hidden onChange={onFiles} />
            <button type="button" className="quiet icon-button" aria-label="Attach files" title="Attach files" disabled={isLocked} onClick={() => chooser.current?.click()}>
              <Icon name="attach" />
            </button>
            {children}
            {isBusy && (
              <button type="button" id="cancel" title="Stop the turn (Esc)" onClick={onCancel}>
                <Icon name="stop" size={14} />
                Stop
              </button>
            )}
            {onSteer !== null && !isEmpty && (
              <button type="button" id="steer" className="icon-button" aria-label="Add to the running turn" title="Add to the running turn (Ctrl Enter)" onClick={() => void send(onSteer)}>
                <Icon name="steer" />
              </button>
            )}
            {(!isBusy || !isEmpty) && (
              <button type="submit" id="send" className="primary" title={isBusy ? "Run it when the turn is over (Enter)" : "Send (Enter)"} disabled={isEmpty || isLocked}>
                <Icon name="send" />
                <span className={isBusy ? "" : "visually-hidden"}>{isBusy ? "Queue" : "Send"}</span>
              </button>
            )}
          </div>
        </div>
      </div>
    </form>
  );
}

/** Something that can be put in place of what was written. */
interface Offer {
  name: string;
  hint: string;
  text: string;
  /** Of a file. */
  path: string | null;
}

/** The files that a mention may mean; none while nothing is mentioned. */
function useFiles(partial: string | null, root: string, session: string): string[] {
  const [found, setFound] = useState<string[]>(NONE);
  useEffect(() => {
    if (partial === null) return setFound(NONE);
    let isOver = false;
    filesLike(partial, root, session).then(
      (paths) => !isOver && setFound(paths),
      () => !isOver && setFound(NONE), // no such directory: then it is a word like any other
    );
    return () => {
      isOver = true;
    };
  }, [partial, root, session]);
  return found;
}

const NONE: string[] = [];

function intoView(node: HTMLElement | null): void {
  node?.scrollIntoView({ block: "nearest" });
}

/** As the agent can take it: an image, the text itself, or the text under a heading with the file's name. */
async function blockOf(file: File, capabilities: PromptCapabilities): Promise<ContentBlock> {
  if (file.size > LIMIT) throw new Error(`${file.name} is larger than ${bytes(LIMIT)}: upload it under Files instead`);
  if (file.type.startsWith("image/") && capabilities.image) {
    return { type: "image", mimeType: file.type, data: await base64(file) };
  }
  const content = new Uint8Array(await file.arrayBuffer());
  const text = decode(content);
  const uri = `file:///${encodeURIComponent(file.name)}`;
  if (text === null) {
    if (!capabilities.embeddedContext) throw new Error(`This agent takes no binary files: ${file.name}`);
    return { type: "resource", resource: { uri, mimeType: file.type || "application/octet-stream", blob: await base64(file) } };
  }
  if (!capabilities.embeddedContext) return { type: "text", text: `${file.name}:\n\n${text}` };
  return { type: "resource", resource: { uri, mimeType: file.type || "text/plain", text } };
}

function decode(content: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch {
    return null;
  }
}

async function base64(file: File): Promise<string> {
  const content = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < content.length; at += 0x8000) binary += String.fromCharCode(...content.subarray(at, at + 0x8000));
  return btoa(binary);
}
