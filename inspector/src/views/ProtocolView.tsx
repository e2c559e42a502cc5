import { memo, useEffect, useMemo, useReducer, useRef, useState } from "react";
import { bytes, Empty } from "../parts/small";
import { VirtualList } from "../parts/VirtualList";
import { describe, type Envelope } from "../state/journal";
import { KINDS, type Kind, Search } from "../state/search";
import type { Timeline } from "../state/timeline";
import { Icon } from "../parts/Icon";
import "./ProtocolView.css";

const ROW = 28;
/** Milliseconds of searching at a stretch. */
const SLICE = 6;

/** Every envelope of the session as it went over the wire, both ways. */
export function ProtocolView({ timeline, version }: { timeline: Timeline; version: number }) {
  const [kind, setKind] = useState<Kind>("all");
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<Envelope | null>(null);
  const matching = useSearch(timeline, version, kind, search.trim());
  const total = timeline.journal.length;
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
        <span className="muted count" aria-live="polite" aria-busy={!matching.isDone}>
          {matching.found === null ? `${total} messages` : `${matching.count} of ${total}`}
        </span>
      </div>
      {matching.count === 0 ? (
        <Empty title={matching.isDone ? "No messages" : "Searching"} />
      ) : (
        <VirtualList count={matching.count} rowHeight={ROW} label="Messages" followsEnd={chosen === null}>
          {(index) => <Line envelope={matching.at(index)} isChosen={matching.at(index) === chosen} onChoose={setChosen} />}
        </VirtualList>
      )}
      {chosen !== null && <Detail envelope={chosen} onClose={() => setChosen(null)} />}
    </section>
  );
}

interface LineProps {
  envelope: Envelope;
  isChosen: boolean;
  onChoose: (envelope: Envelope) => void;
}

const Line = memo(function Line({ envelope, isChosen, onChoose }: LineProps) {
  const { label, preview } = describe(envelope);
  const isOut = envelope.source === "client";
  return (
    <button type="button" className="envelope mono" aria-pressed={isChosen} onClick={() => onChoose(envelope)}>
      <span className={`direction ${envelope.source}`} title={isOut ? "client to agent" : `from the ${envelope.source}`}>
        {isOut ? "→" : "←"} <span className="who">{envelope.source}</span>
      </span>
      <span className="when">{clock(envelope.time)}</span>
      <span className={`method ${envelope.isError ? "bad" : ""}`}>{label}</span>
      <span className="preview">{preview}</span>
      <span className="size">{bytes(envelope.text.length)}</span>
    </button>
  );
});

function Detail({ envelope, onClose }: { envelope: Envelope; onClose: () => void }) {
  const [isCopied, setCopied] = useState(false);
  const json = useMemo(() => JSON.stringify(JSON.parse(envelope.text), null, 2), [envelope]);
  const copy = async (): Promise<void> => {
    await navigator.clipboard?.writeText(json);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div className="envelope-detail">
      <header>
        <strong>{describe(envelope).label}</strong>
        <span className="muted">
          {envelope.source} · {clock(envelope.time)} · {bytes(envelope.text.length)}
          {envelope.sequence !== null && ` · #${envelope.sequence}`}
        </span>
        <button type="button" className="small" onClick={() => void copy()}>
          {isCopied ? "Copied" : "Copy as JSON"}
        </button>
        <button type="button" className="quiet small" aria-label="Close the message" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <pre className="mono" tabIndex={0}>
        {json.length > 200_000 ? `${json.slice(0, 200_000)}\n… (${bytes(json.length)} in all; copy to see it whole)` : json}
      </pre>
    </div>
  );
}

/** The first slice is searched at once, the rest between frames. Only what is new is looked at when more comes. */
function useSearch({ journal }: Timeline, version: number, kind: Kind, wanted: string): Search {
  const latest = useRef<Search | null>(null);
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const search = useMemo(() => {
    const known = latest.current;
    const current = known?.isFor(journal, kind, wanted) ? known : new Search(journal, kind, wanted, known);
    current.advance(SLICE);
    return (latest.current = current);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the journal is mutable: the version stands for it
  }, [journal, version, kind, wanted]);
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

function clock(time: number): string {
  const date = new Date(time);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
