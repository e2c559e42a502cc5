import type { ContentBlock, Plan, PlanEntry, RequestPermissionRequest, SessionConfigOption, ToolCallContent } from "@agentclientprotocol/sdk";

/** An update of version 2 of ACP, with the members that are looked at. null clears what was said before. */
export interface Told {
  sessionUpdate: string;
  messageId?: string;
  content?: unknown;
  state?: unknown;
  stopReason?: unknown;
  error?: { code: number; message: string };
  title?: string | null;
  description?: string | null;
  severity?: string;
  status?: string;
  summary?: ContentBlock[] | null;
  compactionId?: string;
  sessionId?: string;
  planId?: string;
  plan?: SecondPlan;
}

interface SecondPlan {
  planId?: string;
  entries?: PlanEntry[];
  content?: string;
  uri?: string;
}

interface Change {
  operation?: string;
  path?: string;
  oldPath?: string;
}

/** The contents of a tool call as version 1 has them: a change of several files is several diffs. */
export function contentsOf(given: unknown): ToolCallContent[] {
  return Array.isArray(given) ? (given as ToolCallContent[]).flatMap((one) => ("changes" in one ? diffsOf(one as never) : [one])) : [];
}

function diffsOf({ changes, patch }: { changes: Change[]; patch?: { text?: string } | null }): ToolCallContent[] {
  const sections = (patch?.text ?? "").split(/^(?=diff --git )/m).filter((one) => one.startsWith("diff --git "));
  return changes.map((change, index) => {
    const name = [change.operation, change.oldPath, change.path].filter(Boolean).join(" ");
    const texts = sections.length === changes.length ? textsOf(sections[index] as string) : null;
    if (texts === null || change.path === undefined) return { type: "content", content: { type: "text", text: patch?.text && changes.length === 1 ? patch.text : name } };
    return { type: "diff", path: change.path, oldText: change.operation === "add" ? null : texts.before, newText: texts.after };
  });
}

/** What a file was and is, as far as its patch tells; null where it has no text. */
function textsOf(section: string): { before: string; after: string } | null {
  const lines = section.split("\n");
  const first = lines.findIndex((line) => line.startsWith("@@ "));
  if (first === -1) return null;
  const side = (marks: string): string =>
    lines
      .slice(first)
      .filter((line) => line !== "" && marks.includes(line[0] as string))
      .map((line) => line.slice(1))
      .join("\n");
  return { before: side(" -"), after: side(" +") };
}

/** A permission with the tool call that it is about, or one made up for what else it is about. */
export function permissionOf(params: unknown): RequestPermissionRequest {
  const asked = params as RequestPermissionRequest & { title?: string; subject?: { toolCall?: { toolCallId: string; content?: unknown }; toolCallId?: string; command?: string } | null };
  if (asked.toolCall !== undefined) return asked;
  const { title = "Permission", subject } = asked;
  const { toolCall, ...rest } = subject ?? {};
  const made = { toolCallId: rest.toolCallId ?? `permission: ${title}`, ...(rest.command !== undefined && { kind: "execute", rawInput: rest }) };
  return { ...asked, toolCall: { title, ...(toolCall ? { ...toolCall, ...(toolCall.content != null && { content: contentsOf(toolCall.content) }) } : made) } } as RequestPermissionRequest;
}

export function optionsOf(options: readonly unknown[]): SessionConfigOption[] {
  return options.map((one) => ({ id: (one as { configId?: string }).configId, ...(one as object) })) as SessionConfigOption[];
}

/** A plan of whatever kind as steps. */
export function planOf({ entries, content, uri }: SecondPlan = {}): Plan {
  const text = content ?? uri;
  return { entries: entries ?? (text === undefined ? [] : [{ content: text, priority: "medium", status: "pending" }]) };
}

export function bytesOf(data: unknown): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(String(data)), (one) => one.charCodeAt(0)));
  } catch {
    return "";
  }
}
