import type { SessionSummary } from "sandbox-agent-client";
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { ago, Empty, ErrorLine, Status } from "../parts/small";
import { Splitter } from "../parts/Splitter";
import { sessionList } from "../state/lists";
import { keyOf, type Live, liveness } from "../state/liveness";
import { nameOf } from "../state/names";
import { pins } from "../state/pins";
import { address } from "../state/route";
import { useStore } from "../state/store";
import "./SessionList.css";

const FILTERS = ["all", "asking", "working", "ended"] as const;
type Filter = (typeof FILTERS)[number];
const LABELS: Record<Filter, string> = { all: "All", asking: "Asking", working: "Working", ended: "Ended" };

/** Every session on the server. */
export function SessionList({ current, onNew }: { current: string | null; onNew: () => void }) {
  const { sessions, nextCursor, error, isLoaded } = useStore(sessionList);
  const live = useStore(liveness);
  const pinned = useStore(pins);
  const [search, setSearch] = useState("");
  const [filter, setFilter] = useState<Filter>("all");
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => sessionList.watch(), []);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    const matching = sessions.filter((session) => isOf(session, filter, live) && (wanted === "" || wordsOf(session).includes(wanted)));
    return [...matching.filter(({ sessionId }) => pinned.has(sessionId)), ...matching.filter(({ sessionId }) => !pinned.has(sessionId))];
  }, [sessions, search, filter, live, pinned]);
  const count = (one: Filter): number => sessions.filter((session) => isOf(session, one, live)).length;
  const inTabOrder = found.find(({ sessionId }) => sessionId === current) ?? found[0];
  const onKey = (event: KeyboardEvent): void => {
    const links = [...(list.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (at === -1 || next === undefined) return;
    event.preventDefault();
    links[Math.max(0, Math.min(next, links.length - 1))]?.focus();
  };
  return (
    <aside className="sidebar" aria-label="Sessions" data-pane>
      <div className="sidebar-head">
        <button type="button" id="new-session" className="primary" onClick={onNew}>
          <Icon name="add" />
          New session
        </button>
        <input type="search" aria-label="Search sessions" placeholder="Title, agent or directory" value={search} onChange={(event) => setSearch(event.target.value)} />
        {sessions.length > 0 && (
          <div className="filters" role="group" aria-label="Show">
            {FILTERS.map((one) => (
              <button key={one} type="button" className="quiet small" aria-pressed={one === filter} onClick={() => setFilter(one)}>
                {LABELS[one]}
                {one !== "all" && count(one) > 0 && <span className="muted">{count(one)}</span>}
              </button>
            ))}
          </div>
        )}
      </div>
      <ErrorLine text={error} />
      {isLoaded && found.length === 0 && error === null && <Nothing isSearch={sessions.length > 0} />}
      <ul className="session-list" ref={list} onKeyDown={onKey}>
        {found.map((session) => (
          <Row
            key={keyOf(session.agent, session.sessionId)}
            session={session}
            live={live[keyOf(session.agent, session.sessionId)]}
            isCurrent={session.sessionId === current}
            isPinned={pinned.has(session.sessionId)}
            isInTabOrder={session === inTabOrder}
          />
        ))}
      </ul>
      {nextCursor !== null && (
        <button type="button" className="quiet" onClick={() => void sessionList.more()}>
          Show more
        </button>
      )}
      <Splitter label="Width of the session list" name="sidebar-width" initial={288} min={200} max={560} />
    </aside>
  );
}

function Nothing({ isSearch }: { isSearch: boolean }) {
  if (isSearch) return <Empty title="Nothing found" />;
  return (
    <Empty title="No sessions yet">
      <p>Start one to talk to an agent.</p>
    </Empty>
  );
}

interface RowProps {
  session: SessionSummary;
  live: Live | undefined;
  isCurrent: boolean;
  isPinned: boolean;
  /** One Tab leads into the list and the next out of it; arrow keys walk through it. */
  isInTabOrder: boolean;
}

function Row({ session, live, isCurrent, isPinned, isInTabOrder }: RowProps) {
  const { agent, sessionId, cwd, updatedAt, ended, endedReason } = session;
  const name = nameOf(session);
  return (
    <li>
      <a href={address(["sessions", sessionId], { agent })} aria-current={isCurrent ? "page" : undefined} tabIndex={isInTabOrder ? 0 : -1}>
        <span className="name" title={name} dir="auto">
          {name}
        </span>
        <span className="muted when">
          {isPinned && <Icon name="pin" size={12} />}
          {isPinned && <span className="visually-hidden">pinned</span>}
          {ago(updatedAt)}
        </span>
        <span className="muted facts" title={`${agent} · ${cwd ?? "/"}`}>
          {agent} · <span className="mono">{cwd ?? "/"}</span>
        </span>
        {!ended && live === "working" && <Status tone="busy">Working</Status>}
        {!ended && live === "asking" && <Status tone="ask">Asking</Status>}
        {ended && <span className="tag">ended</span>}
        {ended && endedReason && (
          <span className="muted reason" title={endedReason}>
            {endedReason}
          </span>
        )}
      </a>
    </li>
  );
}

function isOf({ agent, sessionId, ended }: SessionSummary, filter: Filter, live: Readonly<Record<string, Live>>): boolean {
  if (filter === "all") return true;
  if (filter === "ended") return ended;
  return !ended && live[keyOf(agent, sessionId)] === filter;
}

function wordsOf(session: SessionSummary): string {
  const { alias, sessionId, agent, cwd } = session;
  return [nameOf(session), alias, sessionId, agent, cwd].filter(Boolean).join(" ").toLowerCase();
}
