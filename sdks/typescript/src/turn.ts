import type { ContentBlock, PromptResponse, SessionUpdate } from "@agentclientprotocol/sdk";

/**
 * A prompt that runs. Iterate over it for the updates as they come, await it for how it ended.
 * Both work, in either order; the updates are kept until they are read.
 */
export class Turn implements AsyncIterable<SessionUpdate>, PromiseLike<PromptResponse> {
  readonly #updates: SessionUpdate[] = [];
  #wake: () => void = () => {};
  #isOver = false;

  constructor(
    readonly id: string,
    private readonly response: Promise<PromptResponse>,
    subscribe: (listener: (update: SessionUpdate) => void) => () => void,
  ) {
    const unsubscribe = subscribe((update) => {
      this.#updates.push(update);
      this.#wake();
    });
    const end = (): void => {
      unsubscribe();
      this.#isOver = true;
      this.#wake();
    };
    response.then(end, end);
  }

  then<A = PromptResponse, B = never>(
    onfulfilled?: ((value: PromptResponse) => A | PromiseLike<A>) | null,
    onrejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.response.then(onfulfilled, onrejected);
  }

  /** The agent's text of the whole turn. Do not iterate over the turn as well. */
  async text(): Promise<string> {
    let text = "";
    for await (const update of this) {
      if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text") text += update.content.text;
    }
    return text;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SessionUpdate> {
    for (;;) {
      const update = this.#updates.shift();
      if (update !== undefined) yield update;
      else if (this.#isOver) break;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
    await this.response;
  }
}

export type PromptInput = string | ContentBlock | ContentBlock[];

export function blocksOf(input: PromptInput): ContentBlock[] {
  if (typeof input === "string") return [{ type: "text", text: input }];
  return Array.isArray(input) ? input : [input];
}

export function newTurnId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `turn_${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
