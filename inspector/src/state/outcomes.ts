import type { RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { questionAnswers, readQuestion } from "sandbox-agent-client";
import type { AskItem } from "./items";

/** A JSON-RPC message, as far as a conversation reads it. */
export interface Message {
  id?: unknown;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

/** How the server tells that a question is over. */
export interface Settled {
  requestId: unknown;
  by: "client" | "policy" | "timeout" | "cancelled" | "agent" | "exited";
  clientInfo?: { name?: string; title?: string };
  result?: unknown;
}

/** How a question ended that nobody answered. */
export const SETTLED: Partial<Record<Settled["by"], string>> = {
  timeout: "Not answered in time",
  cancelled: "Cancelled",
  agent: "Withdrawn by the agent",
  exited: "The agent exited",
  client: "Answered",
  policy: "Answered",
};

/** Of a question that is over without an answer from here, until the history tells more. */
export const ELSEWHERE = "Settled elsewhere or withdrawn";

const ENDS: Record<string, string> = { accept: "Sent", decline: "Declined", rejected: "Declined", cancel: "Cancelled", cancelled: "Cancelled" };

export const STOPS: Record<string, string> = {
  cancelled: "Stopped",
  max_tokens: "Stopped: the token limit was reached",
  max_turn_requests: "Stopped: too many requests in one turn",
  refusal: "The agent refused",
};

/** How a question was answered, in a few words. */
export function outcomeOf(ask: AskItem, message: Message): string {
  if (message.error) return message.error.code === -32601 ? "Left to others" : message.error.message;
  const result = (message.result ?? {}) as Record<string, unknown>;
  if (ask.method === "permission") {
    const { outcome, optionId } = (result["outcome"] ?? {}) as { outcome?: string; optionId?: string };
    const option = (ask.params as RequestPermissionRequest).options?.find((one) => one.optionId === optionId);
    return outcome === "cancelled" ? "Cancelled" : (option?.name ?? optionId ?? "Answered");
  }
  if (ask.method === "question") {
    const answers = questionAnswers(result);
    if (answers === null) return ENDS[String(result["outcome"])] ?? "Answered";
    const labels = new Map(readQuestion(ask.params).options.map(({ id, label }) => [id, label]));
    return answers.map((id) => labels.get(id) ?? id).join(", ");
  }
  return ENDS[String(result["action"])] ?? "Answered";
}

/** What went wrong, with all that the error says of it. */
export function errorText(error: { message: string; data?: unknown }): string {
  const { details, hint } = (error.data ?? {}) as { details?: unknown; hint?: unknown };
  const more = [details, hint].filter((part): part is string => typeof part === "string");
  return [error.message, ...more, stderrOf(error.data)].filter(Boolean).join("\n");
}

/** What the agent wrote on stderr before it went, as the server passes it on: the first lines and the last. */
export function stderrOf(data: unknown): string | null {
  const { head = [], tail = [], truncated = false } = ((data as { stderr?: unknown } | null | undefined)?.stderr ?? {}) as Stderr;
  const lines = [...head, ...(truncated ? ["…"] : []), ...tail];
  return lines.length === 0 ? null : lines.join("\n");
}

interface Stderr {
  head?: string[];
  tail?: string[];
  truncated?: boolean;
}
