export interface ServerSentEvent {
  /** `message` where the server names none. */
  kind: string;
  id: number | null;
  data: string;
}

/** The events of a `text/event-stream` body. Comments are given to `onComment` and otherwise skipped. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  onChunk: () => void = () => {},
): AsyncGenerator<ServerSentEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onChunk();
      const text = rest + decoder.decode(value, { stream: true });
      let start = 0;
      for (let end = text.indexOf("\n\n", start); end !== -1; end = text.indexOf("\n\n", start)) {
        const event = parseBlock(text.slice(start, end));
        start = end + 2;
        if (event !== null) yield event;
      }
      rest = text.slice(start);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function parseBlock(block: string): ServerSentEvent | null {
  let kind = "message";
  let id: number | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("id:")) id = Number(line.slice(3));
    else if (line.startsWith("event:")) kind = line.slice(6).trim();
  }
  return data.length === 0 ? null : { kind, id, data: data.join("\n") };
}
