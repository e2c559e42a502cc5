import { ROOT } from "./server";

export interface Size {
  cols: number;
  rows: number;
}

export interface Exit {
  exitCode: number | null;
  signal: string | null;
}

export interface Watcher {
  /** Output; `isOld` where it was printed before we came. */
  onOutput: (bytes: Uint8Array, isOld: boolean) => void;
  /** The size that the terminal has; `isOurs` where we decide about it. */
  onSize: (size: Size, isOurs: boolean) => void;
  onExit: (exit: Exit) => void;
  onOpen: () => void;
  onLost: () => void;
}

type Frame =
  | { type: "ready"; after: number; last: number; cols?: number; rows?: number }
  | { type: "resize"; cols: number; rows: number; yours: boolean }
  | { type: "error"; message: string; cut?: { toSequence: number } }
  | ({ type: "exit" } & Exit);

const LONGEST_PAUSE = 5_000;
/** Characters of input in one message: far below what the server takes, whatever they are. */
const PIECE = 8_000;

/** The terminal of a process. It comes back by itself, after exactly what it had. */
export class TerminalSocket {
  #socket: WebSocket | null = null;
  #position: number | null = null;
  #last = 0;
  #pause = 250;
  #timer = 0;
  #isOver = false;

  constructor(
    private readonly process: string,
    private readonly watcher: Watcher,
  ) {
    this.open();
  }

  open(): void {
    clearTimeout(this.#timer);
    if (this.#isOver || this.#socket !== null) return;
    const after = this.#position === null ? "" : `&after=${this.#position}`;
    const address = `${ROOT.replace(/^http/, "ws")}/v1/processes/${encodeURIComponent(this.process)}/terminal/ws?resizes=true${after}`;
    const socket = new WebSocket(address);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      if (socket !== this.#socket) return;
      if (typeof data === "string") this.#take(JSON.parse(data) as Frame);
      else {
        this.#position = (this.#position ?? 0) + 1;
        this.watcher.onOutput(new Uint8Array(data), this.#position <= this.#last);
      }
    };
    socket.onclose = () => {
      if (socket !== this.#socket) return;
      this.#socket = null;
      if (this.#isOver) return;
      this.watcher.onLost();
      this.#timer = setTimeout(() => this.open(), this.#pause);
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
    };
  }

  /** Leave; `open` goes on from here. */
  leave(): void {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  close(): void {
    this.#isOver = true;
    this.leave();
  }

  type(data: string): void {
    for (let at = 0; at < data.length; ) {
      const isSplit = /[\uD800-\uDBFF]/.test(data[at + PIECE - 1] ?? "");
      const end = at + PIECE - (isSplit ? 1 : 0);
      this.#send({ type: "input", data: data.slice(at, end) });
      at = end;
    }
  }

  /** Bytes, each given as a character. */
  typeBytes(data: string): void {
    this.#send({ type: "input", data: btoa(data), encoding: "base64" });
  }

  resize({ cols, rows }: Size): void {
    this.#send({ type: "resize", cols, rows });
  }

  #send(frame: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame));
  }

  #take(frame: Frame): void {
    switch (frame.type) {
      case "ready":
        this.#position = frame.after;
        this.#last = frame.last;
        this.#pause = 250;
        if (frame.cols !== undefined && frame.rows !== undefined) this.watcher.onSize({ cols: frame.cols, rows: frame.rows }, false);
        this.watcher.onOpen();
        break;
      case "resize":
        this.watcher.onSize(frame, frame.yours);
        break;
      case "error":
        if (frame.cut !== undefined) this.#position = frame.cut.toSequence;
        break;
      case "exit":
        this.#isOver = true;
        this.watcher.onExit(frame);
        break;
    }
  }
}
