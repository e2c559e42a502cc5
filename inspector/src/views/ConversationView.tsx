import { memo, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Markdown } from "../parts/markdown";
import { Empty, Time } from "../parts/small";
import type { Item, PlanItem, TextItem, Timeline } from "../state/timeline";
import { AskCard } from "./Asks";
import { Block, ToolCard } from "./ToolCall";

const PAGE = 150;

/** The conversation as people read it. Only the newest part is drawn until more is asked for. */
export function ConversationView({ timeline, version, isReady }: { timeline: Timeline; version: number; isReady: boolean }) {
  const [pages, setPages] = useState(1);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const shown = timeline.items.slice(-pages * PAGE);
  const hidden = timeline.items.length - shown.length;
  useLayoutEffect(() => {
    const node = box.current;
    if (node !== null && isAtEnd.current) node.scrollTop = node.scrollHeight;
  }, [version, isReady]);
  useEffect(() => {
    const node = box.current;
    const column = node?.firstElementChild;
    if (!node || !column) return;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) node.scrollTop = node.scrollHeight;
    });
    observer.observe(column);
    observer.observe(node);
    return () => observer.disconnect();
  }, []);
  const onScroll = (): void => {
    const node = box.current;
    if (node !== null) isAtEnd.current = node.scrollTop + node.clientHeight >= node.scrollHeight - 40;
  };
  return (
    <div ref={box} className="conversation" onScroll={onScroll} tabIndex={0} role="log" aria-label="Conversation" aria-busy={timeline.isBusy}>
      <div className="column">
        {hidden > 0 && (
          <button type="button" className="earlier" onClick={() => setPages(pages + 2)}>
            Show {Math.min(hidden, 2 * PAGE)} earlier of {hidden}
          </button>
        )}
        {isReady && timeline.items.length === 0 && (
          <Empty title="Nothing has been said yet">
            <p className="muted">Write below to begin the first turn.</p>
          </Empty>
        )}
        {shown.map((item) => (
          <Entry key={item.key} item={item} stamp={stampOf(item)} />
        ))}
        {timeline.isBusy && timeline.openAsks().length === 0 && (
          <p className="working" role="status">
            <i aria-hidden="true" />
            Working
          </p>
        )}
      </div>
    </div>
  );
}

/** Items are mutable: what tells that one has changed. */
function stampOf(item: Item): unknown {
  switch (item.kind) {
    case "agent":
    case "thought":
    case "user":
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

const Entry = memo(function Entry({ item }: { item: Item; stamp: unknown }) {
  switch (item.kind) {
    case "user":
      return (
        <article className="entry user" aria-label="You">
          <Time at={item.time} />
          <Message item={item} />
        </article>
      );
    case "agent":
      return (
        <article className="entry agent" aria-label="Agent">
          <Message item={item} />
        </article>
      );
    case "thought":
      return (
        <details className="entry thought">
          <summary>Thought</summary>
          <Message item={item} />
        </details>
      );
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

function Message({ item }: { item: TextItem }) {
  return (
    <div className="message">
      <Markdown text={item.text} />
      {item.blocks.map((block, index) => (
        <Block key={index} block={block} />
      ))}
    </div>
  );
}

const MARKS = { pending: "○", in_progress: "◐", completed: "●" } as const;

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
              {MARKS[status] ?? "○"}
            </span>
            <span>{content}</span>
            {priority === "high" && <span className="tag">high</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
