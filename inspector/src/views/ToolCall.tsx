import type { ContentBlock, ToolCall, ToolCallContent } from "@agentclientprotocol/sdk";
import { lazy, type MouseEvent, Suspense, useRef, useState } from "react";
import { plainText } from "../parts/ansi";
import { MarkdownText } from "../parts/markdown";
import { bytes, Dialog, Status, took } from "../parts/small";
import { TerminalOutput } from "../parts/TerminalOutput";
import type { Terminal } from "../state/terminals";
import type { AskItem } from "../state/items";
import { Outcome } from "./Outcome";
import { Fold, Icon, iconOfTool } from "../parts/Icon";
import "./ToolCall.css";

const DiffView = lazy(async () => ({ default: (await import("../parts/DiffView")).DiffView }));

const TONES = { pending: "idle", in_progress: "busy", completed: "good", failed: "bad", paused: "idle", cancelled: "idle" } as const;
const WORDS = { pending: "Pending", in_progress: "Running", completed: "Done", failed: "Failed", paused: "Paused", cancelled: "Cancelled" } as const;
const LONG = 4_000;
/** Milliseconds from which on it is told how long a step took. Where somebody was asked it would tell how long he took. */
const NOTABLE = 500;

interface CardProps {
  call: ToolCall;
  terminals: Terminal[];
  asks: AskItem[];
  /** When it was told of, and when it was over; null while it runs. */
  time: number;
  ended: number | null;
}

/** A step of the turn: one quiet line, which unfolds. Who allowed it is told with it. */
export function ToolCard({ call, terminals, asks, time, ended }: CardProps) {
  const [choice, setChoice] = useState<boolean | null>(null);
  const wasOpen = useRef(false);
  const isAsking = asks.some(({ outcome }) => outcome === null);
  const status = call.status ?? "pending";
  const isRunning = status === "in_progress";
  const content = call.content ?? [];
  const hasMore = content.length > 0 || terminals.length > 0 || isShown(call.rawInput) || isShown(call.rawOutput) || (call.locations?.length ?? 0) > 0;
  // what opens by itself stays open until somebody closes it
  const hasOutput = terminals.some(({ output }) => output !== null) || content.some(({ type }) => type === "content");
  wasOpen.current ||= status === "failed" || (isRunning && hasOutput);
  wasOpen.current ||= status !== "pending" && !isAsking && content.some(({ type }) => type === "diff");
  const isOpen = choice ?? wasOpen.current;
  const kind = (call.kind ?? "tool").replace("_", " ");
  const settled = asks.filter(({ outcome }) => outcome !== null);
  const head = (
    <>
      <span className="tool-kind" title={kind}>
        <Icon name={iconOfTool(call.kind)} />
        <span className="visually-hidden">{kind}</span>
      </span>
      <span className={`tool-title ${isRunning ? "runs" : ""}`} title={call.title}>
        {call.title}
      </span>
      {isAsking ? <Status tone="ask">Asking</Status> : <ToolStatus status={status} />}
      {ended !== null && asks.length === 0 && ended - time >= NOTABLE && <span className="tool-took">{took(ended - time)}</span>}
      {settled.map((ask) => (
        <span key={ask.key} className="ask of-tool">
          <Outcome item={ask} />
        </span>
      ))}
    </>
  );
  const toggle = (event: MouseEvent): void => {
    event.preventDefault();
    setChoice(!isOpen);
  };
  if (!hasMore) return <div className="tool head">{head}</div>;
  return (
    <details className="tool" open={isOpen}>
      <summary className="head" onClick={toggle}>
        {head}
        <Fold />
      </summary>
      <ToolContents call={call} terminals={terminals} />
    </details>
  );
}

/** That a step is done needs no word for those who see the others. */
function ToolStatus({ status }: { status: string }) {
  const tone = TONES[status as keyof typeof TONES] ?? "idle";
  const word = WORDS[status as keyof typeof WORDS] ?? status;
  return status === "completed" ? <span className="visually-hidden">{word}</span> : <Status tone={tone}>{word}</Status>;
}

export function ToolContents({ call, terminals = [] }: { call: ToolCall; terminals?: Terminal[] }) {
  const isRunning = call.status === "in_progress" || call.status === "pending";
  const places = call.locations?.filter(({ path }) => !changes(call, path)) ?? []; // a diff says itself where it is
  return (
    <div className="tool-body">
      {places.length > 0 && (
        <p className="locations mono">
          {places.map(({ path, line }, index) => <span key={index}>{line == null ? path : `${path}:${line}`}</span>)}
        </p>
      )}
      <Input value={call.rawInput} />
      {terminals.map((terminal) => (
        <TerminalCard key={terminal.id} terminal={terminal} isRunning={isRunning} />
      ))}
      {call.content?.map((content, index) => <Content key={index} content={content} kind={call.kind} />)}
      {isShown(call.rawOutput) && <Raw label="Output" value={call.rawOutput} />}
    </div>
  );
}

function TerminalCard({ terminal: { id, output, exit }, isRunning }: { terminal: Terminal; isRunning: boolean }) {
  if (output === null) {
    return (
      <p className="muted">
        {isRunning ? "Runs" : "Ran"} in terminal <span className="mono">{id}</span>. It belongs to another client, which shows what it prints.
      </p>
    );
  }
  return (
    <div className="terminal-card">
      <TerminalOutput text={output} label="Output of the command" />
      {exit !== null && (
        <span className={exit.code === 0 ? "muted" : "bad"}>{exit.signal === null ? `Exit code ${exit.code ?? "unknown"}` : `Ended by ${exit.signal}`}</span>
      )}
    </div>
  );
}

function Content({ content, kind }: { content: ToolCallContent; kind: ToolCall["kind"] }) {
  switch (content.type) {
    case "diff":
      return (
        <Suspense fallback={<p className="muted mono">{content.path}</p>}>
          <DiffView path={content.path} before={content.oldText ?? ""} after={content.newText} />
        </Suspense>
      );
    case "terminal":
      return null; // among the terminals
    case "content":
      if (content.content.type !== "text") return <Block block={content.content} />;
      if (kind !== "execute") return <Output text={content.content.text} />;
      return <TerminalOutput text={unfenced(content.content.text)} label="Output of the command" />;
    default:
      return <Raw label="Content" value={content} />;
  }
}

/** Agents often send what a command printed as a fenced block of Markdown. */
function unfenced(text: string): string {
  const found = /^\s*(`{3,})[\w-]*\n([\s\S]*?)(?:\n?\1\s*)?$/.exec(text);
  return found?.[2] ?? text;
}

/** Images, links and files in a message or a tool call. */
export function Block({ block }: { block: ContentBlock }) {
  switch (block.type) {
    case "text":
      return <MarkdownText source={block.text} />;
    case "image":
      return /^image\/(png|jpeg|gif|webp)$/.test(block.mimeType) ? (
        <ZoomableImage source={`data:${block.mimeType};base64,${block.data}`} />
      ) : (
        <p className="muted">An image of type {block.mimeType}</p>
      );
    case "audio":
      return <p className="muted">Audio, {block.mimeType}</p>;
    case "resource_link":
      return (
        <p className="attachment mono" title={block.uri}>
          {block.name}
          {block.size != null && <span className="muted"> {bytes(Number(block.size))}</span>}
        </p>
      );
    case "resource":
      return (
        <details className="attachment">
          <summary className="mono" title={block.resource.uri}>
            {nameOf(block.resource.uri)} <Fold />
          </summary>
          {"text" in block.resource ? <Output text={block.resource.text} /> : <p className="muted">Binary</p>}
        </details>
      );
    default:
      return <Raw label="Content" value={block} />;
  }
}

function ZoomableImage({ source }: { source: string }) {
  const [isLarge, setLarge] = useState(false);
  return (
    <>
      <button type="button" className="quiet zoom" aria-label="Enlarge the image" onClick={() => setLarge(true)}>
        <img className="inline-image" alt="From the conversation" src={source} />
      </button>
      {isLarge && (
        <Dialog title="Image" isWide onClose={() => setLarge(false)}>
          <img className="large-image" alt="From the conversation, enlarged" src={source} />
        </Dialog>
      )}
    </>
  );
}

function changes(call: ToolCall, path: string): boolean {
  return call.content?.some((one) => one.type === "diff" && one.path === path) ?? false;
}

/** What a tool call would do is told by what it brings along: its title needs not say it again. */
export function isToldBelow(name: string, call: Pick<ToolCall, "rawInput" | "content">): boolean {
  const command = commandOf(call.rawInput);
  return (command !== null && name.includes(command)) || (call.content ?? []).some((one) => one.type === "diff" && name.includes(one.path));
}

/** The command line that a tool call would run, where it says it. */
function commandOf(input: unknown): string | null {
  const { command } = (input ?? {}) as { command?: unknown };
  const line = Array.isArray(command) ? command.join(" ") : command;
  return typeof line === "string" ? line : null;
}

/** A command reads as one; whatever else was given stands below it. */
function Input({ value }: { value: unknown }) {
  const line = commandOf(value);
  if (line === null) return isShown(value) ? <Raw label="Input" value={value} /> : null;
  const { command: _, ...rest } = value as { command: unknown };
  return (
    <>
      <pre className="output mono command" tabIndex={0}>
        {plainText(line)}
      </pre>
      {isShown(rest) && <Raw label="Input" value={rest} />}
    </>
  );
}

function Raw({ label, value }: { label: string; value: unknown }) {
  return (
    <div className="raw">
      <span className="raw-label">{label}</span>
      <Output text={typeof value === "string" ? value : JSON.stringify(value, null, 2)} />
    </div>
  );
}

export function Output({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = text.length > LONG && !isWhole;
  return (
    <pre className="output mono" tabIndex={0}>
      {plainText(isCut ? text.slice(0, LONG) : text)}
      {isCut && (
        <button type="button" className="small" onClick={() => setWhole(true)}>
          Show all {bytes(text.length)}
        </button>
      )}
    </pre>
  );
}

/** The last part of an address, as people know files. */
function nameOf(uri: string): string {
  const last = uri.split(/[?#]/)[0]?.split("/").filter(Boolean).at(-1) ?? uri;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

function isShown(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
