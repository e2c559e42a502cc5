import type { SessionEvent } from "sandbox-agent-client";
import { useDeferredValue, useMemo, useRef, useState } from "react";
import { bytes, Empty } from "../parts/small";
import { VirtualList } from "../parts/VirtualList";
import type { Timeline } from "../state/timeline";

const ROW = 28;
const KINDS = ["all", "requests", "answers", "notifications", "errors"] as const;
type Kind = (typeof KINDS)[number];

/** Every envelope of the session as it went over the wire, both ways. */
export function ProtocolView({ timeline, version }: { timeline: Timeline; version: number }) {
  const [kind, setKind] = useState<Kind>("all");
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<SessionEvent | null>(null);
  const wanted = useDeferredValue(search.trim().toLowerCase());
  const matching = useMatching(timeline, version, kind, wanted);
  return (
    <section className="protocol" aria-label="Protocol">
      <div className="toolbar">
        <select aria-label="Kind of message" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {KINDS.map((one) => (
            <option key={one} value={one}>
              {one[0]?.toUpperCase() + one.slice(1)}
            </option>
          ))}
        </select>
        <input type="search" aria-label="Search messages" placeholder="Search messages" value={search} onChange={(event) => setSearch(event.target.value)} />
        <span className="muted count" aria-live="polite">
          {matching.length === timeline.events.length ? `${matching.length} messages` : `${matching.length} of ${timeline.events.length}`}
        </span>
      </div>
      {matching.length === 0 ? (
        <Empty title="No messages" />
      ) : (
        <VirtualList count={matching.length} rowHeight={ROW} label="Messages" followsEnd={chosen === null}>
          {(index) => <Row event={matching[index] as SessionEvent} isChosen={matching[index] === chosen} onChoose={setChosen} />}
        </VirtualList>
      )}
      {chosen !== null && <Detail event={chosen} onClose={() => setChosen(null)} />}
    </section>
  );
}

function Row({ event, isChosen, onChoose }: { event: SessionEvent; isChosen: boolean; onChoose: (event: SessionEvent) => void }) {
  const text = textOf(event);
  const isOut = event.source === "client";
  return (
    <button type="button" className="envelope mono" aria-pressed={isChosen} onClick={() => onChoose(event)}>
      <span className={`direction ${event.source}`} title={isOut ? "client to agent" : `from the ${event.source}`}>
        {isOut ? "→" : "←"} <span className="who">{event.source}</span>
      </span>
      <span className="when">{clock(event.time)}</span>
      <span className={`method ${isError(event) ? "bad" : ""}`}>{labelOf(event)}</span>
      <span className="preview">{previewOf(event)}</span>
      <span className="size">{bytes(text.length)}</span>
    </button>
  );
}

function Detail({ event, onClose }: { event: SessionEvent; onClose: () => void }) {
  const [isCopied, setCopied] = useState(false);
  const json = useMemo(() => JSON.stringify(event.message, null, 2), [event]);
  const copy = async (): Promise<void> => {
    await navigator.clipboard?.writeText(json);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div className="envelope-detail">
      <header>
        <strong>{labelOf(event)}</strong>
        <span className="muted">
          {event.source} · {clock(event.time)} · {bytes(textOf(event).length)}
          {event.sequence !== null && ` · #${event.sequence}`}
        </span>
        <button type="button" className="small" onClick={() => void copy()}>
          {isCopied ? "Copied" : "Copy as JSON"}
        </button>
        <button type="button" className="quiet small" aria-label="Close the message" onClick={onClose}>
          ✕
        </button>
      </header>
      <pre className="mono" tabIndex={0}>
        {json.length > 200_000 ? `${json.slice(0, 200_000)}\n… (${bytes(json.length)} in all; copy to see it whole)` : json}
      </pre>
    </div>
  );
}

/** Only what is new is looked at, so that a stream of messages costs little. */
function useMatching(timeline: Timeline, version: number, kind: Kind, wanted: string): SessionEvent[] {
  const cache = useRef<{ key: string; timeline: Timeline; seen: number; found: SessionEvent[] } | null>(null);
  return useMemo(() => {
    const key = `${kind} ${wanted}`;
    if (cache.current?.key !== key || cache.current.timeline !== timeline) cache.current = { key, timeline, seen: 0, found: [] };
    const state = cache.current;
    if (kind === "all" && wanted === "") return timeline.events.slice();
    const fresh: SessionEvent[] = [];
    for (; state.seen < timeline.events.length; state.seen += 1) {
      const event = timeline.events[state.seen] as SessionEvent;
      if (isOfKind(event, kind) && (wanted === "" || textOf(event).toLowerCase().includes(wanted))) fresh.push(event);
    }
    if (fresh.length > 0) state.found = [...state.found, ...fresh];
    return state.found;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the timeline is mutable: its version stands for it
  }, [timeline, version, kind, wanted]);
}

type Parsed = { id?: unknown; method?: string; error?: { code: number; message: string }; params?: { update?: { sessionUpdate?: string } } };

function labelOf({ message }: SessionEvent): string {
  const { method, id, error, params } = message as Parsed;
  if (method === "session/update") return params?.update?.sessionUpdate ?? method;
  if (method !== undefined) return method;
  return error ? `error ${error.code} · ${String(id)}` : `answer · ${String(id)}`;
}

/** What is particular to the message: without the envelope and what the other columns say. */
function previewOf({ message }: SessionEvent): string {
  const { params, result, error } = message as Parsed & { result?: unknown };
  const { sessionId: _, update, ...rest } = (params ?? {}) as Record<string, unknown>;
  const { sessionUpdate: __, ...content } = (update ?? {}) as Record<string, unknown>;
  return JSON.stringify(update ? content : (error ?? result ?? rest)).slice(0, 300);
}

function isOfKind({ message }: SessionEvent, kind: Kind): boolean {
  const { method, id, error } = message as Parsed;
  switch (kind) {
    case "all":
      return true;
    case "requests":
      return method !== undefined && id !== undefined;
    case "answers":
      return method === undefined;
    case "notifications":
      return method !== undefined && id === undefined;
    case "errors":
      return error !== undefined || method === "_sandboxagent/error";
  }
}

function isError({ message }: SessionEvent): boolean {
  return (message as Parsed).error !== undefined;
}

const texts = new WeakMap<SessionEvent, string>();

function textOf(event: SessionEvent): string {
  let text = texts.get(event);
  if (text === undefined) texts.set(event, (text = JSON.stringify(event.message)));
  return text;
}

function clock(time: number): string {
  const date = new Date(time);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
