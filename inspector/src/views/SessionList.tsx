import type { SessionSummary } from "sandbox-agent-client";
import { type KeyboardEvent, lazy, Suspense, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { Icon } from "../parts/Icon";
import { ago, Empty, ErrorLine, Status } from "../parts/small";
import { Splitter } from "../parts/Splitter";
import { arrange, GROUPS, isArchived, isShown, type Listing, listing, narrow, SHOWN, type Shown } from "../state/listing";
import { sessionList } from "../state/lists";
import { keyOf, type Live, liveness } from "../state/liveness";
import { nameOf } from "../state/names";
import { pins } from "../state/pins";
import { address } from "../state/route";
import { useStore } from "../state/store";
import "./SessionList.css";

const SearchResults = lazy(async () => ({ default: (await import("./SearchResults")).SearchResults }));

/** From so many characters on, conversations are searched as well. */
const SEARCHED = 2;

/** Every session on the server. */
export function SessionList({ current, onNew }: { current: string | null; onNew: () => void }) {
  const { sessions, nextCursor, error, isLoaded } = useStore(sessionList);
  const live = useStore(liveness);
  const pinned = useStore(pins);
  const wanted = useStore(listing);
  const [text, setText] = useState("");
  const searched = useDeferredValue(text.trim());
  const [isChoosing, setChoosing] = useState(false);
  const lists = useRef<HTMLDivElement>(null);
  useEffect(() => sessionList.watch(), []);
  const groups = useMemo(() => arrange(sessions, { ...wanted, text }, live, pinned), [sessions, wanted, text, live, pinned]);
  const found = groups.flatMap((group) => group.sessions);
  const count = (one: Shown): number => sessions.filter((session) => isShown(session, one, live)).length;
  const offered = SHOWN.filter((one) => one === "all" || one === wanted.shown || count(one) > 0);
  const inTabOrder = found.find(({ sessionId }) => sessionId === current) ?? found[0];
  const isSearch = searched.length >= SEARCHED;
  const onKey = (event: KeyboardEvent): void => {
    const links = [...(lists.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (next === undefined || (at === -1 && event.key !== "ArrowDown")) return;
    event.preventDefault();
    links[Math.max(0, Math.min(next, links.length - 1))]?.focus();
  };
  return (
    <aside className="sidebar" aria-label="Sessions" data-pane>
      <div className="sidebar-head">
        <button type="button" id="new-session" className={isLoaded && sessions.length === 0 ? "primary" : ""} title="New session (N)" onClick={onNew}>
          <Icon name="add" />
          New session
        </button>
        <div className="search-line">
          <input type="search" aria-label="Search sessions" placeholder="Search everything" value={text} onChange={(event) => setText(event.target.value)} onKeyDown={onKey} />
          {sessions.length > 0 && (
            <button type="button" className="quiet icon-button" aria-label="Filter and group" title="Filter and group" aria-expanded={isChoosing} onClick={() => setChoosing(!isChoosing)}>
              <Icon name="filter" />
            </button>
          )}
        </div>
        {isChoosing && <Choices wanted={wanted} sessions={sessions} />}
        {offered.length > 1 && (
          <div className="filters" role="group" aria-label="Show">
            {offered.map((one) => (
              <button key={one} type="button" className="quiet small" aria-pressed={one === wanted.shown} onClick={() => narrow({ shown: one })}>
                {one[0]?.toUpperCase() + one.slice(1)}
                {one !== "all" && <span className="muted">{count(one)}</span>}
              </button>
            ))}
          </div>
        )}
      </div>
      <ErrorLine text={error} />
      <div className="session-lists" ref={lists} onKeyDown={onKey}>
        {isLoaded && found.length === 0 && error === null && !isSearch && <Nothing isSearch={sessions.length > 0} />}
        {groups.map((group) => (
          <section key={group.name} aria-label={group.name || "Sessions"}>
            {group.name !== "" && (
              <h2 className="group-name" title={group.name}>
                <bdi>{shortPath(group.name)}</bdi>
                <span className="muted">{group.sessions.length}</span>
              </h2>
            )}
            <ul className="session-list">
              {group.sessions.map((session) => (
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
          </section>
        ))}
        {nextCursor !== null && !isSearch && (
          <button type="button" className="quiet" onClick={() => void sessionList.more()}>
            Show more
          </button>
        )}
        {isSearch && (
          <Suspense fallback={null}>
            <SearchResults text={searched} />
          </Suspense>
        )}
      </div>
      <Splitter label="Width of the session list" name="sidebar-width" initial={288} min={200} max={560} />
    </aside>
  );
}

/** By agent and directory, of those that there are. */
function Choices({ wanted, sessions }: { wanted: Listing; sessions: readonly SessionSummary[] }) {
  const agents = [...new Set(sessions.map(({ agent }) => agent))].sort();
  const directories = [...new Set(sessions.flatMap(({ cwd }) => cwd ?? []))].sort();
  const chosen = (name: "agent" | "cwd", label: string, any: string, values: string[]) => (
    <label>
      <span>{label}</span>
      <select value={wanted[name]} onChange={(event) => narrow({ [name]: event.target.value })}>
        <option value="">{any}</option>
        {values.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
  return (
    <div className="list-choices">
      {chosen("agent", "Agent", "Any", agents)}
      {chosen("cwd", "Directory", "Any", directories)}
      <label>
        <span>Group by</span>
        <select value={wanted.group} onChange={(event) => narrow({ group: event.target.value as Listing["group"] })}>
          {GROUPS.map((one) => (
            <option key={one} value={one}>
              {one === "none" ? "Nothing" : one[0]?.toUpperCase() + one.slice(1)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** The end of a path tells directories apart. */
function shortPath(name: string): string {
  return name.startsWith("/") ? name.split("/").slice(-2).join("/") : name;
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
  const { agent, sessionId, cwd, updatedAt, ended, endedReason, lastError } = session;
  const name = nameOf(session);
  const isQuiet = live !== "working" && live !== "asking";
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
        {!ended && isQuiet && lastError != null && <Status tone="bad">Failed</Status>}
        {ended && <span className="tag">{isArchived(session) ? "archived" : "ended"}</span>}
        {!ended && isQuiet && lastError == null && isArchived(session) && <span className="tag">archived</span>}
        {ended && endedReason && (
          <span className="muted reason" title={endedReason}>
            {endedReason}
          </span>
        )}
      </a>
    </li>
  );
}
