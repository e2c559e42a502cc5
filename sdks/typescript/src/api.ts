/** The values of the HTTP surface. */
export interface AgentInfo {
  id: string;
  name: string;
  installed: boolean;
  version: string | null;
  path: string | null;
  source: string | null;
  verified: boolean;
  credentialsAvailable: boolean;
  instructions: string;
  capabilities: Record<string, unknown>;
  serverStatus: {
    status: "running" | "stopped" | "error";
    uptimeMs: number | null;
    restartCount: number;
    lastError: string | null;
    pid: number | null;
    sessions: number;
  };
  models: Record<string, unknown>[] | null;
  modes: Record<string, unknown>[] | null;
  configOptions: Record<string, unknown>[] | null;
  configError: string | null;
}
export interface AgentLogs {
  agent: string;
  status: string;
  lines: string[];
  totalLines: number;
}
export interface Installed {
  already_installed: boolean;
  artifacts: Record<string, unknown>[];
}
export interface SessionSummary {
  sessionId: string;
  agent: string;
  alias: string | null;
  title: string | null;
  cwd: string | null;
  mode: string | null;
  model: string | null;
  createdAt: string;
  updatedAt: string;
  ended: boolean;
  endedAt: string | null;
  endedReason: string | null;
  eventCount: number;
  metadata: Record<string, unknown>;
}
export interface SessionDetail extends SessionSummary {
  isLive: boolean;
  isBusy: boolean;
}
export interface SessionList {
  sessions: SessionSummary[];
  nextCursor: string | null;
}
export interface FsEntry {
  name: string;
  path: string;
  entryType: "file" | "directory";
  size: number;
  modified: string | null;
}
export type FsStat = Omit<FsEntry, "name">;
export interface FsWriteResult {
  path: string;
  bytesWritten: number;
}
