import type { McpServer } from "@agentclientprotocol/sdk";
import type { AgentInfo, CreateOptions } from "sandbox-agent-client";
import { type FormEvent, useEffect, useState } from "react";
import { Dialog, ErrorLine } from "../parts/small";
import { conversationOf } from "../state/conversation";
import { agentList, sessionList } from "../state/lists";
import { go } from "../state/route";
import { reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import { focusPromptNext } from "./Composer";
import "./NewSession.css";

const LAST = "sandbox-agent.new-session";
const POLICIES = [
  ["ask", "Ask me"],
  ["allow", "Allow everything"],
  ["reject", "Reject everything"],
] as const;

export function NewSession({ onClose }: { onClose: () => void }) {
  const { agents, error: listError } = useStore(agentList);
  const last = readLast();
  const [agent, setAgent] = useState(last.agent ?? "");
  const [error, setError] = useState<string | null>(null);
  const [isStarting, setStarting] = useState(false);
  useEffect(() => void agentList.refresh(), []);
  const chosen = agents.find(({ id }) => id === agent) ?? agents.find(({ installed }) => installed) ?? agents[0];
  const offer = useOffer(chosen);
  const { sessions } = useStore(sessionList);
  const directories = [...new Set(sessions.flatMap(({ cwd }) => (cwd === null ? [] : [cwd])))];

  const start = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    setStarting(true);
    setError(null);
    try {
      const options = optionsOf(new FormData(event.currentTarget));
      localStorage.setItem(LAST, JSON.stringify({ agent: options.agent, cwd: options.cwd }));
      const session = await sandbox.sessions.create(options);
      conversationOf(session.id, session.agent, session);
      await sessionList.refresh();
      onClose();
      focusPromptNext();
      go(["sessions", session.id], { agent: session.agent });
    } catch (reason) {
      setError(reasonOf(reason));
      setStarting(false);
    }
  };

  return (
    <Dialog title="New session" onClose={onClose}>
      <form onSubmit={(event) => void start(event)}>
        <div className="fields">
          <label className="field">
            <span>Agent</span>
            <select name="agent" data-first value={chosen?.id ?? ""} onChange={(event) => setAgent(event.target.value)} required>
              {agents.map(({ id, name, installed }) => (
                <option key={id} value={id}>
                  {name || id}
                  {installed ? "" : " (will be installed)"}
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>Directory</span>
            <input name="cwd" className="mono" defaultValue={last.cwd ?? "/tmp"} required pattern="/.*" title="An absolute path" list="directories" />
            <datalist id="directories">
              {directories.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </label>
          <Choice name="model" label="Model" values={offer.found?.models} isAsking={offer.isAsking} />
          <Choice name="mode" label="Mode" values={offer.found?.modes} isAsking={offer.isAsking} />
          <label className="field">
            <span>Permissions</span>
            <select name="permissionMode">
              {POLICIES.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <label className="field">
            <span>Title</span>
            <input name="title" placeholder="Optional" />
          </label>
          <details className="field wide">
            <summary>MCP servers</summary>
            <label>
              <span className="muted">A JSON array as ACP has it</span>
              <textarea name="mcpServers" className="mono" rows={4} placeholder='[{"name":"files","command":"/usr/bin/mcp-files","args":[],"env":[]}]' />
            </label>
          </details>
        </div>
        {offer.problem !== null && <p className="muted offer-problem">Models and modes are not known: {offer.problem}</p>}
        <ErrorLine text={error ?? listError} />
        <footer>
          <button type="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" id="start-session" className="primary" disabled={isStarting || chosen === undefined}>
            {isStarting ? "Starting" : "Start"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface ChoiceProps {
  name: string;
  label: string;
  values: Record<string, unknown>[] | null | undefined;
  isAsking: boolean;
}

/** Always there, also where there is nothing to choose: what stands below it must not move under the pointer. */
function Choice({ name, label, values, isAsking }: ChoiceProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <select name={name} disabled={isAsking || !values || values.length === 0}>
        <option value="">{isAsking ? "Asking the agent" : "The agent’s own"}</option>
        {(values ?? []).map((value) => {
          const id = String(value["id"] ?? value["modelId"] ?? value["value"]);
          return (
            <option key={id} value={id}>
              {String(value["name"] ?? id)}
            </option>
          );
        })}
      </select>
    </label>
  );
}

interface Offer {
  found: AgentInfo | null;
  isAsking: boolean;
  problem: string | null;
}

const NOTHING: Offer = { found: null, isAsking: false, problem: null };

/** Models and modes of an agent that is installed. Asking starts it, as the session will. */
function useOffer(agent: AgentInfo | undefined): Offer {
  const [offer, setOffer] = useState<Offer>(NOTHING);
  const id = agent?.installed ? agent.id : null;
  useEffect(() => {
    setOffer(id === null ? NOTHING : { ...NOTHING, isAsking: true });
    if (id === null) return;
    let isOver = false;
    sandbox.agents.get(id, { config: true }).then(
      (found) => !isOver && setOffer({ found, isAsking: false, problem: found.configError }),
      (reason: unknown) => !isOver && setOffer({ ...NOTHING, problem: reasonOf(reason) }),
    );
    return () => {
      isOver = true;
    };
  }, [id]);
  return offer;
}

function optionsOf(form: FormData): CreateOptions {
  const text = (name: string): string => String(form.get(name) ?? "").trim();
  const servers = text("mcpServers");
  return {
    agent: text("agent"),
    cwd: text("cwd"),
    permissionMode: text("permissionMode"),
    ...(text("model") && { model: text("model") }),
    ...(text("mode") && { mode: text("mode") }),
    ...(text("title") && { title: text("title") }),
    ...(servers && { mcpServers: parseServers(servers) }),
  };
}

function parseServers(text: string): McpServer[] {
  const parsed: unknown = JSON.parse(text);
  if (!Array.isArray(parsed)) throw new Error("MCP servers must be a JSON array");
  return parsed as McpServer[];
}

function readLast(): { agent?: string; cwd?: string } {
  try {
    return JSON.parse(localStorage.getItem(LAST) ?? "{}") as { agent?: string; cwd?: string };
  } catch {
    return {};
  }
}
