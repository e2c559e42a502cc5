import type { McpServer } from "@agentclientprotocol/sdk";
import { Icon } from "../parts/Icon";

/** A server as it stands in the form. */
export interface DraftServer {
  kind: "stdio" | "http" | "sse";
  name: string;
  /** The command with its arguments, or the address. */
  target: string;
  /** `NAME=value`, one a line: environment or headers. */
  more: string;
  /** For every session in the directory from now on, not for this one alone. */
  isKept: boolean;
}

interface Props {
  servers: DraftServer[];
  onChange: (servers: DraftServer[]) => void;
}

const EMPTY: DraftServer = { kind: "stdio", name: "", target: "", more: "", isKept: true };

/** MCP servers that the agent gets. */
export function McpServers({ servers, onChange }: Props) {
  const change = (at: number, more: Partial<DraftServer>): void => onChange(servers.map((one, index) => (index === at ? { ...one, ...more } : one)));
  return (
    <div className="mcp-servers">
      {servers.map((server, at) => (
        <fieldset key={at} aria-label={`MCP server ${at + 1}`}>
          <select aria-label="Transport" value={server.kind} onChange={(event) => change(at, { kind: event.target.value as DraftServer["kind"] })}>
            <option value="stdio">Command</option>
            <option value="http">HTTP</option>
            <option value="sse">SSE</option>
          </select>
          <input aria-label="Name of the MCP server" placeholder="Name" required value={server.name} onChange={(event) => change(at, { name: event.target.value })} />
          <button type="button" className="quiet icon-button" aria-label={`Remove MCP server ${server.name || at + 1}`} onClick={() => onChange(servers.filter((_, index) => index !== at))}>
            <Icon name="close" />
          </button>
          <input
            className="mono target"
            aria-label={server.kind === "stdio" ? "Command and arguments" : "URL"}
            placeholder={server.kind === "stdio" ? "/usr/bin/mcp-files --root /work" : "https://example.com/mcp"}
            type={server.kind === "stdio" ? "text" : "url"}
            required
            value={server.target}
            onChange={(event) => change(at, { target: event.target.value })}
          />
          <textarea
            className="mono"
            rows={Math.max(1, server.more.split("\n").length)}
            aria-label={server.kind === "stdio" ? "Environment" : "Headers"}
            placeholder={server.kind === "stdio" ? "Environment: NAME=value or NAME=${VARIABLE}" : "Headers: NAME=value or NAME=${VARIABLE}"}
            value={server.more}
            onChange={(event) => change(at, { more: event.target.value })}
          />
          <label className="kept">
            <input type="checkbox" checked={server.isKept} onChange={(event) => change(at, { isKept: event.target.checked })} />
            For every new session in this directory
          </label>
        </fieldset>
      ))}
      <button type="button" className="small" onClick={() => onChange([...servers, EMPTY])}>
        <Icon name="add" size={14} />
        Add a server
      </button>
    </div>
  );
}

/** As the configuration of a directory has it. */
export function configOf({ kind, target, more }: DraftServer): Record<string, unknown> {
  const pairs = Object.fromEntries(pairsOf(more).map(({ name, value }) => [name, value]));
  if (kind !== "stdio") return { type: "remote", transport: kind, url: target, headers: pairs };
  const [command = "", ...args] = wordsOf(target);
  return { type: "local", command, args, env: pairs };
}

/** As ACP has it. Words of a command that hold blanks are quoted as in a shell. */
export function serverOf({ kind, name, target, more }: DraftServer): McpServer {
  const pairs = pairsOf(more);
  if (kind !== "stdio") return { type: kind, name, url: target, headers: pairs };
  const [command = "", ...args] = wordsOf(target);
  return { name, command, args, env: pairs };
}

function pairsOf(lines: string): { name: string; value: string }[] {
  return lines.split("\n").flatMap((line) => {
    const at = line.indexOf("=");
    return at < 1 ? [] : [{ name: line.slice(0, at).trim(), value: line.slice(at + 1) }];
  });
}

function wordsOf(line: string): string[] {
  return [...line.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}
