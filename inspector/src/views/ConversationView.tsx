import { memo, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "react";
import { Boundary } from "../parts/Boundary";
import { Fold, Icon } from "../parts/Icon";
import { MarkdownText } from "../parts/markdown";
import { Empty, Time, took } from "../parts/small";
import { TallList } from "../parts/TallList";
import { Viewport } from "../parts/viewport";
import type { Conversation } from "../state/conversation";
import { rowOf } from "../state/find";
import { wantedEnvelope, wantedPlace } from "../state/places";
import { address, go, routeNow } from "../state/route";
import { type Row, Rows } from "../state/rows";
import { useStore } from "../state/store";
import type { NoteItem, TextItem } from "../state/items";
import type { Timeline } from "../state/timeline";
import { AskLine } from "./Asks";
import { Failure } from "./Failure";
import { FindBar, mark } from "./FindBar";
import { PlanCard } from "./Plan";
import { Block, ToolCard } from "./ToolCall";
import "./ConversationView.css";

interface Props {
  conversation: Conversation;
  timeline: Timeline;
  /** Tells that the timeline, which is mutable, has changed. */
  version: number;
  isReady: boolean;
}

/** Where each conversation was left: one comes back to the same place. */
const viewports = new WeakMap<Timeline, Viewport>();

/** The conversation as people read it. */
export function ConversationView({ conversation, timeline, version, isReady }: Props) {
  const known = useMemo(() => ({ timeline, rows: new Rows() }), [timeline]);
  const viewport = useMemo(() => viewports.get(timeline) ?? new Viewport(), [timeline]);
  viewports.set(timeline, viewport);
  const rows = known.rows.of(timeline.items);
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const place = useStore(wantedPlace);
  const [arrived, setArrived] = useState<number | null>(null);
  const sent = timeline.turns.running?.isOwn ? timeline.turns.running.key : 0;
  const last = useRef(sent);
  if (sent > last.current) viewport.jump(); // whoever sends something wants to see it
  useLayoutEffect(() => void (last.current = sent), [sent]);
  const end = (
    <>
      {isReady && rows.length === 0 && !timeline.isBusy && (
        <Empty title="Nothing has been said yet">
          <p className="muted">Write below to begin. Type / for the agent’s commands, or drop files to attach them.</p>
        </Empty>
      )}
      {timeline.isBusy && timeline.openAsks().length === 0 && (
        <p className="working" role="status">
          {timeline.turns.running?.isCancelling ? "Stopping" : "Working"}
        </p>
      )}
    </>
  );
  const at = (index: number): Row => rows[index] as Row;
  useEffect(() => {
    if (place === null || !isReady) return;
    wantedPlace.set(null);
    const row = rowOf(rows, place.item, place.words);
    if (row === -1) return;
    show(row);
    setArrived(place.item);
    setTimeout(() => mark(row, place.words), 100);
    setTimeout(() => setArrived(null), 2_500);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- one comes once
  }, [place, isReady]);
  const show = (row: number): void => {
    viewport.reveal(row);
    redraw();
  };
  const toProtocol = (item: number): void => {
    wantedEnvelope.set(timeline.journal.originOf(item));
    const { path, query } = routeNow();
    if (query.get("tab") !== "both") go(path, { agent: query.get("agent"), tab: "protocol" });
  };
  return (
    <div className="find-place">
    <FindBar rows={rows} version={version} onShow={show} />
    <TallList count={rows.length} label="Conversation" viewport={viewport} isBusy={timeline.isBusy} keyOf={(index) => keyOf(at(index))} guess={(index) => guess(at(index))} end={end}>
      {(index) => (
        <Boundary what="This">
          <Entry {...at(index)} stamp={stampOf(at(index))} conversation={conversation} />
          {at(index).piece === 0 && <ToProtocol item={at(index).item.key} isArrived={arrived === at(index).item.key} onShow={toProtocol} />}
        </Boundary>
      )}
    </TallList>
    </div>
  );
}

interface ToProtocolProps {
  item: number;
  isArrived: boolean;
  onShow: (item: number) => void;
}

/** For the pointer, beside the entry: keys would have to pass one at every entry. */
function ToProtocol({ item, isArrived, onShow }: ToProtocolProps) {
  return (
    <button type="button" className={`quiet icon-button to-protocol ${isArrived ? "arrived" : ""}`} tabIndex={-1} aria-label="Show in the protocol" title="Show in the protocol" onClick={() => onShow(item)}>
      <Icon name="protocol" size={14} />
    </button>
  );
}

function keyOf({ item, piece }: Row): string {
  return `${item.key}.${piece}`;
}

/** Pixels, roughly: lines of some hundred characters. */
function guess({ item, piece }: Row): number {
  if (item.kind === "agent" || item.kind === "user") {
    const content = item.body.piece(piece);
    return typeof content === "string" ? 34 + Math.ceil(content.length / 110) * 22 : 200;
  }
  return { thought: 34, tool: 40, plan: 34, ask: 60, note: 34 }[item.kind];
}

/** Items are mutable: what tells that a row has changed. */
function stampOf({ item, piece, isLast }: Row): unknown {
  switch (item.kind) {
    case "agent":
      return item.body.piece(piece);
    case "user":
      return isLast && item.turn?.ended != null ? `${item.turn.ended}` : item.body.piece(piece);
    case "thought":
      return item.body.text.length + item.body.parts.length;
    case "tool":
      return item.call;
    case "plan":
      return item.plan;
    case "ask":
      return item.outcome ?? item.params;
    case "note":
      return `${item.text} ${item.detail}`;
  }
}

interface EntryProps extends Row {
  stamp: unknown;
  conversation: Conversation;
}

const Entry = memo(function Entry({ item, piece, isLast, conversation }: EntryProps) {
  const part = `${piece > 0 ? "continued" : ""} ${isLast ? "" : "continues"}`;
  switch (item.kind) {
    case "user":
      return (
        <article className={`entry user ${part}`} aria-label="You">
          <div className="bubble">
            <Message item={item} piece={piece} />
          </div>
          {isLast && <When item={item} />}
        </article>
      );
    case "agent":
      return (
        <article className={`entry agent ${part}`} aria-label="Agent" title={new Date(item.time).toLocaleTimeString()}>
          <Message item={item} piece={piece} />
        </article>
      );
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return (
        <div className="entry step">
          <ToolCard call={item.call} terminals={item.terminals} asks={item.asks} time={item.time} ended={item.ended} />
        </div>
      );
    case "plan":
      return <PlanCard item={item} />;
    case "ask":
      return (
        <div className="entry">
          <AskLine item={item} />
        </div>
      );
    case "note":
      return <Note item={item} conversation={conversation} />;
  }
}, isSame);

/** `stamp` stands for what is mutable; a row is a new object each time. */
function isSame(before: EntryProps, now: EntryProps): boolean {
  return before.item === now.item && before.piece === now.piece && before.isLast === now.isLast && before.stamp === now.stamp && before.conversation === now.conversation;
}

function Message({ item, piece }: { item: TextItem; piece: number }) {
  const content = item.body.piece(piece);
  return <div className="message">{typeof content === "string" ? <MarkdownText source={content} /> : content !== null && <Block block={content} />}</div>;
}

/** When it was asked, and how long the answer took. */
function When({ item: { time, turn, isAdded } }: { item: TextItem }) {
  return (
    <p className="when muted">
      <Time at={time} />
      {isAdded && <span> · added to the turn</span>}
      {!isAdded && turn?.began != null && turn.ended !== null && <span> · {took(turn.ended - turn.began)}</span>}
    </p>
  );
}

function Note({ item, conversation }: { item: NoteItem; conversation: Conversation }) {
  if (item.tone === "error") return <Failure item={item} conversation={conversation} />;
  if (item.tone === "fork") {
    return (
      <div className="entry note fork">
        <Icon name="fork" size={14} />
        <span>
          Forked from <a href={address(["sessions", item.detail ?? ""], { agent: conversation.agent })}>another session</a>. What follows is its own.
        </span>
      </div>
    );
  }
  return (
    <div className={`entry note ${item.tone}`}>
      <span>{item.text}</span>
      {item.detail && <pre className="mono">{item.detail}</pre>}
    </div>
  );
}

/** A long one is drawn only when somebody wants to read it. */
function Thought({ item }: { item: TextItem }) {
  const [wasOpen, setOpen] = useState(false);
  const pieces = Array.from({ length: item.body.pieces }, (_, index) => index);
  return (
    <details className="entry thought step" onToggle={({ currentTarget }) => setOpen(wasOpen || currentTarget.open)}>
      <summary>
        <Icon name="think" />
        Thought
        <Fold />
      </summary>
      {(wasOpen || pieces.length < 2) && pieces.map((piece) => <Message key={piece} item={item} piece={piece} />)}
    </details>
  );
}
