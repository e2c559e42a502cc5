import { lazy, memo, Suspense, useEffect, useMemo, useReducer, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { bytes, Empty, took } from "../parts/small";
import { VirtualList } from "../parts/VirtualList";
import { type Envelope, latencyOf, previewOf, titleOf } from "../state/journal";
import { wantedEnvelope, wantedPlace } from "../state/places";
import { go, routeNow } from "../state/route";
import { KINDS, type Kind, type Narrow, Runs, Search } from "../state/search";
import { ROOT } from "../state/server";
import { useStore } from "../state/store";
import type { Timeline } from "../state/timeline";
import "./ProtocolView.css";

const Waterfall = lazy(async () => ({ default: (await import("./Waterfall")).Waterfall }));

const ROW = 28;
/** Milliseconds of searching at a stretch. */
const SLICE = 6;
const SOURCES = { all: "Both ways", client: "From clients", agent: "From the agent", server: "From the server" } as const;

/** Every envelope of the session as it went over the wire, both ways. */
export function ProtocolView({ timeline, version }: { timeline: Timeline; version: number }) {
  const [kind, setKind] = useState<Kind>("all");
  const [source, setSource] = useState<Narrow["source"]>("all");
  const [label, setLabel] = useState("all");
  const [search, setSearch] = useState("");
  const [isFolded, setFolded] = useState(false);
  const [chosen, setChosen] = useState<Envelope | null>(null);
  const [isWaterfall, setWaterfall] = useState(false);
  const { envelopes, labels } = timeline.journal;
  const narrow = useMemo(() => ({ source, label }), [source, label]);
  const matching = useSearch(envelopes, version, kind, search.trim(), narrow);
  const runs = useRuns(matching, isFolded);
  const total = envelopes.length;
  const wanted = useStore(wantedEnvelope);
  useEffect(() => {
    if (wanted === null) return;
    wantedEnvelope.set(null);
    setWaterfall(false);
    setChosen(wanted);
    if (matching.isDone && matching.indexOf(wanted) === -1) [setKind("all"), setSource("all"), setLabel("all"), setSearch("")];
    // eslint-disable-next-line react-hooks/exhaustive-deps -- what is wanted is wanted once
  }, [wanted]);
  const at = chosen === null ? -1 : matching.indexOf(chosen);
  return (
    <section className="protocol" aria-label="Protocol">
      <div className="toolbar">
        <select aria-label="Kind of message" value={kind} onChange={(event) => setKind(event.target.value as Kind)}>
          {KINDS.map((one) => (
            <option key={one} value={one}>
              {one === "all" ? "All kinds" : one[0]?.toUpperCase() + one.slice(1)}
            </option>
          ))}
        </select>
        <select aria-label="Direction" value={source} onChange={(event) => setSource(event.target.value as Narrow["source"])}>
          {Object.entries(SOURCES).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
        <select aria-label="Method" value={label} onChange={(event) => setLabel(event.target.value)}>
          <option value="all">Any method</option>
          {[...labels].filter((one) => one !== "answer").sort().map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <input type="search" aria-label="Search messages" placeholder="Search messages" value={search} onChange={(event) => setSearch(event.target.value)} />
        <button type="button" aria-pressed={isWaterfall} onClick={() => setWaterfall(!isWaterfall)}>
          Waterfall
        </button>
        <button type="button" aria-pressed={isFolded} onClick={() => setFolded(!isFolded)}>
          Fold runs
        </button>
        <span className="muted count" aria-live="polite" aria-busy={!matching.isDone}>
          {matching.found === null ? `${total} messages` : `${matching.count} of ${total}`}
        </span>
      </div>
      {isWaterfall ? (
        <Suspense fallback={null}>
          <Waterfall timeline={timeline} version={version} onChoose={(envelope) => wantedEnvelope.set(envelope)} />
        </Suspense>
      ) : matching.count === 0 ? (
        <Empty title={matching.isDone ? "No messages" : "Searching"} />
      ) : (
        <VirtualList count={runs?.starts.length ?? matching.count} rowHeight={ROW} label="Messages" followsEnd={chosen === null} wanted={at === -1 ? -1 : (runs?.runOf(at) ?? at)}>
          {(index) => {
            const envelope = matching.at(runs?.starts[index] ?? index);
            return <Line envelope={envelope} pair={envelope.pair} run={runs?.lengthAt(index) ?? 1} isChosen={envelope === chosen} isPaired={chosen !== null && envelope.pair === chosen} onChoose={setChosen} />;
          }}
        </VirtualList>
      )}
      {chosen !== null && <Detail envelope={chosen} onChoose={setChosen} onClose={() => setChosen(null)} />}
    </section>
  );
}

interface LineProps {
  envelope: Envelope;
  /** Told apart, as it is found later than the envelope itself. */
  pair: Envelope | null;
  run: number;
  isChosen: boolean;
  isPaired: boolean;
  onChoose: (envelope: Envelope) => void;
}

const Line = memo(function Line({ envelope, run, isChosen, isPaired, onChoose }: LineProps) {
  const isOut = envelope.source === "client";
  const latency = latencyOf(envelope);
  return (
    <button type="button" className={`envelope mono ${isPaired ? "paired" : ""}`} aria-pressed={isChosen} onClick={() => onChoose(envelope)}>
      <span className={`direction ${envelope.source}`} title={isOut ? "client to agent" : `from the ${envelope.source}`}>
        {isOut ? "→" : "←"} <span className="who">{envelope.source}</span>
      </span>
      <span className="when">{clock(envelope.time)}</span>
      <span className={`method ${envelope.isError ? "bad" : ""}`} title={titleOf(envelope)}>
        {titleOf(envelope).replace("_sandboxagent/session/", "…")}
        {run > 1 && <span className="muted"> ×{run}</span>}
      </span>
      <span className="preview">{previewOf(envelope)}</span>
      <span className="latency" title={latency === null ? "" : "From the request to its answer"}>
        {latency === null ? "" : milliseconds(latency)}
      </span>
      <span className="size">{bytes(envelope.text.length)}</span>
    </button>
  );
});

function milliseconds(latency: number): string {
  return latency < 1000 ? `${latency} ms` : took(latency);
}

interface DetailProps {
  envelope: Envelope;
  onChoose: (envelope: Envelope) => void;
  onClose: () => void;
}

function Detail({ envelope, onChoose, onClose }: DetailProps) {
  const json = useMemo(() => JSON.stringify(JSON.parse(envelope.text), null, 2), [envelope]);
  const { pair } = envelope;
  return (
    <div className="envelope-detail">
      <header>
        <strong>{titleOf(envelope)}</strong>
        <span className="muted">
          {envelope.source} · {clock(envelope.time)} · {bytes(envelope.text.length)}
          {envelope.sequence !== null && ` · #${envelope.sequence}`}
        </span>
        {pair !== null && (
          <button type="button" className="small" onClick={() => onChoose(pair)}>
            {envelope.kind === "answer" ? "Request" : "Answer"}
          </button>
        )}
        {envelope.item !== null && (
          <button type="button" className="small" onClick={() => inConversation(envelope.item as number)}>
            In the conversation
          </button>
        )}
        {envelope.source === "client" && <CopyButton label="Copy as curl" text={() => curlOf(envelope)} />}
        <CopyButton label="Copy as JSON" text={() => json} />
        <button type="button" className="quiet small icon-button" aria-label="Close the message" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <pre className="mono" tabIndex={0}>
        {json.length > 200_000 ? `${json.slice(0, 200_000)}\n… (${bytes(json.length)} in all; copy to see it whole)` : json}
      </pre>
    </div>
  );
}

function inConversation(item: number): void {
  wantedPlace.set({ item, words: [] });
  const { path, query } = routeNow();
  if (query.get("tab") !== "both") go(path, { agent: query.get("agent") });
}

function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard?.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button type="button" className="small" onClick={() => void copy()}>
      {isCopied ? "Copied" : label}
    </button>
  );
}

/** The same request from a shell: on a connection of its own, whose id `initialize` gives. */
function curlOf({ text }: Envelope): string {
  const quoted = text.replaceAll("'", "'\\''");
  return `curl -X POST '${ROOT}/v1/rpc' \\\n  -H 'Content-Type: application/json' \\\n  -H "X-ACP-Connection-Id: $CONNECTION_ID" \\\n  -d '${quoted}'`;
}

/** The first slice is searched at once, the rest between frames. Only what is new is looked at when more comes. */
function useSearch(journal: readonly Envelope[], version: number, kind: Kind, wanted: string, narrow: Narrow): Search {
  const latest = useRef<Search | null>(null);
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const search = useMemo(() => {
    const known = latest.current;
    const current = known?.isFor(journal, kind, wanted, narrow) ? known : new Search(journal, kind, wanted, known, narrow);
    current.advance(SLICE);
    return (latest.current = current);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the journal is mutable: the version stands for it
  }, [journal, version, kind, wanted, narrow]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const goOn = (): void => {
      if (search.isDone) return;
      timer = setTimeout(() => {
        search.advance(SLICE);
        redraw();
        goOn();
      });
    };
    goOn();
    return () => clearTimeout(timer);
  }, [search, version]);
  return search;
}

/** null while nothing is folded. */
function useRuns(search: Search, isFolded: boolean): Runs | null {
  const latest = useRef<Runs | null>(null);
  if (!isFolded) return null;
  if (!latest.current?.isFor(search)) latest.current = new Runs(search);
  return latest.current.grow();
}

function clock(time: number): string {
  const date = new Date(time);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
