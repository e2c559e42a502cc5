import type { AnyNotification } from "@agentclientprotocol/sdk";
import { sessionOf } from "./rpc/messages.js";

interface Told {
  promptId?: unknown;
  turnId?: unknown;
  requestId?: unknown;
}

/** A prompt of ours that has no answer yet. */
export interface OurPrompt {
  readonly sessionId: string;
  readonly turnId: string;
  /** Whether the server has said that it waits, or that it runs. */
  isTold: boolean;
  /** The id of its request while it waits behind other prompts. */
  waitsAs: unknown;
  /** Called each time that the server says so. */
  onTold: () => void;
}

const TURN = "_sandboxagent/session/turn_";
const FEED = "_sandboxagent/feed/follow";

/**
 * Whose turn runs in each session. Servers say it since they have a feed; of older ones nobody knows, and what comes
 * while we have a prompt is taken for its own.
 */
export class Turns {
  readonly #running = new Map<string, Told>();
  readonly #ours = new Set<OurPrompt>();
  #isTelling = false;

  /** Learn from the handshake whether the server says which turn runs. */
  learn(extensions: unknown): void {
    this.#isTelling = Array.isArray(extensions) && extensions.includes(FEED);
  }

  get isTelling(): boolean {
    return this.#isTelling;
  }

  begin(sessionId: string, turnId: string): OurPrompt {
    const prompt = { sessionId, turnId, isTold: false, waitsAs: undefined, onTold: () => {} };
    this.#ours.add(prompt);
    return prompt;
  }

  end(prompt: OurPrompt): void {
    this.#ours.delete(prompt);
  }

  /** Whether an update that comes now belongs to this turn. */
  isRunning({ sessionId, turnId }: OurPrompt): boolean {
    return !this.#isTelling || this.#running.get(sessionId)?.turnId === turnId;
  }

  /** Whether the turn that runs in the session was prompted here. */
  isOurs(sessionId: string | null): boolean {
    return [...this.#ours].some((prompt) => prompt.sessionId === sessionId && this.isRunning(prompt));
  }

  /** Take notice of what the server says of turns. */
  take(message: AnyNotification): void {
    const sessionId = sessionOf(message);
    if (sessionId === null || !message.method.startsWith(TURN)) return;
    const told = message.params as Told;
    const what = message.method.slice(TURN.length);
    if (what === "ended") {
      if (told.promptId === this.#running.get(sessionId)?.promptId) this.#running.delete(sessionId);
      return;
    }
    this.#isTelling = true;
    if (what === "started") this.#running.set(sessionId, told);
    for (const prompt of this.#ours) {
      if (prompt.sessionId !== sessionId || prompt.turnId !== told.turnId) continue;
      prompt.isTold = true;
      prompt.waitsAs = what === "queued" ? told.requestId : undefined;
      prompt.onTold();
    }
  }

  /** What follows is read from the history, and belongs to this turn. */
  recover(sessionId: string, turnId: unknown): void {
    if (turnId === null) this.#running.delete(sessionId);
    else this.#running.set(sessionId, { turnId });
  }
}
