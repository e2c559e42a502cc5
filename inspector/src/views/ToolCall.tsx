import type { ContentBlock, ToolCall, ToolCallContent } from "@agentclientprotocol/sdk";
import { useState } from "react";
import { DiffView } from "../parts/DiffView";
import { MarkdownText } from "../parts/markdown";
import { bytes, Status } from "../parts/small";

const TONES = { pending: "idle", in_progress: "busy", completed: "good", failed: "bad" } as const;
const WORDS = { pending: "Pending", in_progress: "Running", completed: "Done", failed: "Failed" } as const;
const LONG = 4_000;

export function ToolCard({ call }: { call: ToolCall }) {
  const status = call.status ?? "pending";
  const hasMore = (call.content?.length ?? 0) > 0 || isShown(call.rawInput) || isShown(call.rawOutput) || (call.locations?.length ?? 0) > 0;
  const isOpen = status === "failed" || (status !== "pending" && (call.content ?? []).some(({ type }) => type === "diff"));
  const head = (
    <>
      <span className="tool-kind">{call.kind ?? "tool"}</span>
      <span className="tool-title mono">{call.title}</span>
      <Status tone={TONES[status] ?? "idle"}>{WORDS[status] ?? status}</Status>
    </>
  );
  if (!hasMore) return <div className="card tool head">{head}</div>;
  return (
    <details className="card tool" open={isOpen}>
      <summary className="head">{head}</summary>
      <ToolContents call={call} />
    </details>
  );
}

export function ToolContents({ call }: { call: ToolCall }) {
  return (
    <div className="tool-body">
      {(call.locations?.length ?? 0) > 0 && (
        <p className="locations mono">
          {call.locations?.map(({ path, line }, index) => <span key={index}>{line == null ? path : `${path}:${line}`}</span>)}
        </p>
      )}
      {isShown(call.rawInput) && <Raw label="Input" value={call.rawInput} />}
      {call.content?.map((content, index) => <Content key={index} content={content} />)}
      {isShown(call.rawOutput) && <Raw label="Output" value={call.rawOutput} />}
    </div>
  );
}

function Content({ content }: { content: ToolCallContent }) {
  switch (content.type) {
    case "diff":
      return <DiffView path={content.path} before={content.oldText ?? ""} after={content.newText} />;
    case "terminal":
      return <p className="muted">Terminal {content.terminalId}: its output is in the agent’s answer.</p>;
    case "content":
      return content.content.type === "text" ? <Output text={content.content.text} /> : <Block block={content.content} />;
    default:
      return <Raw label="Content" value={content} />;
  }
}

/** Images, links and files in a message or a tool call. */
export function Block({ block }: { block: ContentBlock }) {
  switch (block.type) {
    case "text":
      return <MarkdownText source={block.text} />;
    case "image":
      return /^image\/(png|jpeg|gif|webp)$/.test(block.mimeType) ? (
        <img className="inline-image" alt="From the conversation" src={`data:${block.mimeType};base64,${block.data}`} />
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
          <summary className="mono">{block.resource.uri}</summary>
          {"text" in block.resource ? <Output text={block.resource.text} /> : <p className="muted">Binary</p>}
        </details>
      );
    default:
      return <Raw label="Content" value={block} />;
  }
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
      {isCut ? text.slice(0, LONG) : text}
      {isCut && (
        <button type="button" className="small" onClick={() => setWhole(true)}>
          Show all {bytes(text.length)}
        </button>
      )}
    </pre>
  );
}

function isShown(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}
