import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { AgentConnection } from "sandbox-agent-client";

/**
 * An extension of ACP that Claude Code and Codex have: a prompt for the turn that runs. Agents announce it in the
 * `_meta` of their `initialize`. It is theirs, so the server passes it on as it is, and keeps it in the history.
 */
export const STEERING = "_session/steering";

export function canSteer(connection: AgentConnection | undefined): boolean {
  const meta = connection?.initialized._meta as { steering?: { supported?: boolean } } | null | undefined;
  return meta?.steering?.supported === true;
}

/** Whether the agent has taken it. It has not where the turn was over first: then it has to be sent as a prompt. */
export async function steer(connection: AgentConnection, sessionId: string, prompt: readonly ContentBlock[]): Promise<boolean> {
  const asked = { sessionId, prompt, _meta: { steering: { idleBehavior: "promptRequired" } } };
  const { outcome } = (await connection.acp.request(STEERING, asked)) as { outcome?: string };
  return outcome === "injected" || outcome === "startedNewTurn";
}
