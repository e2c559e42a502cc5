import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { useEffect, useMemo, useState } from "react";
import { Dialog, Empty, ErrorLine, Status, save } from "../parts/small";
import { conversationOf, type View } from "../state/conversation";
import { sessionList } from "../state/lists";
import { address, go, useRoute } from "../state/route";
import { connections, reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import { Composer } from "./Composer";
import { ConversationView } from "./ConversationView";
import { FilesView } from "./FilesView";
import { ProtocolView } from "./ProtocolView";

const TABS = ["conversation", "protocol", "both", "files"] as const;
type Tab = (typeof TABS)[number];

export function SessionView({ id, agent }: { id: string; agent: string | null }) {
  const conversation = useMemo(() => conversationOf(id, agent), [id, agent]);
  const view = useStore(conversation.view);
  const { query } = useRoute();
  const tab = (TABS as readonly string[]).includes(query.get("tab") ?? "") ? (query.get("tab") as Tab) : "conversation";
  const { timeline, version, session, isReady, error } = view;
  const isLocked = session === null || session.setup.meta.readOnly === true || timeline.ended !== null;
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
      {!isReady && (
        <p className="loading" role="status">
          Reading the history
        </p>
      )}
      <div className={`panes tab-${tab}`}>
        {(tab === "conversation" || tab === "both") && (
          <div className="talk">
            <ConversationView timeline={timeline} version={version} isReady={isReady} />
            <Composer
              isBusy={timeline.isBusy}
              isLocked={isLocked || !isReady}
              commands={timeline.commands}
              capabilities={session?.connection.initialized.agentCapabilities?.promptCapabilities ?? {}}
              onSend={(prompt) => conversation.send(prompt)}
              onCancel={() => conversation.cancel()}
            />
          </div>
        )}
        {(tab === "protocol" || tab === "both") && <ProtocolView timeline={timeline} version={version} />}
        {tab === "files" && <FilesView root={String(session?.setup.meta["cwd"] ?? summaryOf(id)?.cwd ?? "/")} sessionId={id} />}
      </div>
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
  const title = summary?.title ?? timeline.title ?? id;
  const isOffline = states[agent] === "reconnecting";
  return (
    <header className="session-header">
      <div className="line">
        <a className="back" href={address(["sessions"])} aria-label="All sessions">
          ‹
        </a>
        <h1 title={title}>{title}</h1>
        <SessionStatus view={view} isOffline={isOffline} />
        <Actions view={view} title={title} />
      </div>
      <div className="line sub">
        <span className="facts muted">
          <span>{agent}</span>
          <span className="mono path" title={summary?.cwd ?? ""}>
            {summary?.cwd ?? ""}
          </span>
          <Usage timeline={timeline} />
        </span>
        <Options view={view} />
        <nav className="tabs" aria-label="Views of the session">
          {TABS.map((one) => (
            <a key={one} className={one === "both" ? "wide-only" : ""} aria-current={one === tab ? "page" : undefined} href={address(["sessions", id], { agent, tab: one === "conversation" ? null : one })}>
              {one[0]?.toUpperCase() + one.slice(1)}
            </a>
          ))}
        </nav>
      </div>
    </header>
  );
}

function SessionStatus({ view, isOffline }: { view: View; isOffline: boolean }) {
  const { timeline, session } = view;
  if (isOffline) return <Status tone="bad">Reconnecting</Status>;
  if (timeline.ended !== null) return <Status tone="idle">Ended</Status>;
  if (session?.setup.meta.readOnly) return <Status tone="idle">Read only</Status>;
  if (timeline.openAsks().length > 0) return <Status tone="ask">Asking</Status>;
  return timeline.isBusy ? <Status tone="busy">Working</Status> : <Status tone="good">Ready</Status>;
}

function Usage({ timeline }: { timeline: View["timeline"] }) {
  const { usage } = timeline;
  if (usage === null) return null;
  const cost = usage.cost ? ` · ${usage.cost.amount.toFixed(2)} ${usage.cost.currency}` : "";
  return (
    <span title="Tokens in the context window">
      {usage.used.toLocaleString("en")} of {usage.size.toLocaleString("en")} tokens{cost}
    </span>
  );
}

type Choice = { value: string; name: string };

function Options({ view }: { view: View }) {
  const { timeline, session } = view;
  const [error, setError] = useState<string | null>(null);
  const isLocked = session === null || session.setup.meta.readOnly === true || timeline.ended !== null;
  const options = (timeline.configOptions ?? []).filter((option) => option.type === "select");
  const modes = options.length === 0 ? (session?.setup.modes?.availableModes ?? []) : [];
  const run = (work: Promise<unknown> | undefined): void => {
    setError(null);
    work?.catch((reason: unknown) => setError(reasonOf(reason)));
  };
  return (
    <span className="options">
      {options.map((option) => (
        <label key={option.id} title={option.description ?? option.name}>
          <span className="visually-hidden">{option.name}</span>
          <select value={String((option as { currentValue?: unknown }).currentValue ?? "")} disabled={isLocked} onChange={(event) => run(session?.setConfigOption(option.id, event.target.value))}>
            {choicesOf(option).map(({ value, name }) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      ))}
      {modes.length > 0 && (
        <label>
          <span className="visually-hidden">Mode</span>
          <select value={timeline.modeId ?? ""} disabled={isLocked} onChange={(event) => run(session?.setMode(event.target.value))}>
            {modes.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <ErrorLine text={error} />
    </span>
  );
}

function choicesOf(option: SessionConfigOption): Choice[] {
  const given = (option as { options?: (Choice | { options: Choice[] })[] }).options ?? [];
  return given.flatMap((one) => ("options" in one ? one.options : [one]));
}

function Actions({ view, title }: { view: View; title: string }) {
  const { session, timeline } = view;
  const [dialog, setDialog] = useState<"rename" | "terminate" | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => setError(null), [session]);
  if (session === null) return null;
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      setDialog(null);
      setError(null);
      await sessionList.refresh();
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  const isOver = timeline.ended !== null || session.setup.meta.readOnly === true;
  const exportAs = (format: "jsonl" | "markdown"): void =>
    void run(async () => save(`${session.id}.${format === "jsonl" ? "jsonl" : "md"}`, await sandbox.sessions.transcript(session.id, format, { agent: session.agent })));
  const fork = (): void =>
    void run(async () => {
      const child = await session.fork();
      go(["sessions", child.id], { agent: child.agent });
    });
  return (
    <details className="menu">
      <summary aria-label="What to do with the session">⋯</summary>
      <div className="menu-items">
        <button type="button" onClick={() => setDialog("rename")}>
          Rename
        </button>
        <button type="button" disabled={isOver} onClick={fork}>
          Fork
        </button>
        <button type="button" onClick={() => exportAs("markdown")}>
          Export as Markdown
        </button>
        <button type="button" onClick={() => exportAs("jsonl")}>
          Export as JSON lines
        </button>
        <button type="button" className="danger" disabled={timeline.ended !== null} onClick={() => setDialog("terminate")}>
          Terminate
        </button>
        <ErrorLine text={error} />
      </div>
      {dialog === "rename" && (
        <Dialog title="Rename the session" onClose={() => setDialog(null)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const name = String(new FormData(event.currentTarget).get("title") ?? "").trim();
              if (name !== "") void run(() => session.rename(name));
            }}
          >
            <label className="field">
              <span>Title</span>
              <input name="title" defaultValue={title} autoFocus />
            </label>
            <ErrorLine text={error} />
            <footer>
              <button type="submit" className="primary">
                Rename
              </button>
            </footer>
          </form>
        </Dialog>
      )}
      {dialog === "terminate" && (
        <Dialog title="Terminate the session?" onClose={() => setDialog(null)}>
          <p>It ends for everybody who uses it. Its history stays readable.</p>
          <ErrorLine text={error} />
          <footer>
            <button type="button" onClick={() => setDialog(null)}>
              Keep it
            </button>
            <button type="button" className="danger" onClick={() => void run(() => session.terminate())}>
              Terminate
            </button>
          </footer>
        </Dialog>
      )}
    </details>
  );
}
