import type { McpServer } from "@agentclientprotocol/sdk";
import type { AgentInfo, CreateOptions } from "sandbox-agent-client";
import { type FormEvent, useEffect, useState } from "react";
import { Dialog, ErrorLine } from "../parts/small";
import { conversationOf } from "../state/conversation";
import { agentList, sessionList } from "../state/lists";
import { putServer } from "../state/directoryConfig";
import { go } from "../state/route";
import { reasonOf, sandbox } from "../state/server";
import { useStore } from "../state/store";
import { focusPromptNext } from "./Composer";
import { DirectoryPicker } from "./DirectoryPicker";
import { DirectorySetup } from "./DirectorySetup";
import { AUTH_REQUIRED, Logins } from "./Logins";
import { configOf, type DraftServer, serverOf } from "./McpServers";
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
  const [login, setLogin] = useState<{ keys: string[] } | null>(null);
  const [isStarting, setStarting] = useState(false);
  useEffect(() => void agentList.refresh(), []);
  const chosen = agents.find(({ id }) => id === agent) ?? agents.find(({ installed }) => installed) ?? agents[0];
  const offer = useOffer(chosen);
  const [cwd, setCwd] = useState(last.cwd ?? "/tmp");
  const [isBrowsing, setBrowsing] = useState(false);
  const [servers, setServers] = useState<DraftServer[]>([]);
  const { sessions } = useStore(sessionList);
  const directories = [...new Set(sessions.flatMap(({ cwd }) => (cwd === null ? [] : [cwd])))];

  const start = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    setStarting(true);
    setError(null);
    try {
      const options = optionsOf(new FormData(event.currentTarget), servers.filter(({ isKept }) => !isKept).map(serverOf));
      localStorage.setItem(LAST, JSON.stringify({ agent: options.agent, cwd: options.cwd }));
      for (const server of servers) if (server.isKept) await putServer(cwd, server.name, configOf(server));
      const session = await sandbox.sessions.create(options);
      conversationOf(session.id, session.agent, session);
      await sessionList.refresh();
      onClose();
      focusPromptNext();
      go(["sessions", session.id], { agent: session.agent });
    } catch (reason) {
      setError(reasonOf(reason));
      setLogin(neededLogin(reason));
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
            <span className="with-button">
              <input name="cwd" className="mono" value={cwd} onChange={(event) => setCwd(event.target.value)} required pattern="/.*" title="An absolute path" list="directories" />
              <button type="button" aria-expanded={isBrowsing} onClick={() => setBrowsing(!isBrowsing)}>
                Browse
              </button>
            </span>
            <datalist id="directories">
              {directories.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </label>
          {isBrowsing && <DirectoryPicker path={cwd} onChoose={setCwd} />}
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
          <DirectorySetup directory={cwd} drafts={servers} onDrafts={setServers} />
        </div>
        {offer.problem !== null && <p className="muted offer-problem">Models and modes are not known: {offer.problem}</p>}
        <ErrorLine text={error ?? listError} />
        {error !== null && login !== null && chosen !== undefined && <Logins agent={chosen.id} keys={login.keys} next="Press Start again." />}
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" id="start-session" className="primary" disabled={isStarting || chosen === undefined}>
            {isStarting ? "Starting" : "Start"}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** The keys that an agent could be given instead of a login; null where it was refused for another reason. */
function neededLogin(reason: unknown): { keys: string[] } | null {
  const { code, data } = reason as { code?: unknown; data?: { env?: string[] } };
  return code === AUTH_REQUIRED ? { keys: data?.env ?? [] } : null;
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
        <option value="">{isAsking ? "Asking the agent" : "Agent default"}</option>
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

function optionsOf(form: FormData, given: McpServer[]): CreateOptions {
  const text = (name: string): string => String(form.get(name) ?? "").trim();
  return {
    agent: text("agent"),
    cwd: text("cwd"),
    permissionMode: text("permissionMode"),
    ...(text("model") && { model: text("model") }),
    ...(text("mode") && { mode: text("mode") }),
    ...(text("title") && { title: text("title") }),
    ...(given.length > 0 && { mcpServers: given }),
  };
}

function readLast(): { agent?: string; cwd?: string } {
  try {
    return JSON.parse(localStorage.getItem(LAST) ?? "{}") as { agent?: string; cwd?: string };
  } catch {
    return {};
  }
}
