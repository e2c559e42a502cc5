import type { Session } from "./session.js";

/** The session objects that the program holds, to ask their handlers. One that it lets go is let go here. */
export class Roster {
  readonly #held = new Map<string, Set<WeakRef<Session>>>();
  readonly #gone = new FinalizationRegistry<{ key: string; reference: WeakRef<Session> }>(({ key, reference }) =>
    this.#drop(key, reference),
  );

  add(session: Session): Session {
    const key = keyOf(session.connection.agent, session.id);
    const reference = new WeakRef(session);
    this.#held.set(key, (this.#held.get(key) ?? new Set()).add(reference));
    this.#gone.register(session, { key, reference });
    return session;
  }

  of(agent: string, sessionId: string | null): Session[] {
    return [...(this.#held.get(keyOf(agent, sessionId)) ?? [])].flatMap((reference) => reference.deref() ?? []);
  }

  /** How many sessions are known, whether or not their objects have been collected. */
  get size(): number {
    return this.#held.size;
  }

  #drop(key: string, reference: WeakRef<Session>): void {
    const held = this.#held.get(key);
    held?.delete(reference);
    if (held?.size === 0) this.#held.delete(key);
  }
}

function keyOf(agent: string, sessionId: string | null): string {
  return `${agent} ${sessionId}`;
}
