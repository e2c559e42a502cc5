import { nextFrame, soon } from "./store";

const BUDGET = 8;
const PIECE = 32_768;

/**
 * A stream of events that leaves time to draw. One that is never empty would else be read in a single task: keys and
 * frames would wait until the agent is silent.
 */
export function paced(response: Response): Response {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  if (response.body === null || !isStream) return response;
  const reader = response.body.getReader();
  let rest = new Uint8Array();
  let since = performance.now();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (performance.now() - since > BUDGET) {
          if (!document.hidden) await drawn();
          since = performance.now();
        }
        if (rest.length === 0) {
          const asked = performance.now();
          const { value, done } = await reader.read();
          if (done) return controller.close();
          rest = value;
          if (performance.now() - asked > 1) since = performance.now(); // it had to wait: others had their turn
        }
        controller.enqueue(rest.subarray(0, PIECE));
        rest = rest.subarray(PIECE);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

/** When the next frame has been drawn; soon, should the page go out of sight meanwhile. */
function drawn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 250);
    nextFrame(() => soon(resolve));
  });
}
