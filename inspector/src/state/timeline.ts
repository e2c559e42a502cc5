import type {
  AvailableCommand,
  ContentBlock,
  RequestPermissionRequest,
  SessionConfigOption,
  SessionUpdate,
  ToolCall,
  ToolCallUpdate,
  UsageUpdate,
} from "@agentclientprotocol/sdk";
import type { HistoryEvent, SessionEvent } from "sandbox-agent-client";
import { MessageBody } from "./body";
import type { AskItem, AskMethod, Item, NoteItem, PlanItem, TextItem, ToolItem } from "./items";
import { Journal } from "./journal";
import { ELSEWHERE, errorText, type Message, outcomeOf, SETTLED, type Settled, stderrOf, STOPS } from "./outcomes";
import { bytesOf, contentsOf, optionsOf, permissionOf, planOf, type Told } from "./second";
import { Spending } from "./spending";
import { STEERING } from "./steering";
import { type Terminal, Terminals } from "./terminals";
import { type Turn, type TurnNotice, Turns } from "./turns";

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
  readonly spending = new Spending();
  readonly journal = new Journal();
  readonly #tools = new Map<string, ToolItem>();
  readonly #calls = new Map<string, { method: string; turn: Turn | null; params: unknown }>();
  readonly #terminals = new Terminals();
  #asks: AskItem[] = [];
  readonly #settled = new Map<string, AskItem>();
  /** Settled by somebody whose answer is not known here. */
  #puzzles: AskItem[] = [];
  #plan: PlanItem | null = null;
  /** The agent speaks version 2: messages go by their ids, null clears, and a turn's answer only says that it began. */
  #isSecond = false;
  readonly #named = new Map<string, TextItem>();
  readonly #plans = new Map<string, PlanItem>();
  readonly #notes = new Map<string, NoteItem>();
  /** What such an agent last said that it does, be it in no turn of ours. */
  #isWorking = false;
  #hasWorked = false;
  /** The item that the event at hand has made or changed. */
  #touched: number | null = null;
  #nextKey = 1;

  feed(events: SessionEvent[]): void {
    for (const event of events) {
      const envelope = this.journal.add(event);
      this.#touched = null;
      try {
        this.#take(event);
      } catch (error) {
        this.#note(event.time, "error", "A message could not be read; the protocol has it", String(error)); // one odd message must not end the page
      }
      envelope.item = this.#touched;
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

  /** The newest thing is that a turn failed: nothing has been said since. */
  get hasFailed(): boolean {
    const last = this.items.at(-1);
    return last?.kind === "note" && last.tone === "error" && last.turn !== null;
  }

  get isBusy(): boolean {
    return this.turns.running !== null || this.#isWorking;
  }

  /** It seems to work, and only the server knows whether it does. */
  get isUnsure(): boolean {
    return this.isForeign || (this.#isWorking && this.turns.running === null);
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
    if (!this.isUnsure) return;
    this.#isWorking = false;
    if (this.turns.running !== null) this.#endTurn(this.turns.running, Date.now());
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
    if (message.id !== undefined) this.#calls.set(`${scope} ${JSON.stringify(message.id)}`, { method: message.method as string, turn, params: message.params });
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
      const { method, turn, params } = call;
      this.#calls.delete(key);
      const { messageId, stopReason } = (message.result ?? {}) as { messageId?: unknown; stopReason?: unknown };
      if (turn !== null && typeof messageId === "string" && stopReason === undefined) this.#isSecond = true; // it has begun
      else if (turn !== null) this.#over(turn, event.time, { ...(message as TurnNotice), hasRun: turn.state === "running" });
      else if (method === "session/set_config_option") this.#configured(message);
      else if (method === STEERING) this.#added(event, params, message);
      else if (message.error) this.#note(event.time, "error", `${method} failed`, errorText(message.error));
    } else if (ask !== undefined && (isOurs || event.source === "server")) {
      this.#answered(ask, message, isOurs ? (event.sequence === null ? "you" : "a client") : "the server’s policy");
    } else if (isOurs) this.#showTerminal(this.#terminals.answer(message.id, message.result));
  }

  /** A prompt that the agent took into the turn that runs. Where it did not, whoever sent it sends it as a turn. */
  #added({ time }: SessionEvent, params: unknown, { result }: Message): void {
    if ((result as { outcome?: string } | undefined)?.outcome !== "injected") return;
    const { prompt } = params as { prompt: ContentBlock[] };
    const said = this.items.findLast((one): one is TextItem => one.kind === "user");
    if (said !== undefined && said.turn === null && said.body.text === textOf(prompt)) {
      said.isAdded = true; // the agent has told it by itself
      return;
    }
    const item = Object.assign(this.#addText("user", time, null), { turn: this.turns.running, isAdded: true });
    for (const block of prompt) item.body.append(block);
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
    const params = method === "permission" ? permissionOf(message.params) : message.params;
    const known = this.#asks.find(({ id }) => same(id, message.id));
    if (known !== undefined) {
      known.params = params;
      return;
    }
    const asked = { kind: "ask" as const, time: event.time, id: message.id, method, params, outcome: null, by: null, sent: null };
    if (method !== "permission") this.#asks.push(this.#add<AskItem>(asked));
    else this.#asks.push(this.#askForTool({ ...asked, key: this.#nextKey++ }));
  }

  /** A permission belongs to its tool call, which agents may tell of in the request only. */
  #askForTool(ask: AskItem): AskItem {
    const { toolCall } = ask.params as RequestPermissionRequest;
    if (!this.#tools.has(toolCall.toolCallId)) this.#tool(ask, { ...toolCall, sessionUpdate: "tool_call_update" });
    const item = this.#tools.get(toolCall.toolCallId) as ToolItem;
    item.asks = [...item.asks, ask];
    this.#touched = item.key;
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
        this.configOptions = optionsOf(update.configOptions);
        break;
      case "session_info_update":
        if (typeof update.title === "string") this.title = update.title;
        break;
      case "usage_update":
        this.usage = update;
        this.spending.tell(event.time, update);
        break;
      default:
        this.#updateOfSecond(event, update as unknown as Told);
    }
  }

  /** What only version 2 has, or version 1 in its unstable part. */
  #updateOfSecond(event: SessionEvent, update: Told): void {
    const { sessionUpdate: kind, title, description } = update;
    switch (kind) {
      case "user_message":
      case "agent_message":
      case "agent_thought":
        this.#isSecond = true;
        this.#whole(event, kind === "user_message" ? "user" : kind === "agent_message" ? "agent" : "thought", update);
        break;
      case "tool_call_content_chunk": {
        const { toolCallId } = update as unknown as ToolCallUpdate;
        const content = [...(this.#tools.get(toolCallId)?.call.content ?? []), ...contentsOf([update.content])];
        this.#tool(event, { sessionUpdate: "tool_call_update", toolCallId, content });
        break;
      }
      case "terminal_update":
      case "terminal_output_chunk":
        this.#showTerminal(this.#terminals.say(update as never, bytesOf));
        break;
      case "plan_update":
      case "plan_removed":
        this.#planned(event, update);
        break;
      case "state_update":
        this.#isSecond = true;
        this.#toldState(event, update);
        break;
      case "notice":
        this.#note(event.time, update.severity === "error" ? "error" : "info", title ?? "Notice", description ?? null);
        break;
      case "compaction_update":
        this.#upsertNote(event, `compaction ${update.compactionId}`, `Compaction ${(update.status ?? "").replace("_", " ")}`, update.summary?.map((one) => (one.type === "text" ? one.text : "")).join("") || null);
        break;
      case "subagent_update":
        this.#upsertNote(event, `subagent ${update.sessionId}`, `Subagent: ${title ?? update.sessionId}`, description ?? null);
        break;
    }
  }

  /** A whole message takes the place of what was said under its name; null clears it. */
  #whole(event: SessionEvent, kind: TextItem["kind"], { messageId = "", content }: Told): void {
    const own = kind === "user" ? this.items.findLast((one): one is TextItem => one.kind === "user" && one.turn !== null && one.turn === this.turns.running && one.messageId === null) : undefined;
    if (own !== undefined) {
      own.messageId = messageId;
      this.#named.set(`user ${messageId}`, own);
      this.#touched = own.key;
      return;
    }
    let item = this.#named.get(`${kind} ${messageId}`);
    if (content === undefined || (item === undefined && content === null)) return;
    if (item === undefined) {
      if (kind === "user" && event.sequence === null && this.turns.running === null) this.#begin(this.turns.add({}), event.time);
      item = this.#addText(kind, event.time, messageId);
    } else this.#rewritten(item);
    item.body = new MessageBody();
    for (const block of (Array.isArray(content) ? content : []) as ContentBlock[]) item.body.append(block);
    this.#touched = item.key;
  }

  /** Whoever draws the items takes it that only the last one changes, as long as the list is the same. */
  #rewritten(item: Item): void {
    if (this.items.at(-1) !== item) this.items = [...this.items];
  }

  #planned(event: SessionEvent, { sessionUpdate, planId, plan }: Told): void {
    const id = planId ?? plan?.planId ?? "";
    const known = this.#plans.get(id);
    if (sessionUpdate === "plan_removed") {
      this.items = this.items.filter((one) => one !== known);
      this.#plans.delete(id);
      if (this.#plan === known) this.#plan = null;
    } else if (known !== undefined && known === this.#plan) known.plan = planOf(plan);
    else this.#plans.set(id, (this.#plan = this.#add<PlanItem>({ kind: "plan", time: event.time, plan: planOf(plan) })));
  }

  #toldState(event: SessionEvent, { state, stopReason, error }: Told): void {
    this.#isWorking = state !== "idle";
    if (this.#isWorking) this.#hasWorked = true;
    else if (this.turns.running !== null && !(this.turns.isTold && event.sequence === null) && (this.#hasWorked || typeof stopReason === "string")) {
      this.#hasWorked = false;
      const result = { stopReason: typeof stopReason === "string" ? stopReason : "end_turn" };
      this.#over(this.turns.running, event.time, stopReason === "error" ? { error: error ?? { code: 0, message: "The agent does not say why" } } : { result });
    }
  }

  #upsertNote(event: SessionEvent, name: string, text: string, detail: string | null): void {
    const known = this.#notes.get(name);
    if (known === undefined) this.#notes.set(name, this.#note(event.time, "info", text, detail));
    else {
      Object.assign(known, { text, detail: detail ?? known.detail });
      this.#touched = known.key;
    }
  }

  #chunk(event: SessionEvent, update: Chunk): void {
    const kinds = { agent_message_chunk: "agent", agent_thought_chunk: "thought", user_message_chunk: "user" } as const;
    const kind = kinds[update.sessionUpdate as keyof typeof kinds];
    const messageId = typeof update.messageId === "string" ? update.messageId : null;
    const named = this.#isSecond ? this.#named.get(`${kind} ${messageId}`) : undefined;
    if (named !== undefined) {
      this.#rewritten(named);
      named.body.append(update.content);
      this.#touched = named.key;
      return;
    }
    const last = this.items.at(-1);
    const goesOn = last?.kind === kind && (messageId === null || last.messageId === null || last.messageId === messageId);
    if (kind === "user" && goesOn && (last as TextItem).turn?.prompt != null) return; // what it was asked, once more
    if (kind === "user" && this.#isEcho(update, messageId)) return;
    if (kind === "user" && event.sequence === null && !goesOn && this.turns.running === null) this.#begin(this.turns.add({}), event.time);
    const item = goesOn ? (last as TextItem) : this.#addText(kind, event.time, messageId);
    item.body.append(update.content);
    this.#touched = item.key;
  }

  /** What was asked, told by the agent after it has said something else; agents name it as they like. */
  #isEcho({ content }: Chunk, messageId: string | null): boolean {
    const { running } = this.turns;
    const own = this.items.findLast((one): one is TextItem => one.kind === "user" && one.turn !== null && one.turn === running && one.turn.prompt !== null);
    if (own === undefined || content.type !== "text" || !own.body.text.includes(content.text)) return false;
    if (own.messageId !== null && own.messageId !== messageId) return false;
    own.messageId = messageId;
    return true;
  }

  #tool(event: { time: number }, update: ({ sessionUpdate: "tool_call" } & ToolCall) | ({ sessionUpdate: "tool_call_update" } & ToolCallUpdate)): void {
    const { sessionUpdate: _, ...fields } = update;
    const known = this.#tools.get(update.toolCallId);
    const said = Object.entries(fields).filter(([, value]) => value !== undefined && (value !== null || this.#isSecond));
    const given = Object.fromEntries(said.map(([name, value]) => [name, name === "content" ? contentsOf(value) : (value ?? undefined)]));
    const call = { title: update.toolCallId, ...known?.call, ...given } as unknown as ToolCall;
    call.title ??= update.toolCallId;
    const terminals = this.#terminals.update(call, known?.terminals ?? [], update._meta);
    const isOver = ["completed", "failed", "cancelled"].includes(call.status ?? "");
    if (known !== undefined) {
      Object.assign(known, { call, terminals, ended: known.ended ?? (isOver ? event.time : null) });
      this.#touched = known.key;
    }
    else this.#tools.set(update.toolCallId, this.#add<ToolItem>({ kind: "tool", time: event.time, ended: isOver ? event.time : null, call, terminals, asks: [] }));
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
    turn.prompt ??= notice.prompt ?? null;
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
    this.#hasWorked = false;
    Object.assign(turn, { state: "running", began: time });
    this.spending.begin(textOf(turn.prompt));
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
    this.#touched = tool?.key ?? ask.key;
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
    const item = this.#add<TextItem>({ kind, time, messageId, body: new MessageBody(), turn: null });
    if (messageId !== null) this.#named.set(`${kind} ${messageId}`, item);
    return item;
  }

  #add<T extends Item>(item: Omit<T, "key">): T {
    const added = { ...item, key: this.#nextKey++ } as T;
    this.#touched = added.key;
    this.items.push(added);
    return added;
  }
}

type Chunk = Extract<
  SessionUpdate,
  { sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk" }
>;

const ASKS: Record<string, AskMethod> = {
  "session/request_permission": "permission",
  "_sandboxagent/session/request_question": "question",
  "elicitation/create": "elicitation",
};

/** The words of a prompt, without what is attached. */
export function textOf(prompt: readonly ContentBlock[] | null): string {
  return (prompt ?? []).flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
