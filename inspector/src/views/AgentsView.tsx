import type { AgentInfo, AgentLogs } from "sandbox-agent-client";
import { type ReactNode, useEffect, useState } from "react";
import { Fold } from "../parts/Icon";
import { Empty, ErrorLine, Status } from "../parts/small";
import { plainReason } from "../state/failures";
import { installs } from "../state/installs";
import { agentList } from "../state/lists";
import { reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import { InstallCard } from "./InstallCard";
import { Logins } from "./Logins";
import "./ToolCall.css";
import "./AgentsView.css";

export function AgentsView() {
  const { agents, error, isLoaded } = useStore(agentList);
  useEffect(() => {
    void agentList.refresh();
    const timer = setInterval(() => {
      if (!document.hidden) void agentList.refresh();
    }, 5_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <main className="agents-page">
      <header className="page-header">
        <h1>Agents</h1>
      </header>
      <ErrorLine text={error} />
      {isLoaded && agents.length === 0 && error === null && <Empty title="No agents" />}
      {GROUPS.map(({ title, holds }) => {
        const those = agents.filter((agent) => holds(agent)).sort(byName);
        return (
          those.length > 0 && (
            <section key={title} aria-label={title}>
              <h2>
                {title} <span className="muted">{those.length}</span>
              </h2>
              <ul className="agent-grid">
                {those.map((agent) => (
                  <AgentCard key={agent.id} agent={agent} />
                ))}
              </ul>
            </section>
          )
        );
      })}
    </main>
  );
}

/** What can be used comes first, then what can be installed, then what has to be done by hand. */
const GROUPS: { title: string; holds: (agent: AgentInfo) => boolean }[] = [
  { title: "Installed", holds: ({ installed }) => installed },
  { title: "Available", holds: ({ installed, support }) => !installed && support === "supported" },
  { title: "To install by hand", holds: ({ installed, support }) => !installed && support !== "supported" },
];

function byName(one: AgentInfo, other: AgentInfo): number {
  return (one.name || one.id).localeCompare(other.name || other.id);
}

const TONES = { running: "good", stopped: "idle", error: "bad" } as const;
const WORDS = { running: "Running", stopped: "Stopped", error: "Failed" } as const;

function AgentStatus({ agent: { id, installed, serverStatus } }: { agent: AgentInfo }) {
  const isInstalling = useStore(installs)[id]?.took === null;
  if (isInstalling) return <Status tone="busy">Installing</Status>;
  if (!installed) return null; // its section says it
  return <Status tone={TONES[serverStatus.status]}>{WORDS[serverStatus.status]}</Status>;
}

function AgentCard({ agent }: { agent: AgentInfo }) {
  const { serverStatus } = agent;
  return (
    <li className={`card agent-card ${agent.installed ? "" : "absent"}`} id={`agent-${agent.id}`}>
      <header>
        <strong>{agent.name || agent.id}</strong>
        <span className="mono muted">{agent.id}</span>
        <AgentStatus agent={agent} />
      </header>
      <dl>
        <Fact name="Version" value={agent.version} />
        <Fact name="From" value={agent.source} />
        <Fact name="Protocol" value={serverStatus.protocolVersion ? `ACP ${serverStatus.protocolVersion}` : null} />
        <Fact name="Sessions" value={serverStatus.sessions > 0 ? String(serverStatus.sessions) : null} />
        <Fact name="Last failure" value={serverStatus.status === "error" ? null : serverStatus.lastError} />
        <Fact name="Restarts" value={serverStatus.restartCount > 0 ? String(serverStatus.restartCount) : null} />
        <Fact name="Credentials" value={agent.installed && agent.source !== "builtin" ? (agent.credentialsAvailable ? "found" : "none found") : null} />
      </dl>
      {serverStatus.lastError && serverStatus.status === "error" && <ErrorLine text={plainReason(serverStatus.lastError)} />}
      <InstallCard agent={agent} />
      {agent.installed && agent.source !== "builtin" && <Login agent={agent} />}
      {agent.installed && <Offer agent={agent} />}
      {agent.installed && <Log agent={agent} />}
      {agent.instructions && (
        <details>
          <Summary>About</Summary>
          <About text={agent.instructions} />
        </details>
      )}
    </li>
  );
}

function Summary({ children }: { children: ReactNode }) {
  return (
    <summary>
      <Fold /> {children}
    </summary>
  );
}

/** Lines such as `docs: https://…`, as the server writes them. */
function About({ text }: { text: string }) {
  return (
    <ul className="about">
      {text.split("\n").map((line, index) => {
        const [, label, value] = /^([\w ]{1,20}): (.*)$/.exec(line) ?? [];
        const isLink = /^https?:\/\/\S+$/.test(value ?? "");
        return (
          <li key={index}>
            {label !== undefined && <span className="muted">{label}: </span>}
            {isLink ? (
              <a href={value} target="_blank" rel="noreferrer">
                {value}
              </a>
            ) : (
              (value ?? line)
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Fact({ name, value }: { name: string; value: string | null | undefined }) {
  return value ? (
    <div>
      <dt>{name}</dt>
      <dd className="mono" title={value}>
        {value}
      </dd>
    </div>
  ) : null;
}

function Login({ agent }: { agent: AgentInfo }) {
  const [wasOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(wasOpen || event.currentTarget.open)}>
      <Summary>Log in</Summary>
      {wasOpen && <Logins agent={agent.id} />}
    </details>
  );
}

function Offer({ agent }: { agent: AgentInfo }) {
  const [offer, setOffer] = useState<AgentInfo | null>(null);
  const [error, setError] = useState<string | null>(null);
  const load = async (): Promise<void> => {
    try {
      setOffer(await sandbox.agents.get(agent.id, { config: true }));
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  return (
    <details onToggle={(event) => event.currentTarget.open && offer === null && void load()}>
      <Summary>Models and modes</Summary>
      <ErrorLine text={error ?? offer?.configError ?? null} />
      {offer === null && error === null && <p className="muted">Asking the agent</p>}
      {offer !== null && <Names label="Models" values={offer.models} />}
      {offer !== null && <Names label="Modes" values={offer.modes} />}
    </details>
  );
}

function Names({ label, values }: { label: string; values: Record<string, unknown>[] | null | undefined }) {
  return (
    <p className="names">
      <span className="muted">{label}</span>
      {(values ?? []).map((value, index) => (
        <span key={index} className="tag">
          {String(value["name"] ?? value["id"] ?? value["modelId"])}
        </span>
      ))}
      {(values ?? []).length === 0 && <span className="muted">none to choose</span>}
    </p>
  );
}

function Log({ agent }: { agent: AgentInfo }) {
  const [log, setLog] = useState<AgentLogs | null>(null);
  const [error, setError] = useState<string | null>(null);
  const load = async (): Promise<void> => {
    try {
      setLog(await sandbox.agents.logs(agent.id, { tail: 500 }));
    } catch (reason) {
      setError(reasonOf(reason));
    }
  };
  return (
    <details onToggle={(event) => event.currentTarget.open && void load()}>
      <Summary>Log</Summary>
      <ErrorLine text={error} />
      {log !== null && (
        <>
          <pre className="output mono" tabIndex={0}>
            {log.lines.length === 0 ? "Nothing on stderr" : log.lines.join("\n")}
          </pre>
          <button type="button" className="small" onClick={() => void load()}>
            Read again
          </button>
        </>
      )}
    </details>
  );
}
