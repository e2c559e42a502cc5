import type { ContentBlock } from "@agentclientprotocol/sdk";
import type { Follower, Session, SessionEvent } from "sandbox-agent-client";
import { reasonOf, sandbox } from "./server";
import { Store } from "./store";
import { Timeline } from "./timeline";

export interface View {
  timeline: Timeline;
  version: number;
  session: Session | null;
  isReady: boolean;
  error: string | null;
}

const POLL = 1_500;
const RECENT = 500;

/** One session that is open in the page: its history, its live events, and what can be done with it. */
export class Conversation {
  readonly view: Store<View>;
  #timeline = new Timeline();
  #follower: Follower | null = null;
  #session: Session | null = null;
  #isClosed = false;
  #poll: ReturnType<typeof setTimeout> | null = null;

  constructor(
    readonly id: string,
    readonly agent: string | null,
    made: Session | null = null,
  ) {
    this.view = new Store<View>({ timeline: this.#timeline, version: 0, session: null, isReady: false, error: null });
    void this.#open(made);
  }

  send(prompt: ContentBlock[]): void {
    this.#session?.prompt(prompt).then(
      () => this.#changed(),
      () => this.#changed(), // the timeline shows why
    );
  }

  cancel(): void {
    void this.#session?.cancel();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#follower?.close();
    if (this.#poll !== null) clearTimeout(this.#poll);
    if (this.#session !== null && !this.#session.setup.meta.readOnly) await this.#session.detach().catch(() => {});
  }

  async #open(made: Session | null): Promise<void> {
    try {
      const session = made ?? (await sandbox.sessions.open(this.id, this.agent === null ? {} : { agent: this.agent }));
      if (this.#isClosed) return;
      this.#session = session;
      const { configOptions, modes } = session.setup;
      this.#timeline.configOptions = configOptions ?? null;
      this.#timeline.modeId = modes?.currentModeId ?? null;
      this.#follower = session.follow((events) => {
        this.#timeline.feed(events);
        this.#changed();
        if (events.some(isWithdrawal) && this.#timeline.isPuzzled) void this.#explain();
      });
      await this.#follower.ready;
      this.#changed({ isReady: true });
      this.#watchForeignTurn();
    } catch (error) {
      this.#changed({ error: reasonOf(error) });
    }
  }

  #changed(more: Partial<View> = {}): void {
    if (this.#isClosed) return;
    this.view.set({ ...this.view.value, session: this.#session, version: this.view.value.version + 1, ...more });
    this.#watchForeignTurn();
  }

  /** A turn that another client began: ask the server until it is over. */
  #watchForeignTurn(): void {
    if (!this.#timeline.isForeign || this.#poll !== null || !this.view.value.isReady) return;
    this.#poll = setTimeout(() => {
      this.#poll = null;
      void this.#look();
    }, POLL);
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

  async #look(): Promise<void> {
    try {
      const { isBusy } = await sandbox.sessions.get(this.id, this.agent === null ? {} : { agent: this.agent });
      if (!isBusy) this.#timeline.settle();
    } catch {
      // asked again below
    }
    this.#changed();
  }
}

function isWithdrawal({ message }: SessionEvent): boolean {
  return (message as { method?: string }).method === "$/cancel_request";
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
