import type { AgentInfo, InstallProgress } from "sandbox-agent-client";
import { useEffect, useState } from "react";
import { bytes, duration, ErrorLine } from "../parts/small";
import { type Install, install, installs } from "../state/installs";
import { useStore } from "../state/store";
import { Icon } from "../parts/Icon";
import "./InstallCard.css";

/** The button that installs an agent, the steps while it does, and what went wrong until it is tried again. */
export function InstallCard({ agent }: { agent: AgentInfo }) {
  const running = useStore(installs)[agent.id];
  const isRunning = running !== undefined && running.took === null;
  if (agent.installed) {
    if (running === undefined) return <Update agent={agent} />;
    if (running.took !== null && running.error === null) {
      return (
        <p className="installed" role="status">
          Installed {agent.version ?? ""} in {duration(running.took)}
        </p>
      );
    }
  }
  if (agent.support !== "supported") return <p className="muted by-hand">Has to be installed by hand, as told under About.</p>;
  return (
    <div className="install">
      {running !== undefined && <Steps agent={agent} install={running} />}
      <ErrorLine text={running?.error ?? null} />
      {!isRunning && (
        <button type="button" className={running === undefined ? "" : "primary"} onClick={() => void install(agent.id, { isUpdate: agent.installed })}>
          {running === undefined ? "Install" : "Try again"}
        </button>
      )}
    </div>
  );
}

/** Agents of the registry can be brought up to date; others are somebody else's to keep. */
function Update({ agent }: { agent: AgentInfo }) {
  if (agent.source !== "registry" && agent.source !== "fallback") return null;
  return (
    <div className="install">
      <button type="button" className="small" onClick={() => void install(agent.id, { isUpdate: true })}>
        Update
      </button>
    </div>
  );
}

function Steps({ agent, install: { steps, since, took, error } }: { agent: AgentInfo; install: Install }) {
  const now = steps.at(-1);
  const elapsed = useElapsed(since, took);
  return (
    <>
      <ol className="steps" aria-label={`Steps of the install of ${agent.name || agent.id}`}>
        {steps.map((step, index) => {
          const isLast = index === steps.length - 1;
          const state = !isLast ? "done" : error !== null ? "failed" : "current";
          return <Step key={index} step={step} state={state} />;
        })}
        {now === undefined && error === null && <li className="current">Asking the server</li>}
      </ol>
      {took === null && (
        <div className="progress">
          <progress
            aria-label={`Installing ${agent.name || agent.id}`}
            {...(now !== undefined && now.fraction !== null && { value: now.fraction, max: 1 })}
          />
          <span className="muted">
            {now !== undefined && now.fraction !== null && `${Math.floor(now.fraction * 100)} % · `}
            {duration(elapsed)}
          </span>
        </div>
      )}
    </>
  );
}

const MARKS = { done: "check", current: "running", failed: "close" } as const;

function Step({ step, state }: { step: InstallProgress; state: keyof typeof MARKS }) {
  return (
    <li className={state}>
      <span className="mark" role="img" aria-label={state}>
        <Icon name={MARKS[state]} size={14} />
      </span>
      <span>
        {step.message[0]?.toUpperCase() + step.message.slice(1)}
        {step.bytes > 0 && <span className="muted"> {bytes(step.bytes)}</span>}
      </span>
    </li>
  );
}

function useElapsed(since: number, took: number | null): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (took !== null) return;
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, [took]);
  return took ?? Math.max(0, now - since);
}
