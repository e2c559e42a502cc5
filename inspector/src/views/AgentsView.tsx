import type { AuthMethod } from "@agentclientprotocol/sdk";
import type { AgentInfo, AgentLogs } from "sandbox-agent-client";
import { useEffect, useState } from "react";
import { Empty, ErrorLine, Status } from "../parts/small";
import { installs } from "../state/installs";
import { agentList } from "../state/lists";
import { reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import { InstallCard } from "./InstallCard";
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
      <ul className="agent-grid">
        {inOrder(agents).map((agent) => (
          <AgentCard key={agent.id} agent={agent} />
        ))}
      </ul>
    </main>
  );
}

/** What can be used comes first, then what can be installed, then what has to be done by hand. */
function inOrder(agents: AgentInfo[]): AgentInfo[] {
  const rank = ({ installed, support }: AgentInfo): number => (installed ? 0 : support === "supported" ? 1 : 2);
  return [...agents].sort((one, other) => rank(one) - rank(other) || (one.name || one.id).localeCompare(other.name || other.id));
}

const TONES = { running: "good", stopped: "idle", error: "bad" } as const;
const WORDS = { running: "Running", stopped: "Stopped", error: "Failed" } as const;

function AgentStatus({ agent: { id, installed, serverStatus } }: { agent: AgentInfo }) {
  const isInstalling = useStore(installs)[id]?.took === null;
  if (isInstalling) return <Status tone="busy">Installing</Status>;
  if (!installed) return <Status tone="idle">Not installed</Status>;
  return <Status tone={TONES[serverStatus.status]}>{WORDS[serverStatus.status]}</Status>;
}

function AgentCard({ agent }: { agent: AgentInfo }) {
  const { serverStatus } = agent;
  return (
    <li className="card agent-card" id={`agent-${agent.id}`}>
      <header>
        <strong>{agent.name || agent.id}</strong>
        <AgentStatus agent={agent} />
      </header>
      <dl>
        <Fact name="Id" value={agent.id} />
        <Fact name="Version" value={agent.version} />
        <Fact name="From" value={agent.source} />
        <Fact name="Sessions" value={serverStatus.sessions > 0 ? String(serverStatus.sessions) : null} />
        <Fact name="Restarts" value={serverStatus.restartCount > 0 ? String(serverStatus.restartCount) : null} />
        <Fact name="Credentials" value={agent.installed && agent.source !== "builtin" ? (agent.credentialsAvailable ? "found" : "none found") : null} />
      </dl>
      {serverStatus.lastError && <ErrorLine text={serverStatus.lastError} />}
      <InstallCard agent={agent} />
      {agent.installed && agent.source !== "builtin" && <Login agent={agent} />}
      {agent.installed && <Offer agent={agent} />}
      {agent.installed && <Log agent={agent} />}
      {agent.instructions && (
        <details>
          <summary>About</summary>
          <pre className="output mono">{agent.instructions}</pre>
        </details>
      )}
    </li>
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

/** What the agent can log in with, as it says itself; asking starts it. */
function Login({ agent }: { agent: AgentInfo }) {
  const [methods, setMethods] = useState<AuthMethod[] | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const run = async (work: () => Promise<void>): Promise<void> => {
    setError(null);
    setSaid(null);
    await work().catch((reason: unknown) => setError(reasonOf(reason)));
  };
  const load = (): Promise<void> => run(async () => setMethods((await sandbox.connection(agent.id)).initialized.authMethods ?? []));
  const logIn = ({ id, name }: AuthMethod): Promise<void> =>
    run(async () => {
      setSaid(`Trying ${name}`);
      await (await sandbox.connection(agent.id)).acp.request("authenticate", { methodId: id });
      setSaid(`Logged in with ${name}`);
    });
  return (
    <details onToggle={(event) => event.currentTarget.open && methods === null && void load()}>
      <summary>Login{agent.credentialsAvailable ? "" : " needed"}</summary>
      <ErrorLine text={error} />
      {methods === null && error === null && <p className="muted">Asking the agent</p>}
      {methods?.length === 0 && <p className="muted">The agent offers no login. It takes its API key from the server’s environment.</p>}
      {(methods ?? []).map((method) => (
        <p key={method.id} className="login">
          <button type="button" className="small" onClick={() => void logIn(method)}>
            {method.name}
          </button>
          <span className="muted">{method.description}</span>
        </p>
      ))}
      {said !== null && <p role="status">{said}</p>}
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
      <summary>Models and modes</summary>
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
      <summary>Log</summary>
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
