import type { Envelope } from "./journal";
import type { ToolItem } from "./items";
import type { Timeline } from "./timeline";

/** A stretch of time in a turn: a request and its answer, or a tool call. */
export interface Span {
  name: string;
  kind: "prompt" | "tool" | "ask" | "request";
  began: number;
  /** null while it goes on. */
  ended: number | null;
  isError: boolean;
  /** Where it begins. */
  envelope: Envelope;
}

export interface TurnSpans {
  prompt: string;
  began: number;
  ended: number;
  isOver: boolean;
  /** Milliseconds until the agent said the first thing; null if it has not. */
  firstUpdate: number | null;
  spans: Span[];
}

const ASKS = /request_permission|request_question|elicitation/;
const QUEUED = "_sandboxagent/session/turn_queued";
const STARTED = "_sandboxagent/session/turn_started";
const SAID = /_chunk$|^tool_call|^plan$/;

/** The turns of a session, the newest first, with what took its time in each. */
export function turnsOf(timeline: Timeline): TurnSpans[] {
  const tools = new Map(timeline.items.flatMap((item) => (item.kind === "tool" ? [[item.key, item] as const] : [])));
  const turns: TurnSpans[] = [];
  let turn: TurnSpans | null = null;
  const seen = new Set<number>();
  const queued = new Set(timeline.journal.envelopes.flatMap((envelope) => (envelope.label === QUEUED ? [turnIdOf(envelope)] : [])));
  const waiting = new Map<string | null, Envelope>();
  for (const envelope of timeline.journal.envelopes) {
    if (envelope.label === "session/prompt" && envelope.kind === "request") {
      if (queued.has(turnIdOf(envelope))) waiting.set(turnIdOf(envelope), envelope);
      else turns.push((turn = begin(envelope, envelope.time)));
    }
    const next = envelope.label === STARTED ? waiting.get(turnIdOf(envelope)) : undefined;
    if (next !== undefined) turns.push((turn = begin(next, envelope.time)));
    if (turn === null) continue;
    const tool = envelope.item === null ? undefined : tools.get(envelope.item);
    if (tool !== undefined && !seen.has(tool.key)) {
      seen.add(tool.key);
      turn.spans.push(spanOf(tool, envelope));
    }
    if (envelope.kind === "request" && envelope.label !== "session/prompt") {
      const { pair } = envelope;
      turn.spans.push({ name: envelope.label, kind: ASKS.test(envelope.label) ? "ask" : "request", began: envelope.time, ended: pair?.time ?? null, isError: pair?.isError ?? false, envelope });
    }
    if (turn.firstUpdate === null && envelope.source === "agent" && SAID.test(envelope.label)) turn.firstUpdate = envelope.time - turn.began;
    if (!turn.isOver) turn.ended = Math.max(turn.ended, envelope.time);
  }
  return turns.reverse();
}

/** A prompt that had to wait begins later than it was sent; one that never ran does not begin at all. */
function begin(envelope: Envelope, time: number): TurnSpans {
  const { pair } = envelope;
  const prompt: Span = { name: "session/prompt", kind: "prompt", began: time, ended: pair?.time ?? null, isError: pair?.isError ?? false, envelope };
  return { prompt: textOf(envelope), began: time, ended: pair?.time ?? time, isOver: pair !== null, firstUpdate: null, spans: [prompt] };
}

function spanOf({ call, time, ended }: ToolItem, envelope: Envelope): Span {
  return { name: call.title, kind: "tool", began: time, ended, isError: call.status === "failed", envelope };
}

/** What the server and the page call the turn that an envelope is about. */
function turnIdOf({ text }: Envelope): string | null {
  const { params } = JSON.parse(text) as { params?: { turnId?: string; _meta?: { "sandboxagent.dev"?: { turnId?: string } } } };
  return params?.turnId ?? params?._meta?.["sandboxagent.dev"]?.turnId ?? null;
}

function textOf({ text }: Envelope): string {
  const { params } = JSON.parse(text) as { params?: { prompt?: { text?: string }[] } };
  return params?.prompt?.find((block) => block.text !== undefined)?.text?.trim().split("\n")[0]?.slice(0, 120) ?? "";
}
