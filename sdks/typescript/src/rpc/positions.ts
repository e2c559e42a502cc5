/** Where this client is in the histories of its sessions, so that what it missed can be read there. */
export class Positions {
  readonly #positions = new Map<string, Position>();

  /** Everything up to `sequence` of the history has been seen; counting starts here. */
  set(session: string, sequence: number): void {
    this.#positions.set(session, { sequence, seen: 0, since: null });
  }

  /** The place in the history is being asked for: remember what comes until `placed`. */
  placing(session: string): void {
    if (!this.#positions.has(session)) this.#positions.set(session, { sequence: null, seen: 0, since: [] });
  }

  /** Events up to `eventId` are within the history up to `sequence`. */
  placed(session: string, sequence: number, eventId: number): void {
    const position = this.#positions.get(session);
    if (position?.since == null) return;
    const seen = position.since.filter((id) => id > eventId).length;
    this.#positions.set(session, { sequence, seen, since: null });
  }

  forget(session: string): void {
    this.#positions.delete(session);
  }

  /** An update came on the stream. */
  saw(session: string, eventId: number): void {
    const position = this.#positions.get(session);
    if (position === undefined) return;
    if (position.since === null) position.seen += 1;
    else position.since.push(eventId);
  }

  /** The history up to `sequence` is known, and `seen` updates after it. Null when the place is not known. */
  of(session: string): { sequence: number; seen: number } | null {
    const position = this.#positions.get(session);
    return position === undefined || position.sequence === null
      ? null
      : { sequence: position.sequence, seen: position.seen };
  }

  sessions(): string[] {
    return [...this.#positions.keys()];
  }
}

interface Position {
  sequence: number | null;
  seen: number;
  since: number[] | null;
}
