import type { Envelope } from "./journal";
import { Store } from "./store";

/** A place in a conversation that somebody wants to see, and the words for which they came. */
export interface Place {
  item: number;
  words: string[];
}

/** Taken by the conversation as soon as it is in sight. */
export const wantedPlace = new Store<Place | null>(null);
/** Taken by the protocol. */
export const wantedEnvelope = new Store<Envelope | null>(null);
