import { useMemo } from "react";
import { Empty, Time, took } from "../parts/small";
import type { Envelope } from "../state/journal";
import type { Timeline } from "../state/timeline";
import { type Span, type TurnSpans, turnsOf } from "../state/waterfall";
import "./Waterfall.css";

const TURNS = 50;
const SPANS = 200;

interface Props {
  timeline: Timeline;
  version: number;
  onChoose: (envelope: Envelope) => void;
}

/** Where the time of each turn went, the newest turn on top. */
export function Waterfall({ timeline, version, onChoose }: Props) {
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the timeline is mutable: the version stands for it
  const turns = useMemo(() => turnsOf(timeline), [timeline, version]);
  if (turns.length === 0) return <Empty title="No turns yet" />;
  return (
    <div className="waterfall" tabIndex={0} role="region" aria-label="Waterfall">
      {turns.slice(0, TURNS).map((turn, index) => (
        <Turn key={turns.length - index} turn={turn} number={turns.length - index} onChoose={onChoose} />
      ))}
      {turns.length > TURNS && <p className="muted">{turns.length - TURNS} older turns are not shown</p>}
    </div>
  );
}

function Turn({ turn, number, onChoose }: { turn: TurnSpans; number: number; onChoose: (envelope: Envelope) => void }) {
  const { prompt, began, ended, isOver, firstUpdate, spans } = turn;
  const total = Math.max(1, ended - began);
  return (
    <section className="turn-spans" aria-label={`Turn ${number}`}>
      <header>
        <h2 title={prompt} dir="auto">
          {prompt || `Turn ${number}`}
        </h2>
        <span className="muted">
          <Time at={began} /> · {isOver ? took(total) : "running"}
          {firstUpdate !== null && ` · first update after ${took(firstUpdate)}`}
        </span>
      </header>
      <ul>
        {spans.slice(0, SPANS).map((span, index) => (
          <Bar key={index} span={span} began={began} total={total} end={ended} onChoose={onChoose} />
        ))}
      </ul>
      {spans.length > SPANS && <p className="muted">and {spans.length - SPANS} more</p>}
    </section>
  );
}

function Bar({ span, began, total, end, onChoose }: { span: Span; began: number; total: number; end: number; onChoose: (envelope: Envelope) => void }) {
  const last = Math.min(span.ended ?? end, end);
  const left = Math.min(100, Math.max(0, ((span.began - began) / total) * 100));
  const width = Math.max(0.4, Math.min(100 - left, ((last - span.began) / total) * 100));
  return (
    <li>
      <button type="button" className="span" onClick={() => onChoose(span.envelope)}>
        <span className="name" title={span.name}>
          {span.name.replace("_sandboxagent/session/", "")}
        </span>
        <span className="track" aria-hidden="true">
          <i className={`${span.kind} ${span.isError ? "bad" : ""} ${span.ended === null ? "open" : ""}`} style={{ left: `${left}%`, width: `${width}%` }} />
        </span>
        <span className="muted took">{span.ended === null ? "open" : took(span.ended - span.began)}</span>
      </button>
    </li>
  );
}
