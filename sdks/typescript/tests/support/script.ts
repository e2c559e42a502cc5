type Params = Record<string, unknown>;
type Answers = Record<string, (params: Params) => unknown>;

interface Message {
  id?: unknown;
  method?: string;
  params?: Params;
}

const SESSION = { sessionId: "s", agent: "mock", cwd: "/tmp" };

/** A server that says exactly what a test wants: for what a real one does only under years of load. */
export class Script {
  readonly calls: string[] = [];
  /** The event that answers in a body say they come after. */
  answeredUpTo = 0;
  lastId = 0;
  #stream: ReadableStreamDefaultController<Uint8Array> | null = null;
  #early: Uint8Array[] = [];

  constructor(private readonly answers: Answers) {}

  send(message: unknown): void {
    this.lastId += 1;
    const line = new TextEncoder().encode(`event: message\nid: ${this.lastId}\ndata: ${JSON.stringify(message)}\n\n`);
    if (this.#stream === null) this.#early.push(line);
    else this.#stream.enqueue(line);
  }

  fetch = async (url: string, init?: RequestInit): Promise<Response> => {
    if (init?.method === "GET" && url.includes("/v1/sessions/")) return Response.json(SESSION);
    if (init?.method === "GET") return this.#open();
    if (init?.method !== "POST") return new Response(null, { status: 204 });
    const message = JSON.parse(String(init.body)) as Message;
    if (message.method === undefined || message.id === undefined) return new Response(null, { status: 202 });
    this.calls.push(message.method);
    const result = this.answers[message.method]?.(message.params ?? {}) ?? { protocolVersion: 1 };
    const answer = { jsonrpc: "2.0", id: message.id, result };
    if ((init.headers as Record<string, string>)["prefer"] !== undefined) {
      this.send(answer);
      return new Response(null, { status: 202 });
    }
    const headers = { "x-acp-connection-id": "c", "x-acp-last-event-id": String(this.answeredUpTo) };
    return Response.json(answer, { headers });
  };

  #open(): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#stream = controller;
        for (const line of this.#early.splice(0)) controller.enqueue(line);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}
