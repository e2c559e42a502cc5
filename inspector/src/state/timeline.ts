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
import type { HistoryEvent, SessionEvent } from "sandbox-agent-client";
import { MessageBody } from "./body";
import { Journal } from "./journal";
import { optionsOf } from "./questions";
import { type Terminal, Terminals } from "./terminals";
import { type Turn, type TurnNotice, Turns } from "./turns";

export interface TextItem {
  kind: "agent" | "thought" | "user";
  key: number;
  time: number;
  messageId: string | null;
  body: MessageBody;
  /** Of a prompt: the turn that it began. */
  turn: Turn | null;
}
export interface ToolItem {
  kind: "tool";
  key: number;
  time: number;
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

/** What a conversation looks like, made of its messages. Mutable; `version` tells that something changed. */
export class Timeline {
  items: Item[] = [];
  version = 0;
  readonly turns = new Turns();
  commands: AvailableCommand[] = [];
  configOptions: SessionConfigOption[] | null = null;
  modeId: string | null = null;
  usage: UsageUpdate | null = null;
  title: string | null = null;
  forkedFrom: string | null = null;
  ended: string | null = null;
  readonly journal = new Journal();
  readonly #tools = new Map<string, ToolItem>();
  readonly #calls = new Map<string, { method: string; turn: Turn | null }>();
  readonly #terminals = new Terminals();
  #asks: AskItem[] = [];
  readonly #settled = new Map<string, AskItem>();
  /** Settled by somebody whose answer is not known here. */
  #puzzles: AskItem[] = [];
  #plan: PlanItem | null = null;
  #nextKey = 1;

  feed(events: SessionEvent[]): void {
    for (const event of events) {
      this.journal.add(event);
      this.#take(event);
    }
    this.version += 1;
  }

  /** What was sent so far, the newest last. */
  prompts(): string[] {
    return this.items.flatMap((item) => (item.kind === "user" ? [item.body.text] : [])).filter(Boolean);
  }

  /** The plan of the turn that runs. */
  get plan(): PlanItem | null {
    return this.isBusy ? this.#plan : null;
  }

  get isBusy(): boolean {
    return this.turns.running !== null;
  }

  /** The turn that runs was not begun here. */
  get isForeign(): boolean {
    return this.turns.running?.isOwn === false;
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

  /** The server says that nothing runs. */
  settle(): void {
    if (!this.isForeign) return;
    this.#endTurn(this.turns.running as Turn, Date.now());
    this.version += 1;
  }

  /** A prompt of this page could not be sent, or nobody can tell any more what became of it. */
  refuse(turnId: string, reason: string): void {
    const turn = this.turns.find({ turnId });
    if (turn === null || turn.state === "done" || turn.state === "held") return;
    this.#over(turn, Date.now(), { hasRun: turn.state === "running", error: { code: 0, message: reason } });
    this.version += 1;
  }

  /** It is not wanted any more. */
  drop(turn: Turn): void {
    this.turns.remove(turn);
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
    const turn = message.method === "session/prompt" ? this.#prompted(event, message) : null;
    if (message.id !== undefined) this.#calls.set(`${scope} ${JSON.stringify(message.id)}`, { method: message.method as string, turn });
    if (message.method === "session/fork") this.#forked(event, message);
    if (message.method === "session/cancel" && this.turns.running !== null) this.turns.running.isCancelling = true;
  }

  /** What came before is the parent's. */
  #forked(event: SessionEvent, message: Message): void {
    if (event.sequence === null) return; // the fork has a history of its own
    if (this.turns.running !== null) this.#endTurn(this.turns.running, event.time);
    this.forkedFrom = (message.params as { sessionId?: string }).sessionId ?? null;
    this.#note(event.time, "fork", "Forked here", this.forkedFrom);
  }

  /** Our own prompt, or one of the history, where only those are that have begun. */
  #prompted(event: SessionEvent, message: Message): Turn {
    const { prompt, _meta } = message.params as { prompt: ContentBlock[]; _meta?: Record<string, { turnId?: string } | undefined> };
    const isOwn = event.sequence === null;
    const turnId = _meta?.["sandboxagent.dev"]?.turnId ?? null;
    const turn = this.turns.add({ turnId, prompt, isOwn, requestId: isOwn ? message.id : null });
    if (!isOwn || (this.turns.running === null && this.turns.next === turn)) this.#begin(turn, event.time);
    return turn;
  }

  #takeAnswer(event: SessionEvent, message: Message, scope: string): void {
    const isOurs = event.source === "client";
    const ask = this.#asks.findLast(({ id }) => same(id, message.id));
    const key = `${scope} ${JSON.stringify(message.id)}`;
    const call = isOurs ? undefined : this.#calls.get(key);
    if (call !== undefined) {
      const { method, turn } = call;
      this.#calls.delete(key);
      if (turn !== null) this.#over(turn, event.time, { ...(message as TurnNotice), hasRun: turn.state === "running" });
      else if (method === "session/set_config_option") this.#configured(message);
      else if (message.error) this.#note(event.time, "error", `${method} failed`, errorText(message.error));
    } else if (ask !== undefined && (isOurs || event.source === "server")) {
      this.#answered(ask, message, isOurs ? (event.sequence === null ? "you" : "a client") : "the server’s policy");
    } else if (isOurs) this.#showTerminal(this.#terminals.answer(message.id, message.result));
  }

  #answered(ask: AskItem, message: Message, by: string): void {
    const outcome = outcomeOf(ask, message);
    const { action, content } = (message.result ?? {}) as { action?: string; content?: Record<string, unknown> };
    if (action === "accept" && content) ask.sent = content;
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
    if (known !== undefined) {
      known.params = message.params;
      return;
    }
    const asked = { kind: "ask" as const, time: event.time, id: message.id, method, params: message.params, outcome: null, by: null, sent: null };
    if (method !== "permission") this.#asks.push(this.#add<AskItem>(asked));
    else this.#asks.push(this.#askForTool({ ...asked, key: this.#nextKey++ }));
  }

  /** A permission belongs to its tool call, which agents may tell of in the request only. */
  #askForTool(ask: AskItem): AskItem {
    const { toolCall } = ask.params as RequestPermissionRequest;
    if (!this.#tools.has(toolCall.toolCallId)) this.#tool(ask, { ...toolCall, sessionUpdate: "tool_call_update" });
    const item = this.#tools.get(toolCall.toolCallId) as ToolItem;
    item.asks = [...item.asks, ask];
    item.call = { ...item.call };
    return ask;
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
        if (this.turns.running !== null) this.#endTurn(this.turns.running, event.time);
        this.#abandonAsks();
        this.#note(event.time, "end", "Session ended", this.ended);
        break;
      case "_sandboxagent/error":
        this.#tellError(event.time, String(params["message"] ?? "Error"), stderrOf(params["details"]));
        break;
      case "_sandboxagent/session/turn_queued":
      case "_sandboxagent/session/turn_started":
      case "_sandboxagent/session/turn_ended":
        this.#toldOfTurn(message.method, params as TurnNotice, event.time);
        break;
      case "_sandboxagent/session/settled":
        this.#toldWhoSettled(params as unknown as Settled);
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
    if (kind === "user" && event.sequence === null && !goesOn && this.turns.running === null) this.#begin(this.turns.add({}), event.time);
    const item = goesOn ? (last as TextItem) : this.#addText(kind, event.time, messageId);
    item.body.append(update.content);
  }

  #tool(event: { time: number }, update: ({ sessionUpdate: "tool_call" } & ToolCall) | ({ sessionUpdate: "tool_call_update" } & ToolCallUpdate)): void {
    const { sessionUpdate: _, ...fields } = update;
    const known = this.#tools.get(update.toolCallId);
    const given = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
    const call = { title: update.toolCallId, ...known?.call, ...given } as unknown as ToolCall;
    const terminals = this.#terminals.update(call, known?.terminals ?? [], update._meta);
    if (known !== undefined) Object.assign(known, { call, terminals });
    else this.#tools.set(update.toolCallId, this.#add<ToolItem>({ kind: "tool", time: event.time, call, terminals, asks: [] }));
  }

  #configured(message: Message): void {
    const result = message.result as { configOptions?: SessionConfigOption[] } | null | undefined;
    if (result?.configOptions) this.configOptions = result.configOptions;
  }

  /** What the server tells of turns, ours and those of others. It may tell again of one that we know. */
  #toldOfTurn(method: string, notice: TurnNotice, time: number): void {
    if (notice.promptId !== undefined) this.turns.isTold = true;
    const known = this.turns.find(notice) ?? this.#adopted(method);
    if (method === "_sandboxagent/session/turn_ended") {
      if (known !== null) this.#over(Object.assign(known, { promptId: notice.promptId ?? null }), time, notice);
      return;
    }
    const turn = known ?? this.turns.add({ turnId: notice.turnId ?? null });
    turn.promptId = notice.promptId ?? null;
    if (method === "_sandboxagent/session/turn_started") {
      if (turn.state !== "running") this.#begin(turn, time);
    } else if (turn.state === "queued") this.turns.place(turn, notice.position ?? 1);
    else if (this.turns.running !== turn || (notice.position ?? 1) > 1) this.#postpone(turn);
  }

  /** A turn of the history, or of a server that gives turns no names, is the one that runs. */
  #adopted(method: string): Turn | null {
    const { running } = this.turns;
    return method !== "_sandboxagent/session/turn_queued" && running?.promptId === null && !running.isOwn ? running : null;
  }

  /** We took it to run, as nothing else did here; others were quicker. */
  #postpone(turn: Turn): void {
    turn.state = "queued";
    turn.began = null;
    this.items = this.items.filter((item) => !(item.kind === "user" && item.turn === turn));
  }

  #begin(turn: Turn, time: number): void {
    const { running } = this.turns;
    if (running !== null && this.turns.isTold && running.isOwn && running.promptId === null) this.#postpone(running);
    else if (running !== null) this.#endTurn(running, time); // nobody told how it ended
    this.#plan = null;
    Object.assign(turn, { state: "running", began: time });
    if (turn.prompt === null) return;
    const item = this.#addText("user", time, null);
    item.turn = turn;
    for (const block of turn.prompt) item.body.append(block);
  }

  /** The server tells it to everybody, and answers the one that prompted: whichever comes first counts. */
  #over(turn: Turn, time: number, { hasRun = true, result, error }: TurnNotice): void {
    if (turn.state === "done" || turn.state === "held") return;
    const wasQueued = turn.state === "queued";
    if (wasQueued && !hasRun) {
      if (turn.isOwn && !turn.isTakenBack) Object.assign(turn, { state: "held", reason: error === undefined ? null : errorText(error) });
      else this.turns.remove(turn);
      return;
    }
    this.#endTurn(turn, time);
    if (error) Object.assign(this.#note(time, "error", "The turn failed", errorText(error)), { code: error.code, turn });
    else {
      const reason = result?.stopReason ?? "end_turn";
      if (reason !== "end_turn") this.#note(time, "info", STOPS[reason] ?? `Stopped: ${reason}`);
    }
  }

  #endTurn(turn: Turn, time: number): void {
    this.#abandonAsks();
    Object.assign(turn, { state: "done", ended: time });
    this.turns.remove(turn);
    const { next } = this.turns;
    if (!this.turns.isTold && next !== null) this.#begin(next, time);
  }

  #abandonAsks(): void {
    for (const ask of this.#asks) this.#close(ask, "Not answered", null);
  }

  #toldWhoSettled({ requestId, by, clientInfo, result }: Settled): void {
    const ask = this.#asks.find(({ id }) => same(id, requestId)) ?? this.#settled.get(JSON.stringify(requestId));
    if (ask === undefined || (ask.outcome !== null && ask.outcome !== ELSEWHERE)) return;
    this.#puzzles = this.#puzzles.filter((one) => one !== ask);
    const name = clientInfo?.title ?? clientInfo?.name;
    const who = by === "client" ? `another client${name === undefined ? "" : ` (${name})`}` : "the server’s policy";
    if ((by === "client" || by === "policy") && result !== undefined) this.#answered(ask, { result }, who);
    else this.#close(ask, SETTLED[by] ?? ELSEWHERE, null);
  }

  #close(ask: AskItem, outcome: string, by: string | null): void {
    Object.assign(ask, { outcome, by });
    this.#asks = this.#asks.filter((one) => one !== ask);
    this.#settled.set(JSON.stringify(ask.id), ask);
    const tool = ask.method === "permission" ? this.#tools.get((ask.params as RequestPermissionRequest).toolCall.toolCallId) : undefined;
    if (tool !== undefined) tool.call = { ...tool.call };
  }

  /** The turn that failed for it has said the same already: then it is said once, in the longer words. */
  #tellError(time: number, message: string, stderr: string | null): void {
    const last = this.items.at(-1);
    if (last?.kind === "note" && last.tone === "error" && message.startsWith(last.detail?.split("\n")[0] ?? "\n")) {
      this.items.pop();
      Object.assign(this.#note(last.time, "error", last.text, [message, stderr].filter(Boolean).join("\n")), { code: last.code, turn: last.turn });
    } else this.#note(time, "error", message, stderr);
  }

  #note(time: number, tone: NoteItem["tone"], text: string, detail: string | null = null): NoteItem {
    return this.#add<NoteItem>({ kind: "note", time, tone, text, detail, code: null, turn: null });
  }

  #addText(kind: TextItem["kind"], time: number, messageId: string | null): TextItem {
    return this.#add<TextItem>({ kind, time, messageId, body: new MessageBody(), turn: null });
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

interface Settled {
  requestId: unknown;
  by: "client" | "policy" | "timeout" | "cancelled" | "agent" | "exited";
  clientInfo?: { name?: string; title?: string };
  result?: unknown;
}

/** How a question ended that nobody answered. */
const SETTLED: Partial<Record<Settled["by"], string>> = {
  timeout: "Not answered in time",
  cancelled: "Cancelled",
  agent: "Withdrawn by the agent",
  exited: "The agent exited",
  client: "Answered",
  policy: "Answered",
};

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

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function outcomeOf(ask: AskItem, message: Message): string {
  if (message.error) return message.error.code === -32601 ? "Left to others" : message.error.message;
  const result = (message.result ?? {}) as Record<string, unknown>;
  if (ask.method === "permission") {
    const { outcome, optionId } = (result["outcome"] ?? {}) as { outcome?: string; optionId?: string };
    const option = (ask.params as RequestPermissionRequest).options?.find((one) => one.optionId === optionId);
    return outcome === "cancelled" ? "Cancelled" : (option?.name ?? optionId ?? "Answered");
  }
  if (ask.method === "question") {
    if (result["outcome"] !== "answered") return ENDS[String(result["outcome"])] ?? "Answered";
    const labels = new Map(optionsOf(ask.params).map(({ id, label }) => [id, label]));
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
