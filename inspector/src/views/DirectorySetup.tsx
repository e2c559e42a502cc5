import { useEffect, useState } from "react";
import { Fold, Icon } from "../parts/Icon";
import { ErrorLine } from "../parts/small";
import { type DirectoryConfig, type DirectoryEntry, putServer, putSkills, readDirectory, removeEntry } from "../state/directoryConfig";
import { reasonOf } from "../state/server";
import { AddSkills } from "./AddSkills";
import { type DraftServer, McpServers } from "./McpServers";

interface Props {
  directory: string;
  drafts: DraftServer[];
  onDrafts: (drafts: DraftServer[]) => void;
}

/** What the session gets besides: the MCP servers and skills of its directory, and servers that are added here. */
export function DirectorySetup({ directory, drafts, onDrafts }: Props) {
  const [config, setConfig] = useState<DirectoryConfig>({ mcp: [], skills: [] });
  const [error, setError] = useState<string | null>(null);
  const act = async (work: () => Promise<void>): Promise<boolean> => {
    try {
      await work();
      setConfig(await readDirectory(directory));
      setError(null);
      return true;
    } catch (reason) {
      setError(reasonOf(reason));
      return false;
    }
  };
  useEffect(() => {
    const timer = setTimeout(() => void act(async () => {}), 300); // once it is written to its end
    return () => clearTimeout(timer);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only another directory has another configuration
  }, [directory]);
  const enable = (entry: DirectoryEntry, enabled: boolean): void => void act(() => putServer(entry.directory, entry.name, { ...entry.config, enabled }));
  const { mcp, skills } = config;
  const broken = [...mcp, ...skills].filter(({ problem, config: { enabled } }) => problem !== null && enabled !== false).length;
  return (
    <details className="field wide setup">
      <summary>
        <Fold /> MCP servers and skills
        {mcp.length + skills.length > 0 && <span className="tag">{mcp.length + skills.length}</span>}
        {broken > 0 && <span className="tag broken">{broken === 1 ? "1 has a problem" : `${broken} have problems`}</span>}
      </summary>
      {mcp.length > 0 && <h3>MCP servers of this directory</h3>}
      <ul className="entries-of-directory" aria-label="MCP servers of this directory">
        {mcp.map((entry) => (
          <Entry key={entry.name} entry={entry} directory={directory} what={targetOf(entry)} onRemove={() => void act(() => removeEntry("mcp", entry))}>
            <input type="checkbox" aria-label={`Use ${entry.name}`} title="Use it in new sessions" checked={entry.config["enabled"] !== false} onChange={(event) => enable(entry, event.target.checked)} />
          </Entry>
        ))}
      </ul>
      {skills.length > 0 && <h3>Skills of this directory</h3>}
      <ul className="entries-of-directory" aria-label="Skills of this directory">
        {skills.map((entry) => (
          <Entry key={entry.name} entry={entry} directory={directory} what={sourcesOf(entry)} onRemove={() => void act(() => removeEntry("skills", entry))}>
            <Icon name="file" />
          </Entry>
        ))}
      </ul>
      <ErrorLine text={error} />
      <McpServers servers={drafts} onChange={onDrafts} />
      <AddSkills onAdd={(name, given) => act(() => putSkills(directory, name, given))} />
    </details>
  );
}

interface EntryProps {
  entry: DirectoryEntry;
  directory: string;
  what: string;
  onRemove: () => void;
  children: React.ReactNode;
}

function Entry({ entry, directory, what, onRemove, children }: EntryProps) {
  const isInherited = entry.directory !== (directory.replace(/\/+$/, "") || "/");
  return (
    <li>
      {children}
      <span className="about">
        <strong>{entry.name}</strong>
        <span className="mono muted" title={what}>
          {what}
        </span>
        {isInherited && <span className="muted">from {entry.directory}</span>}
        {entry.problem !== null && <span className="bad">Not available: {entry.problem}</span>}
      </span>
      <button type="button" className="quiet icon-button" aria-label={`Remove ${entry.name} from ${entry.directory}`} title={`Remove it from ${entry.directory}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
    </li>
  );
}

function targetOf({ config }: DirectoryEntry): string {
  if (typeof config["url"] === "string") return config["url"];
  const { command, args } = config as { command?: unknown; args?: unknown };
  return [...(Array.isArray(command) ? command : [command]), ...(Array.isArray(args) ? args : [])].join(" ");
}

function sourcesOf({ config }: DirectoryEntry): string {
  const sources = Array.isArray(config["sources"]) ? (config["sources"] as { source?: unknown; skills?: string[] }[]) : [];
  return sources.map(({ source, skills }) => `${String(source)}${skills ? `: ${skills.join(", ")}` : ""}`).join("; ");
}
