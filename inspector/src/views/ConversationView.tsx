import { memo, useMemo, useState } from "react";
import { Markdown } from "../parts/markdown";
import { Empty, Time } from "../parts/small";
import { TallList } from "../parts/TallList";
import { type Row, Rows } from "../state/rows";
import type { Item, PlanItem, TextItem, Timeline } from "../state/timeline";
import { AskCard } from "./Asks";
import { Block, ToolCard } from "./ToolCall";
import { Icon } from "../parts/Icon";
import "./ConversationView.css";

/** The conversation as people read it. `version` tells that the timeline, which is mutable, has changed. */
export function ConversationView({ timeline, isReady }: { timeline: Timeline; version: number; isReady: boolean }) {
  const known = useMemo(() => ({ timeline, rows: new Rows() }), [timeline]);
  const rows = known.rows.of(timeline.items);
  const open = timeline.openAsks();
  const pinned = open.map(({ key }) => known.rows.indexOf(key)).filter((index) => index !== undefined);
  const end = (
    <>
      {isReady && rows.length === 0 && (
        <Empty title="Nothing has been said yet">
          <p className="muted">Write below to begin the first turn.</p>
        </Empty>
      )}
      {timeline.isBusy && open.length === 0 && (
        <p className="working" role="status">
          <i aria-hidden="true" />
          Working
        </p>
      )}
    </>
  );
  const at = (index: number): Row => rows[index] as Row;
  return (
    <TallList count={rows.length} label="Conversation" isBusy={timeline.isBusy} keyOf={(index) => keyOf(at(index))} guess={(index) => guess(at(index))} pinned={pinned} end={end}>
      {(index) => <Entry {...at(index)} stamp={stampOf(at(index))} />}
    </TallList>
  );
}

function keyOf({ item, piece }: Row): string {
  return `${item.key}.${piece}`;
}

/** Pixels, roughly: lines of some hundred characters. */
function guess({ item, piece }: Row): number {
  if (item.kind === "agent" || item.kind === "user") return 34 + Math.ceil(item.text.piece(piece).length / 110) * 22;
  return { thought: 34, tool: 48, plan: 150, ask: 90, note: 34 }[item.kind];
}

/** Items are mutable: what tells that a row has changed. */
function stampOf({ item, piece, isLast }: Row): unknown {
  switch (item.kind) {
    case "agent":
    case "user":
      return `${piece < item.text.settled.length ? "settled" : item.text.tail.length} ${isLast ? item.blocks.length : ""}`;
    case "thought":
      return `${item.text.settled.length} ${item.text.tail.length} ${item.blocks.length}`;
    case "tool":
      return item.call;
    case "plan":
      return item.plan;
    case "ask":
      return item.outcome ?? item.params;
    case "note":
      return null;
  }
}

const Entry = memo(function Entry({ item, piece, isLast }: { item: Item; piece: number; isLast: boolean; stamp: unknown }) {
  const part = `${piece > 0 ? "continued" : ""} ${isLast ? "" : "continues"}`;
  switch (item.kind) {
    case "user":
      return (
        <article className={`entry user ${part}`} aria-label="You">
          <Time at={item.time} />
          <Message item={item} piece={piece} isLast={isLast} />
        </article>
      );
    case "agent":
      return (
        <article className={`entry agent ${part}`} aria-label="Agent">
          <Message item={item} piece={piece} isLast={isLast} />
        </article>
      );
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return (
        <div className="entry">
          <ToolCard call={item.call} terminals={item.terminals} />
        </div>
      );
    case "plan":
      return <PlanCard item={item} />;
    case "ask":
      return (
        <div className="entry">
          <AskCard item={item} />
        </div>
      );
    case "note":
      return (
        <div className={`entry note ${item.tone}`} role={item.tone === "error" ? "alert" : undefined}>
          <span>{item.text}</span>
          {item.detail && <pre className="mono">{item.detail}</pre>}
        </div>
      );
  }
});

function Message({ item, piece, isLast }: { item: TextItem; piece: number; isLast: boolean }) {
  return (
    <div className="message">
      <Markdown text={item.text} piece={piece} />
      {isLast && item.blocks.map((block, index) => <Block key={index} block={block} />)}
    </div>
  );
}

/** A long one is drawn only when somebody wants to read it. */
function Thought({ item }: { item: TextItem }) {
  const [wasOpen, setOpen] = useState(false);
  return (
    <details className="entry thought" onToggle={({ currentTarget }) => setOpen(wasOpen || currentTarget.open)}>
      <summary>Thought</summary>
      {(wasOpen || item.text.settled.length === 0) && (
        <div className="message">
          <Markdown text={item.text} />
          {item.blocks.map((block, index) => (
            <Block key={index} block={block} />
          ))}
        </div>
      )}
    </details>
  );
}

const MARKS = { pending: "pending", in_progress: "running", completed: "done" } as const;

function PlanCard({ item }: { item: PlanItem }) {
  const { entries } = item.plan;
  const done = entries.filter(({ status }) => status === "completed").length;
  return (
    <section className="entry card plan" aria-label="Plan">
      <header>
        <strong>Plan</strong>
        <span className="muted">
          {done} of {entries.length} done
        </span>
      </header>
      <ol>
        {entries.map(({ content, status, priority }, index) => (
          <li key={index} className={status}>
            <span className="mark" role="img" aria-label={status.replace("_", " ")}>
              <Icon name={MARKS[status] ?? "pending"} />
            </span>
            <span>{content}</span>
            {priority === "high" && <span className="tag">high</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
