import type { SessionSummary } from "sandbox-agent-client";
import { useEffect, useMemo, useState } from "react";
import { ago, Empty, ErrorLine, Status } from "../parts/small";
import { sessionList } from "../state/lists";
import { keyOf, type Live, liveness } from "../state/liveness";
import { address } from "../state/route";
import { useStore } from "../state/store";
import { Icon } from "../parts/Icon";
import "./SessionList.css";

/** Every session on the server. */
export function SessionList({ current, onNew }: { current: string | null; onNew: () => void }) {
  const { sessions, nextCursor, error, isLoaded } = useStore(sessionList);
  const live = useStore(liveness);
  const [search, setSearch] = useState("");
  useEffect(() => sessionList.watch(), []);
  useEffect(() => void liveness.look(sessions), [sessions]);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return wanted === "" ? sessions : sessions.filter((session) => wordsOf(session).includes(wanted));
  }, [sessions, search]);
  return (
    <aside className="sidebar" aria-label="Sessions">
      <div className="sidebar-head">
        <button type="button" id="new-session" className="primary" onClick={onNew}>
          <Icon name="add" />
          New session
        </button>
        <input type="search" aria-label="Search sessions" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
      </div>
      <ErrorLine text={error} />
      {isLoaded && found.length === 0 && error === null && <Nothing isSearch={sessions.length > 0} />}
      <ul className="session-list">
        {found.map((session) => (
          <Row key={keyOf(session.agent, session.sessionId)} session={session} live={live[keyOf(session.agent, session.sessionId)]} isCurrent={session.sessionId === current} />
        ))}
      </ul>
      {nextCursor !== null && (
        <button type="button" className="quiet" onClick={() => void sessionList.more()}>
          Show more
        </button>
      )}
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

function Row({ session, live, isCurrent }: { session: SessionSummary; live: Live | undefined; isCurrent: boolean }) {
  const { agent, sessionId, cwd, updatedAt, ended, endedReason } = session;
  return (
    <li>
      <a href={address(["sessions", sessionId], { agent })} aria-current={isCurrent ? "page" : undefined}>
        <span className="name" title={nameOf(session)}>
          {nameOf(session)}
        </span>
        <span className="muted when">{ago(updatedAt)}</span>
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

/** What people call a session: its title, the name it was given, or the beginning of its id. */
export function nameOf({ title, alias, sessionId }: Pick<SessionSummary, "title" | "alias" | "sessionId">): string {
  return title ?? alias ?? (sessionId.length > 24 ? `${sessionId.slice(0, 14)}…` : sessionId);
}

function wordsOf({ title, alias, sessionId, agent, cwd }: SessionSummary): string {
  return [title, alias, sessionId, agent, cwd].filter(Boolean).join(" ").toLowerCase();
}
