import type {
  AvailableCommand,
  ContentBlock,
  Plan,
  RequestPermissionRequest,
  SessionConfigOption,
  SessionUpdate,
  ToolCall,
  ToolCallUpdate,
  UsageUpdate,
} from "@agentclientprotocol/sdk";
import type { HistoryEvent, QuestionRequest, SessionEvent } from "sandbox-agent-client";
import { type Envelope, envelopeOf } from "./journal";
import { type Terminal, Terminals } from "./terminals";
import { GrowingText } from "./text";

export interface TextItem {
  kind: "agent" | "thought" | "user";
  key: number;
  time: number;
  messageId: string | null;
  text: GrowingText;
  /** Everything but text: images, links, files. */
  blocks: ContentBlock[];
}
export interface ToolItem {
  kind: "tool";
  key: number;
  time: number;
  call: ToolCall;
  terminals: Terminal[];
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
}
export interface NoteItem {
  kind: "note";
  key: number;
  time: number;
  tone: "info" | "error" | "end";
  text: string;
  detail: string | null;
}
export type Item = TextItem | ToolItem | PlanItem | AskItem | NoteItem;

/** What a conversation looks like, made of its messages. Mutable; `version` tells that something changed. */
export class Timeline {
  items: Item[] = [];
  version = 0;
  isBusy = false;
  /** The turn that runs was not begun here: nobody tells us how it ends. */
  isForeign = false;
  commands: AvailableCommand[] = [];
  configOptions: SessionConfigOption[] | null = null;
  modeId: string | null = null;
  usage: UsageUpdate | null = null;
  title: string | null = null;
  ended: string | null = null;
  /** Every envelope, both ways. Only ever grows. */
  readonly journal: Envelope[] = [];
  readonly #tools = new Map<string, ToolItem>();
  readonly #calls = new Map<string, string>();
  readonly #terminals = new Terminals();
  #asks: AskItem[] = [];
  /** Settled by somebody whose answer is not known here. */
  #puzzles: AskItem[] = [];
  #plan: PlanItem | null = null;
  #nextKey = 1;

  feed(events: SessionEvent[]): void {
    for (const event of events) {
      this.journal.push(envelopeOf(event));
      this.#take(event);
    }
    this.version += 1;
  }

  /** What waits for an answer. Kept apart, so that nobody has to look through all items for it. */
  openAsks(): readonly AskItem[] {
    return this.#asks;
  }

  /** Whether a question was settled by somebody whose answer is not known here. */
  get isPuzzled(): boolean {
    return this.#puzzles.length > 0;
  }

  /** Look for the answers that others gave among events of the history. */
  explain(events: readonly HistoryEvent[]): void {
    this.#puzzles = this.#puzzles.filter((ask) => {
      const found = events.find(({ source, envelope }) => source !== "agent" && envelope["method"] === undefined && same(envelope["id"], ask.id));
      if (found === undefined) return true;
      this.#answered(ask, found.envelope as Message, found.source === "client" ? "another client" : "the server’s policy");
      return false;
    });
    this.version += 1;
  }

  /** The turn of somebody else is over. */
  settle(): void {
    if (!this.isForeign) return;
    this.#endTurn();
    this.version += 1;
  }

  #take(event: SessionEvent): void {
    const message = event.message as unknown as Message;
    const scope = event.sequence === null ? "live" : "past";
    if (message.method === undefined) this.#takeAnswer(event, message, scope);
    else if (event.source === "client") this.#takeOwn(event, message, scope);
    else if (message.id !== undefined) this.#takeAsk(event, message);
    else this.#takeNotice(event, message);
  }

  #takeOwn(event: SessionEvent, message: Message, scope: string): void {
    if (message.id !== undefined) this.#calls.set(`${scope} ${JSON.stringify(message.id)}`, message.method as string);
    if (message.method === "session/prompt") {
      this.#beginTurn(event.sequence !== null);
      const { prompt } = message.params as { prompt: ContentBlock[] };
      const item = this.#addText("user", event.time, null);
      for (const block of prompt) addBlock(item, block);
    } else if (message.method === "session/cancel" && this.isBusy && !this.#hasRecent("Cancelling")) {
      this.#note(event.time, "info", "Cancelling");
    }
  }

  #takeAnswer(event: SessionEvent, message: Message, scope: string): void {
    const isOurs = event.source === "client";
    const ask = this.#asks.findLast(({ id }) => same(id, message.id));
    const key = `${scope} ${JSON.stringify(message.id)}`;
    const method = isOurs ? undefined : this.#calls.get(key);
    if (method !== undefined) {
      this.#calls.delete(key);
      if (method === "session/prompt") this.#finishTurn(event, message);
      else if (method === "session/set_config_option") this.#configured(message);
      else if (message.error) this.#note(event.time, "error", `${method} failed`, errorText(message.error));
    } else if (ask !== undefined && (isOurs || event.source === "server")) {
      this.#answered(ask, message, isOurs ? (event.sequence === null ? "you" : "a client") : "the server’s policy");
    } else if (isOurs) this.#showTerminal(this.#terminals.answer(message.id, message.result));
  }

  #answered(ask: AskItem, message: Message, by: string): void {
    const outcome = outcomeOf(ask, message);
    this.#close(ask, outcome, outcome === "Cancelled" ? null : by);
  }

  #showTerminal(terminal: Terminal | null): void {
    if (terminal === null) return;
    for (const item of this.#tools.values()) {
      if (!item.terminals.some(({ id }) => id === terminal.id)) continue;
      item.terminals = item.terminals.map((one) => (one.id === terminal.id ? terminal : one));
      item.call = { ...item.call };
    }
  }

  #takeAsk(event: SessionEvent, message: Message): void {
    if (message.method === "terminal/output") this.#terminals.ask(message.id, message.params);
    const method = ASKS[message.method as string];
    if (method === undefined) return;
    const known = this.#asks.find(({ id }) => same(id, message.id));
    if (known !== undefined) known.params = message.params;
    else {
      const { time } = event;
      this.#asks.push(this.#add<AskItem>({ kind: "ask", time, id: message.id, method, params: message.params, outcome: null, by: null }));
    }
  }

  #takeNotice(event: SessionEvent, message: Message): void {
    const params = (message.params ?? {}) as Record<string, unknown>;
    switch (message.method) {
      case "session/update":
        this.#update(event, params["update"] as SessionUpdate);
        break;
      case "$/cancel_request": {
        const ask = this.#asks.find(({ id }) => same(id, params["requestId"]));
        if (ask !== undefined) {
          this.#close(ask, ELSEWHERE, null);
          this.#puzzles.push(ask);
        }
        break;
      }
      case "_sandboxagent/session/ended":
        this.ended = String(params["message"] ?? params["reason"] ?? "ended");
        this.#endTurn();
        this.#note(event.time, "end", "Session ended", this.ended);
        break;
      case "_sandboxagent/error":
        this.#tellError(event.time, String(params["message"] ?? "Error"), stderrOf(params["details"]));
        break;
      case "_sandboxagent/session/turn_ended":
        this.settle();
        break;
      case "_sandboxagent/terminal/output":
        this.#showTerminal(this.#terminals.tell(params));
        break;
      case "_sandboxagent/agent/unparsed":
        this.#note(event.time, "error", "The agent wrote a line that is not a message", String(params["error"] ?? ""));
        break;
      case "_sandboxagent/stream/gap":
        this.#note(event.time, "error", "Some events are no longer kept and are missing here");
        break;
    }
  }

  #update(event: SessionEvent, update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case "agent_message_chunk":
      case "agent_thought_chunk":
      case "user_message_chunk":
        this.#chunk(event, update);
        break;
      case "tool_call":
      case "tool_call_update":
        this.#tool(event, update);
        break;
      case "plan":
        if (this.#plan === null) this.#plan = this.#add<PlanItem>({ kind: "plan", time: event.time, plan: update });
        else this.#plan.plan = update;
        break;
      case "available_commands_update":
        this.commands = update.availableCommands;
        break;
      case "current_mode_update":
        this.modeId = update.currentModeId;
        break;
      case "config_option_update":
        this.configOptions = update.configOptions;
        break;
      case "session_info_update":
        if (typeof update.title === "string") this.title = update.title;
        break;
      case "usage_update":
        this.usage = update;
        break;
      default:
        break;
    }
  }

  #chunk(event: SessionEvent, update: Chunk): void {
    const kinds = { agent_message_chunk: "agent", agent_thought_chunk: "thought", user_message_chunk: "user" } as const;
    const kind = kinds[update.sessionUpdate as keyof typeof kinds];
    const messageId = typeof update.messageId === "string" ? update.messageId : null;
    const last = this.items.at(-1);
    const goesOn = last?.kind === kind && (messageId === null || last.messageId === null || last.messageId === messageId);
    if (kind === "user" && event.sequence === null && !goesOn) this.#beginTurn(true);
    const item = goesOn ? (last as TextItem) : this.#addText(kind, event.time, messageId);
    addBlock(item, update.content);
  }

  #tool(event: SessionEvent, update: ({ sessionUpdate: "tool_call" } & ToolCall) | ({ sessionUpdate: "tool_call_update" } & ToolCallUpdate)): void {
    const { sessionUpdate: _, ...fields } = update;
    const known = this.#tools.get(update.toolCallId);
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
    const call = { title: update.toolCallId, ...known?.call, ...given } as unknown as ToolCall;
    const terminals = this.#terminals.update(call, known?.terminals ?? [], update._meta);
    if (known !== undefined) Object.assign(known, { call, terminals });
    else this.#tools.set(update.toolCallId, this.#add<ToolItem>({ kind: "tool", time: event.time, call, terminals }));
  }

  #configured(message: Message): void {
    const result = message.result as { configOptions?: SessionConfigOption[] } | null | undefined;
    if (result?.configOptions) this.configOptions = result.configOptions;
  }

  #beginTurn(isForeign: boolean): void {
    this.#abandonAsks();
    this.#plan = null;
    this.isBusy = true;
    this.isForeign = isForeign;
  }

  #finishTurn(event: SessionEvent, message: Message): void {
    this.#endTurn();
    if (message.error) this.#note(event.time, "error", "The turn failed", errorText(message.error));
    else {
      const reason = (message.result as { stopReason?: string } | null)?.stopReason ?? "end_turn";
      if (reason !== "end_turn") this.#note(event.time, "info", STOPS[reason] ?? `Stopped: ${reason}`);
    }
  }

  #endTurn(): void {
    this.#abandonAsks();
    this.isBusy = this.isForeign = false;
  }

  #abandonAsks(): void {
    for (const ask of this.#asks) this.#close(ask, "Not answered", null);
  }

  #close(ask: AskItem, outcome: string, by: string | null): void {
    Object.assign(ask, { outcome, by });
    this.#asks = this.#asks.filter((one) => one !== ask);
  }

  /** The turn that failed for it has said the same already: then it is said once, in the longer words. */
  #tellError(time: number, message: string, stderr: string | null): void {
    const last = this.items.at(-1);
    if (last?.kind === "note" && last.tone === "error" && message.startsWith(last.detail?.split("\n")[0] ?? "\n")) {
      this.items.pop();
      this.#note(last.time, "error", last.text, [message, stderr].filter(Boolean).join("\n"));
    } else this.#note(time, "error", message, stderr);
  }

  #hasRecent(text: string): boolean {
    const last = this.items.at(-1);
    return last?.kind === "note" && last.text === text;
  }

  #note(time: number, tone: NoteItem["tone"], text: string, detail: string | null = null): void {
    this.#add<NoteItem>({ kind: "note", time, tone, text, detail });
  }

  #addText(kind: TextItem["kind"], time: number, messageId: string | null): TextItem {
    return this.#add<TextItem>({ kind, time, messageId, text: new GrowingText(), blocks: [] });
  }

  #add<T extends Item>(item: Omit<T, "key">): T {
    const added = { ...item, key: this.#nextKey++ } as T;
    this.items.push(added);
    return added;
  }
}

type Chunk = Extract<
  SessionUpdate,
  { sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" }
>;

interface Message {
  id?: unknown;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

const ASKS: Record<string, AskMethod> = {
  "session/request_permission": "permission",
  "_sandboxagent/session/request_question": "question",
  "elicitation/create": "elicitation",
};

/** Of a question that is over without an answer from here, until the history tells more. */
const ELSEWHERE = "Settled elsewhere or withdrawn";

const ENDS: Record<string, string> = { accept: "Sent", decline: "Declined", rejected: "Declined", cancel: "Cancelled", cancelled: "Cancelled" };

const STOPS: Record<string, string> = {
  cancelled: "Cancelled",
  max_tokens: "Stopped: the token limit was reached",
  max_turn_requests: "Stopped: too many requests in one turn",
  refusal: "The agent refused",
};

function addBlock(item: TextItem, block: ContentBlock): void {
  if (block.type === "text") item.text.append(block.text);
  else item.blocks = [...item.blocks, block];
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function outcomeOf(ask: AskItem, message: Message): string {
  if (message.error) return message.error.code === -32601 ? "Left to others" : message.error.message;
  const result = (message.result ?? {}) as Record<string, unknown>;
  if (ask.method === "permission") {
    const { outcome, optionId } = (result["outcome"] ?? {}) as { outcome?: string; optionId?: string };
    const option = (ask.params as RequestPermissionRequest).options.find((one) => one.optionId === optionId);
    return outcome === "cancelled" ? "Cancelled" : (option?.name ?? optionId ?? "Answered");
  }
  if (ask.method === "question") {
    if (result["outcome"] !== "answered") return ENDS[String(result["outcome"])] ?? "Answered";
    const labels = new Map((ask.params as QuestionRequest).options.map(({ id, label }) => [id, label]));
    return ((result["answers"] as string[][] | undefined) ?? []).flat().map((id) => labels.get(id) ?? id).join(", ");
  }
  return ENDS[String(result["action"])] ?? "Answered";
}

function errorText(error: { message: string; data?: unknown }): string {
  return [error.message, stderrOf(error.data)].filter(Boolean).join("\n");
}

/** What the agent wrote on stderr before it went, as the server passes it on: the first lines and the last. */
function stderrOf(data: unknown): string | null {
  const { head = [], tail = [], truncated = false } = ((data as { stderr?: unknown } | null | undefined)?.stderr ?? {}) as Stderr;
  const lines = [...head, ...(truncated ? ["…"] : []), ...tail];
  return lines.length === 0 ? null : lines.join("\n");
}

interface Stderr {
  head?: string[];
  tail?: string[];
  truncated?: boolean;
}
