import { type Problem, ProblemError } from "sandbox-agent-client";
import { ROOT } from "./server";

/** What is configured for a directory, or for one above it, and holds there. */
export interface DirectoryEntry {
  name: string;
  directory: string;
  /** Why a session cannot have it. */
  problem: string | null;
  config: Record<string, unknown>;
}

export interface DirectoryConfig {
  mcp: DirectoryEntry[];
  skills: DirectoryEntry[];
}

type Kind = keyof DirectoryConfig;

export async function readDirectory(directory: string): Promise<DirectoryConfig> {
  const read = async (kind: Kind): Promise<DirectoryEntry[]> => {
    const response = await call("GET", kind, directory);
    return ((await response.json()) as { entries: DirectoryEntry[] }).entries;
  };
  const [mcp, skills] = await Promise.all([read("mcp"), read("skills")]);
  return { mcp, skills };
}

export async function putServer(directory: string, name: string, config: Record<string, unknown>): Promise<void> {
  await call("PUT", "mcp", directory, name, config);
}

export async function putSkills(directory: string, name: string, config: Record<string, unknown>): Promise<void> {
  await call("PUT", "skills", directory, name, config);
}

export async function removeEntry(kind: Kind, { directory, name }: DirectoryEntry): Promise<void> {
  await call("DELETE", kind, directory, name);
}

async function call(method: string, kind: Kind, directory: string, name?: string, body?: object): Promise<Response> {
  const query = new URLSearchParams({ directory, ...(name !== undefined && { [kind === "mcp" ? "mcpName" : "skillName"]: name }) });
  const response = await fetch(`${ROOT}/v1/config/${kind}?${query}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  if (response.ok) return response;
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
  throw new ProblemError({ type: "about:blank", title: response.statusText, status: response.status, ...problem });
}
