import type { SessionSummary } from "sandbox-agent-client";
import { useEffect, useMemo, useState } from "react";
import { ago, Empty, ErrorLine } from "../parts/small";
import { sessionList } from "../state/lists";
import { address } from "../state/route";
import { useStore } from "../state/store";

/** Every session on the server. */
export function SessionList({ current, onNew }: { current: string | null; onNew: () => void }) {
  const { sessions, nextCursor, error, isLoaded } = useStore(sessionList);
  const [search, setSearch] = useState("");
  useEffect(() => sessionList.watch(), []);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return wanted === "" ? sessions : sessions.filter((session) => wordsOf(session).includes(wanted));
  }, [sessions, search]);
  return (
    <aside className="sidebar" aria-label="Sessions">
      <div className="sidebar-head">
        <button type="button" id="new-session" className="primary" onClick={onNew}>
          New session
        </button>
        <input type="search" aria-label="Search sessions" placeholder="Search" value={search} onChange={(event) => setSearch(event.target.value)} />
      </div>
      <ErrorLine text={error} />
      {isLoaded && found.length === 0 && <Empty title={sessions.length === 0 ? "No sessions yet" : "Nothing found"} />}
      <ul className="session-list">
        {found.map((session) => (
          <li key={`${session.agent} ${session.sessionId}`}>
            <a href={address(["sessions", session.sessionId], { agent: session.agent })} aria-current={session.sessionId === current ? "page" : undefined}>
              <span className="name">{session.title ?? session.alias ?? session.sessionId}</span>
              <span className="muted when">{ago(session.updatedAt)}</span>
              <span className="muted facts">
                {session.agent} · <span className="mono">{session.cwd ?? "/"}</span>
              </span>
              {session.ended && (
                <span className="tag" title={session.endedReason ?? ""}>
                  ended
                </span>
              )}
            </a>
          </li>
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

function wordsOf({ title, alias, sessionId, agent, cwd }: SessionSummary): string {
  return [title, alias, sessionId, agent, cwd].filter(Boolean).join(" ").toLowerCase();
}
