import type { Plan, ToolCall } from "@agentclientprotocol/sdk";
import type { MessageBody } from "./body";
import type { Terminal } from "./terminals";
import type { Turn } from "./turns";

export interface TextItem {
  kind: "agent" | "thought" | "user";
  key: number;
  time: number;
  messageId: string | null;
  body: MessageBody;
  /** Of a prompt: the turn that it began, or that it was added to. */
  turn: Turn | null;
  /** It was added to a turn that ran already. */
  isAdded?: boolean;
}
export interface ToolItem {
  kind: "tool";
  key: number;
  time: number;
  /** When it was over; null while it runs. */
  ended: number | null;
  call: ToolCall;
  terminals: Terminal[];
  /** Permissions that were asked for this call, the newest last. */
  asks: AskItem[];
}
export interface PlanItem {
  kind: "plan";
  key: number;
  time: number;
  plan: Plan;
}
export type AskMethod = "permission" | "question" | "elicitation";
export interface AskItem {
  kind: "ask";
  key: number;
  time: number;
  id: unknown;
  method: AskMethod;
  params: unknown;
  /** null while it is open. */
  outcome: string | null;
  by: string | null;
  /** What was sent, of a form. */
  sent: Record<string, unknown> | null;
}
export interface NoteItem {
  kind: "note";
  key: number;
  time: number;
  tone: "info" | "error" | "end" | "fork";
  text: string;
  detail: string | null;
  /** Of a failure: the number that JSON-RPC has for it, and the turn that it ended. */
  code: number | null;
  turn: Turn | null;
}
export type Item = TextItem | ToolItem | PlanItem | AskItem | NoteItem;
