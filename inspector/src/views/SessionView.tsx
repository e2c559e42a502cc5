import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { Empty, ErrorLine, Status } from "../parts/small";
import { Root } from "../parts/root";
import { Splitter } from "../parts/Splitter";
import { conversationOf, type View } from "../state/conversation";
import { sessionList } from "../state/lists";
import { liveness } from "../state/liveness";
import { wantedPlace } from "../state/places";
import { address, useRoute } from "../state/route";
import { connections } from "../state/server";
import { useStore } from "../state/store";
import { money } from "../state/text";
import { ConversationView } from "./ConversationView";
import { Dock } from "./Dock";
import { SessionActions } from "./SessionActions";
import { nameOf } from "../state/names";
import { Icon } from "../parts/Icon";
import "./SessionView.css";

const FilesView = lazy(async () => ({ default: (await import("./FilesView")).FilesView }));
const ChangesView = lazy(async () => ({ default: (await import("./ChangesView")).ChangesView }));
const ProtocolView = lazy(async () => ({ default: (await import("./ProtocolView")).ProtocolView }));

const ProcessesView = lazy(async () => ({ default: (await import("./ProcessesView")).ProcessesView }));

const UsageView = lazy(async () => ({ default: (await import("./UsageView")).UsageView }));

const TABS = ["conversation", "protocol", "both", "files", "changes", "terminal"] as const;
type Tab = (typeof TABS)[number];

export function SessionView({ id, agent }: { id: string; agent: string | null }) {
  const conversation = useMemo(() => conversationOf(id, agent), [id, agent]);
  const view = useStore(conversation.view);
  const { query } = useRoute();
  const tab = (TABS as readonly string[]).includes(query.get("tab") ?? "") ? (query.get("tab") as Tab) : "conversation";
  const { timeline, version, session, isReady, error } = view;
  const at = query.get("at");
  const words = query.get("find");
  useEffect(() => {
    const item = at === null || !isReady ? null : timeline.journal.itemAt(Number(at));
    if (item !== null) wantedPlace.set({ item, words: words?.split(" ") ?? [] });
  }, [at, words, isReady, timeline]);
  const isLocked = session === null || session.setup.meta.readOnly === true || timeline.ended !== null;
  const root = String(session?.setup.meta["cwd"] ?? summaryOf(id)?.cwd ?? "/");
  if (error !== null) {
    return (
      <main className="session">
        <Empty title="The session could not be opened">
          <ErrorLine text={error} />
          <a href={address(["sessions"])}>All sessions</a>
        </Empty>
      </main>
    );
  }
  return (
    <main className="session">
      <SessionHeader view={view} id={id} tab={tab} />
      <WhyReadOnly view={view} id={id} />
      <NotAvailable meta={session?.setup.meta ?? {}} />
      {!isReady && (
        <p className="loading" role="status">
          Reading the history
        </p>
      )}
      <Root value={root}>
        <div className={`panes tab-${tab}`}>
          {(tab === "conversation" || tab === "both") && (
            <div className="talk">
              <ConversationView conversation={conversation} timeline={timeline} version={version} isReady={isReady} />
              <Dock conversation={conversation} view={view} isLocked={isLocked || !isReady} />
            </div>
          )}
          {tab === "both" && <Splitter label="Width of the conversation" name="talk-width" initial={540} min={320} max={1400} />}
          <Suspense fallback={null}>
            {(tab === "protocol" || tab === "both") && <ProtocolView timeline={timeline} version={version} />}
            {tab === "files" && <FilesView root={root} sessionId={id} timeline={timeline} isBusy={timeline.isBusy} wanted={query.get("path")} />}
            {tab === "changes" && <ChangesView timeline={timeline} version={version} root={root} sessionId={id} agent={session?.agent ?? agent ?? ""} />}
            {tab === "terminal" && <ProcessesView session={{ id, agent: session?.agent ?? agent ?? "" }} />}
          </Suspense>
        </div>
      </Root>
    </main>
  );
}

function summaryOf(id: string) {
  return sessionList.value.sessions.find(({ sessionId }) => sessionId === id);
}

function SessionHeader({ view, id, tab }: { view: View; id: string; tab: Tab }) {
  const { timeline, session } = view;
  const states = useStore(connections);
  const { sessions } = useStore(sessionList);
  const summary = sessions.find(({ sessionId }) => sessionId === id);
  const agent = session?.agent ?? summary?.agent ?? "";
  const title = summary?.title ?? timeline.title ?? nameOf(summary ?? { title: null, alias: null, sessionId: id });
  const isOffline = states[agent] === "reconnecting";
  const isAsking = timeline.openAsks().length > 0;
  useEffect(() => {
    document.title = `${isAsking ? "? " : ""}${title} · Sandbox Agent`;
  }, [title, isAsking]);
  useEffect(() => {
    if (view.isReady && agent !== "") liveness.note(agent, id, isAsking ? "asking" : timeline.isBusy ? "working" : "quiet");
  }, [view.isReady, agent, id, isAsking, timeline.isBusy]);
  return (
    <header className="session-header">
      <a className="back" href={address(["sessions"])} aria-label="All sessions">
        <Icon name="back" size={20} />
      </a>
      <div className="title">
        <h1 title={title}>{title}</h1>
        <SessionStatus view={view} isOffline={isOffline} />
      </div>
      <span className="facts muted">
        <span>{agent}</span>
        <span className="mono path" title={summary?.cwd ?? ""}>
          {summary?.cwd ?? ""}
        </span>
        <Usage timeline={timeline} />
      </span>
      <nav className="tabs" aria-label="Views of the session">
        {TABS.map((one) => (
          <a key={one} className={one === "both" ? "wide-only" : ""} aria-current={one === tab ? "page" : undefined} href={address(["sessions", id], { agent, tab: one === "conversation" ? null : one })}>
            {one[0]?.toUpperCase() + one.slice(1)}
          </a>
        ))}
      </nav>
      <SessionActions view={view} title={title} />
    </header>
  );
}

/** Why nothing can be said in this session any more. */
function WhyReadOnly({ view: { timeline, session }, id }: { view: View; id: string }) {
  const { sessions } = useStore(sessionList);
  const summary = sessions.find(({ sessionId }) => sessionId === id);
  const reason = timeline.ended ?? summary?.endedReason ?? (session?.setup.meta.readOnly ? session.setup.meta.reason : null);
  if (!reason) return null;
  return (
    <p className="why" role="status">
      {timeline.ended !== null || summary?.ended ? "Ended" : "Read only"}: {reason}
    </p>
  );
}

/** What the directory has for sessions, and this one could not get. */
function NotAvailable({ meta }: { meta: Record<string, unknown> }) {
  const missing = ([["mcp", "MCP server"], ["skills", "Skills"]] as const).flatMap(([kind, words]) =>
    Object.entries((meta[kind] ?? {}) as Record<string, { applied?: boolean; reason?: string }>)
      .filter(([, { applied }]) => applied === false)
      .map(([name, { reason }]) => `${words} ${name}: ${reason ?? "not available"}`),
  );
  return missing.map((line) => (
    <p key={line} className="why bad" role="status">
      {line}
    </p>
  ));
}

function SessionStatus({ view, isOffline }: { view: View; isOffline: boolean }) {
  const { timeline, session } = view;
  if (isOffline) return <Status tone="bad">Reconnecting</Status>;
  if (timeline.ended !== null) return <Status tone="idle">Ended</Status>;
  if (session?.setup.meta.readOnly) return <Status tone="idle">Read only</Status>;
  if (!view.isReady) return <Status tone="idle">Opening</Status>;
  if (timeline.openAsks().length > 0) return <Status tone="ask">Asking</Status>;
  if (timeline.isBusy) return <Status tone="busy">Working</Status>;
  return timeline.hasFailed ? <Status tone="bad">Failed</Status> : <Status tone="good">Ready</Status>;
}

const ROUND = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function Usage({ timeline }: { timeline: View["timeline"] }) {
  const { usage, spending } = timeline;
  const [isOpen, setOpen] = useState(false);
  if (usage === null) return null;
  const cost = usage.cost ? ` · ${money(usage.cost)}` : "";
  return (
    <>
      <button type="button" className="quiet usage-link" title="Tokens in the context window; show each turn" onClick={() => setOpen(true)}>
        {ROUND.format(usage.used)} of {ROUND.format(usage.size)} tokens{cost}
      </button>
      {isOpen && (
        <Suspense fallback={null}>
          <UsageView turns={spending.turns} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
