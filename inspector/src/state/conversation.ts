import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { AgentConnection, Follower, Notice, Session, SessionEvent } from "sandbox-agent-client";
import { Ancestry } from "./ancestry";
import { noteFirstPrompt } from "./names";
import { rememberPrompt, rememberedPrompt } from "./prompts";
import { connections, reasonOf, sandbox } from "./server";
import { canSteer, steer } from "./steering";
import { Store } from "./store";
import { Timeline } from "./timeline";
import { ofOpenTurns, type Turn } from "./turns";

export interface View {
  timeline: Timeline;
  version: number;
  session: Session | null;
  isReady: boolean;
  error: string | null;
}

const RECENT = 500;
/** Milliseconds in which a server that tells who settled a question has done so. */
const PATIENCE = 400;

/** One session that is open in the page: its history, its live events, and what can be done with it. */
export class Conversation {
  readonly view: Store<View>;
  #timeline = new Timeline();
  #follower: Follower | null = null;
  #session: Session | null = null;
  #isClosed = false;
  #isExplaining = false;
  readonly #sent = new Map<string, Promise<unknown>>();
  #stops: (() => void)[] = [];

  constructor(
    readonly id: string,
    readonly agent: string | null,
    made: Session | null = null,
  ) {
    this.view = new Store<View>({ timeline: this.#timeline, version: 0, session: null, isReady: false, error: null });
    void this.#open(made);
  }

  send(prompt: readonly ContentBlock[]): void {
    const session = this.#session;
    if (session === null) return;
    const turnId = `inspector-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
    rememberPrompt(turnId, prompt);
    for (const block of prompt) if (block.type === "text") noteFirstPrompt(this.id, block.text);
    const sent = session.prompt([...prompt], { turnId }).then(
      () => this.#changed(),
      (error: unknown) => {
        this.#timeline.refuse(turnId, reasonOf(error)); // where no answer told it already
        this.#changed();
      },
    );
    this.#sent.set(turnId, sent);
    void sent.finally(() => this.#sent.delete(turnId));
  }

  /** A prompt that waits is not to be run. It can no longer be taken back once it runs. */
  takeBack(turn: Turn): void {
    if (turn.state === "held") this.#timeline.drop(turn);
    else if (turn.state === "queued") {
      turn.isTakenBack = true;
      const acp = this.#session?.connection.acp;
      if (turn.requestId !== null) void acp?.notify("$/cancel_request", { requestId: turn.requestId });
      else void acp?.request("_sandboxagent/session/take_back", { sessionId: this.id, promptId: turn.promptId }).catch(() => {}); // it runs by now
    }
    this.#changed();
  }

  /** Stop what runs, and run this one next; those that waited before it wait behind it. */
  async sendNow(turn: Turn): Promise<void> {
    const own = this.#timeline.turns.waiting.filter(({ state, prompt }) => state === "queued" && prompt !== null);
    for (const one of own) this.takeBack(one);
    await Promise.all(own.map(({ turnId }) => this.#sent.get(turnId ?? "")));
    await this.#session?.cancel(); // it would take what is sent before it with it
    for (const { prompt } of [turn, ...own.filter((one) => one !== turn)]) if (prompt !== null) this.send(prompt);
  }

  /** The agent takes prompts into a turn that runs. */
  get canSteer(): boolean {
    return canSteer(this.#session?.connection);
  }

  /** Send it into the turn that runs; what the agent does not take runs as a turn of its own. */
  async steer(prompt: readonly ContentBlock[]): Promise<void> {
    if (this.#session === null) return;
    const isTaken = await steer(this.#session.connection, this.#session.id, prompt).catch(() => false);
    if (!isTaken) this.send(prompt);
    this.#changed();
  }

  /** The same with one that waits, unless it has begun meanwhile. */
  async steerWith(turn: Turn): Promise<void> {
    this.takeBack(turn);
    await this.#sent.get(turn.turnId ?? "");
    if (turn.state !== "done" && turn.prompt !== null) await this.steer(turn.prompt);
  }

  /** A prompt that was never run is sent again. */
  sendAgain(turn: Turn): void {
    this.#timeline.drop(turn);
    if (turn.prompt !== null) this.send(turn.prompt);
  }

  /** Let a prompt run before the one ahead of it: both, and those behind, are taken back and sent in the new order. */
  async advance(turn: Turn): Promise<void> {
    const own = this.#timeline.turns.waiting.filter(({ requestId, state }) => requestId !== null && state === "queued");
    const at = own.indexOf(turn);
    if (at < 1) return;
    const again = own.slice(at - 1);
    for (const one of again) this.takeBack(one);
    await Promise.all(again.map(({ turnId }) => this.#sent.get(turnId ?? "")));
    const [before, ...rest] = again;
    for (const { prompt } of [turn, before as Turn, ...rest.filter((one) => one !== turn)]) if (prompt !== null) this.send(prompt);
  }

  cancel(): void {
    void this.#session?.cancel();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#follower?.close();
    for (const stop of this.#stops) stop();
    if (this.#session !== null && !this.#session.setup.meta.readOnly) await this.#session.detach().catch(() => {});
  }

  async #open(made: Session | null): Promise<void> {
    try {
      const connection = made?.connection ?? (await this.#connection());
      const early = this.#turnNotices(connection);
      const session = made ?? (await sandbox.sessions.open(this.id, { agent: connection.agent }));
      if (this.#isClosed) return;
      this.#session = session;
      const { configOptions, modes } = session.setup;
      this.#timeline.configOptions = configOptions ?? null;
      this.#timeline.modeId = modes?.currentModeId ?? null;
      const ancestry = new Ancestry(session.connection, (events) => this.#take(events));
      this.#follower = session.follow((events) => ancestry.take(events));
      await this.#follower.ready;
      await ancestry.isRead;
      this.#timeline.feed(early());
      this.#recall();
      this.#changed({ isReady: true });
      await this.#look();
      this.#lookAfterReconnects(connection.agent);
    } catch (error) {
      this.#changed({ error: reasonOf(error) });
    }
  }

  async #connection(): Promise<AgentConnection> {
    const agent = this.agent ?? (await sandbox.sessions.get(this.id)).agent;
    return await sandbox.connection(agent);
  }

  /** Turns that run or wait are told to whoever attaches, before the history is read: they must not get lost in it. */
  #turnNotices(connection: AgentConnection): () => SessionEvent[] {
    const seen: Notice["message"][] = [];
    const stop = connection.onNotice(this.id, ({ message, sequence }) => {
      if (sequence === null && TURN.test(message.method)) seen.push(message);
    });
    return () => {
      stop();
      return ofOpenTurns(seen).map((message) => ({ sequence: null, time: Date.now(), source: "server", message }));
    };
  }

  #take(events: SessionEvent[]): void {
    this.#timeline.feed(events);
    this.#recall();
    this.#changed();
    if (events.some(isWithdrawal) && this.#timeline.isPuzzled) this.#explainSoon();
    if (events.some(isGap)) void this.#look();
  }

  /** The words of prompts that this browser sent before the page was loaded anew. */
  #recall(): void {
    for (const turn of this.#timeline.turns.waiting) turn.prompt ??= rememberedPrompt(turn.turnId);
  }

  #changed(more: Partial<View> = {}): void {
    if (this.#isClosed) return;
    this.view.set({ ...this.view.value, session: this.#session, version: this.view.value.version + 1, ...more });
  }

  /** A server that was away may have forgotten the turn of somebody else. */
  #lookAfterReconnects(agent: string): void {
    let before = connections.value[agent];
    const stop = connections.subscribe(() => {
      const now = connections.value[agent];
      if (before === "reconnecting" && now === "open") void this.#look();
      before = now;
    });
    this.#stops.push(stop);
  }

  #explainSoon(): void {
    if (this.#isExplaining) return;
    this.#isExplaining = true;
    setTimeout(() => {
      this.#isExplaining = false;
      if (this.#timeline.isPuzzled) void this.#explain();
    }, PATIENCE);
  }

  /** Others have answered what was asked here as well: the end of the history says what. */
  async #explain(): Promise<void> {
    try {
      const { eventCount } = await sandbox.sessions.get(this.id, this.agent === null ? {} : { agent: this.agent });
      const page = await this.#session?.events({ after: Math.max(0, eventCount - RECENT), limit: RECENT });
      if (page !== undefined) this.#timeline.explain(page.events);
    } catch {
      // then it stays unexplained
    }
    this.#changed();
  }

  /** Whether the turn that seems to run still does: asked once, as its end is told to everybody attached. */
  async #look(): Promise<void> {
    if (!this.#timeline.isUnsure) return;
    try {
      const { isBusy } = await sandbox.sessions.get(this.id, this.agent === null ? {} : { agent: this.agent });
      if (!isBusy) this.#timeline.settle();
    } catch {
      // the connection tells when the server is there again
    }
    this.#changed();
  }
}

const TURN = /^_sandboxagent\/session\/turn_(queued|started|ended)$/;

function isWithdrawal({ message }: SessionEvent): boolean {
  return (message as { method?: string }).method === "$/cancel_request";
}

function isGap({ message }: SessionEvent): boolean {
  return (message as { method?: string }).method === "_sandboxagent/stream/gap";
}

const open = new Map<string, Conversation>();

/** Sessions stay open while the page is, so that several can be watched at once. */
export function conversationOf(id: string, agent: string | null, made: Session | null = null): Conversation {
  const key = `${agent ?? ""} ${id}`;
  const known = open.get(key);
  if (known !== undefined && known.view.value.error === null) return known;
  const opened = new Conversation(id, agent, made);
  open.set(key, opened);
  return opened;
}
