import type { ProcessInfo } from "sandbox-agent-client";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { Boundary } from "../parts/Boundary";
import { Icon } from "../parts/Icon";
import { ago, Empty, ErrorLine, Status } from "../parts/small";
import { sessionList } from "../state/lists";
import { exitWords, openTabs, processList, processName, startShell } from "../state/processes";
import { address, go, useRoute } from "../state/route";
import { reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import "./ProcessesView.css";

const TerminalPane = lazy(async () => ({ default: (await import("./TerminalPane")).TerminalPane }));

/** Where the view is: in a session, with what was started for it, or on the page of all processes. */
interface Place {
  session: { id: string; agent: string } | null;
}

/** The page of all processes. */
export function ProcessesPage() {
  useEffect(() => sessionList.watch(), []); // who follows the feed is told of processes, too
  useEffect(() => {
    document.title = "Processes · Sandbox Agent";
  }, []);
  return (
    <main className="processes-page">
      <h1 className="visually-hidden">Processes</h1>
      <ProcessesView session={null} />
    </main>
  );
}

/** Processes as a list, and each of those that were opened as a terminal in a tab. */
export function ProcessesView({ session }: Place) {
  const { processes, error, isLoaded } = useStore(processList);
  const place = session?.id ?? "";
  const tabs = useStore(openTabs)[place] ?? [];
  const chosen = useRoute().query.get("process");
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => processList.watch(), []);
  const current = processes.find(({ id }) => id === chosen) ?? null;
  useEffect(() => {
    if (current !== null) openTabs.open(place, current.id);
  }, [place, current]);
  const start = async (): Promise<void> => {
    setFailure(null);
    try {
      go(...addressOf(session, (await startShell(session?.id ?? null)).id));
    } catch (reason) {
      setFailure(reasonOf(reason));
    }
  };
  const close = (id: string): void => {
    const next = tabs[tabs.indexOf(id) + 1] ?? tabs[tabs.indexOf(id) - 1] ?? null;
    openTabs.close(place, id);
    if (id === chosen) go(...addressOf(session, next));
  };
  const leave = useCallback(() => document.querySelector<HTMLElement>(".process-tabs [aria-current]")?.focus(), []);
  const shown = session === null ? processes : processes.filter(({ sessionId, agent }) => sessionId === session.id && (agent ?? session.agent) === session.agent);
  const opened = tabs.flatMap((id) => processes.filter((one) => one.id === id));
  return (
    <div className="processes">
      <nav className="process-tabs" aria-label="Terminals">
        <ul>
          <li>
            <a href={address(...addressOf(session, null))} aria-current={current === null ? "page" : undefined}>
              Processes
              {shown.length > 0 && <span className="count">{shown.length}</span>}
            </a>
          </li>
          {opened.map((info) => (
            <Tab key={info.id} info={info} href={address(...addressOf(session, info.id))} isCurrent={info.id === current?.id} onClose={() => close(info.id)} />
          ))}
        </ul>
        <button type="button" className="quiet small" onClick={() => void start()}>
          <Icon name="add" size={14} />
          New terminal
        </button>
      </nav>
      <ErrorLine text={failure ?? error} />
      {current !== null ? (
        <Boundary key={current.id} what="The terminal">
          <Suspense fallback={<p className="loading">Opening</p>}>
            <TerminalPane key={current.id} info={current} onLeave={leave} />
          </Suspense>
        </Boundary>
      ) : (
        isLoaded && error === null && <List session={session} processes={shown} onStart={() => void start()} />
      )}
    </div>
  );
}

function addressOf(session: Place["session"], process: string | null): [string[], Record<string, string | null>] {
  if (session === null) return [["processes"], { process }];
  return [["sessions", session.id], { agent: session.agent, tab: "terminal", process }];
}

function Tab({ info, href, isCurrent, onClose }: { info: ProcessInfo; href: string; isCurrent: boolean; onClose: () => void }) {
  const name = processName(info);
  return (
    <li className="closable">
      <a href={href} aria-current={isCurrent ? "page" : undefined} title={`${name} in ${info.cwd ?? ""}`}>
        <i className={info.status} aria-hidden="true" />
        <span className="name">{name}</span>
        {info.status === "exited" && <span className="visually-hidden">exited</span>}
      </a>
      <button type="button" className="quiet icon-button" aria-label={`Close the tab of ${name}`} title={info.status === "running" ? "Close the tab; the process goes on" : "Close the tab"} onClick={onClose}>
        <Icon name="close" size={14} />
      </button>
    </li>
  );
}

function List({ session, processes, onStart }: Place & { processes: ProcessInfo[]; onStart: () => void }) {
  if (processes.length === 0) {
    return (
      <Empty title="Nothing runs here">
        <p className="muted">{session === null ? "Commands of agents, and what is started with sandbox-agent exec, are listed here." : "Commands of the agent, and terminals in the session’s directory, are listed here."}</p>
        <button type="button" className="primary" onClick={onStart}>
          New terminal
        </button>
      </Empty>
    );
  }
  const newest = [...processes].sort((one, other) => Number(one.status === "exited") - Number(other.status === "exited") || other.createdAtMs - one.createdAtMs);
  return (
    <ul className="process-list" aria-label="Processes">
      {newest.map((info) => (
        <Row key={info.id} info={info} session={session} />
      ))}
    </ul>
  );
}

function Row({ info, session }: { info: ProcessInfo; session: Place["session"] }) {
  const [error, setError] = useState<string | null>(null);
  const name = processName(info);
  const isRunning = info.status === "running";
  const act = async (): Promise<void> => {
    try {
      const process = await sandbox.processes.get(info.id);
      await (isRunning ? process.stop() : process.delete());
      await processList.refresh();
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  return (
    <li>
      <a className="process" href={address(...addressOf(session, info.id))}>
        <Icon name={info.owner === "agent" ? "agent" : "execute"} />
        <span className="what">
          <span className="mono name">{name}</span>
          <span className="facts muted">
            <span className="path mono" title={info.cwd ?? ""}>
              {info.cwd}
            </span>
            {info.agent && <span>{info.agent}</span>}
            <span>{ago(new Date(info.createdAtMs).toISOString())}</span>
          </span>
        </span>
        {isRunning ? <Status tone="good">Running</Status> : <Status tone={info.exitCode === 0 ? "idle" : "bad"}>{exitWords(info)}</Status>}
      </a>
      <button type="button" className="small" aria-label={`${isRunning ? "Stop" : "Delete"} ${name}`} onClick={() => void act()}>
        {isRunning ? "Stop" : "Delete"}
      </button>
      <ErrorLine text={error} />
    </li>
  );
}
