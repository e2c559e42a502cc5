import type { SessionSummary } from "sandbox-agent-client";
import { ROOT } from "./server";

/** What the server tells of everything that changes: `GET /v1/events`. */
export type Change =
  | { type: "session.created" | "session.updated" | "session.ended"; agent: string; sessionId: string; session: SessionSummary }
  | { type: "session.deleted"; agent: string; sessionId: string }
  | { type: "turn.queued" | "turn.started" | "turn.ended"; agent: string; sessionId: string; promptId: string }
  | { type: "question.asked" | "question.settled"; agent: string; sessionId: string; requestId: unknown; method: string }
  | { type: "agent.changed" | "install.progress"; agent: string }
  | { type: "process.started" | "process.exited" | "process.deleted" }
  | { type: "reset" };

const TYPES: Change["type"][] = [
  "session.created",
  "session.updated",
  "session.ended",
  "session.deleted",
  "turn.queued",
  "turn.started",
  "turn.ended",
  "question.asked",
  "question.settled",
  "agent.changed",
  "install.progress",
  "process.started",
  "process.exited",
  "process.deleted",
  "reset",
];

const processWatchers = new Set<() => void>();

/** Be told, while somebody follows the feed, that processes have changed; gives the way to stop. */
export function onProcessChange(work: () => void): () => void {
  processWatchers.add(work);
  return () => processWatchers.delete(work);
}

/**
 * Be told of every change while the page is in sight; gives the way to stop. Servers that have no such feed, and
 * those that are away, are told of by `onLost`: then lists have to be asked for.
 */
export function followFeed(onChange: (change: Change) => void, onLost: () => void, onOpen: () => void): () => void {
  let source: EventSource | null = null;
  const take = ({ data }: MessageEvent<string>): void => {
    const change = JSON.parse(data) as Change;
    if (change.type.startsWith("process.") || change.type === "reset") for (const work of processWatchers) work();
    onChange(change);
  };
  const open = (): void => {
    source = new EventSource(`${ROOT}/v1/events`);
    source.onmessage = take;
    for (const type of TYPES) source.addEventListener(type, take);
    source.onopen = onOpen;
    source.onerror = onLost;
  };
  const close = (): void => {
    source?.close();
    source = null;
  };
  const onSight = (): void => {
    if (document.hidden) close();
    else if (source === null) open();
  };
  if (!document.hidden) open();
  document.addEventListener("visibilitychange", onSight);
  return () => {
    document.removeEventListener("visibilitychange", onSight);
    close();
  };
}
