import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import "./screen.css";
import type { ProcessInfo } from "sandbox-agent-client";
import { exitWords, openTabs } from "../state/processes";
import { sandbox } from "../state/server";
import { Store } from "../state/store";
import { type Size, TerminalSocket } from "../state/terminalSocket";
import { withStrictStyles } from "./strictStyles";
import { marksNow, onThemeChange, themeNow } from "./terminalTheme";

export interface ScreenState {
  connection: "opening" | "open" | "lost" | "over";
  /** How the process exited. */
  exit: string | null;
  size: Size | null;
  /** Whether the size is that of somebody else's window. */
  isForeign: boolean;
  /** Places where what is sought was found, and which of them is in sight. */
  found: { at: number; count: number } | null;
}

/** Bytes that may wait to be drawn. What is beyond stays with the server until they are. */
const UNDRAWN = 1 << 20;
const LINES = 5_000;

/** What a process shows: a terminal to type into, or, for one without a terminal, what it prints. */
export class Screen {
  readonly state = new Store<ScreenState>({ connection: "opening", exit: null, size: null, isForeign: false, found: null });
  onFind: () => void = () => {};
  onLeave: () => void = () => {};
  readonly #terminal: Terminal;
  readonly #fit = new FitAddon();
  readonly #search = new SearchAddon();
  readonly #socket: TerminalSocket | null;
  readonly #endTheme: () => void;
  #reading: AbortController | null = null;
  #position = 0;
  #undrawn = 0;
  #isOld = false;
  #isLeader = false;
  #own: Size | null = null;

  constructor(readonly info: ProcessInfo) {
    this.#terminal = new Terminal({
      allowProposedApi: true, // marks of what is found
      convertEol: !info.tty,
      disableStdin: !info.tty,
      cursorInactiveStyle: info.tty ? "outline" : "none",
      fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"),
      fontSize: 13,
      lineHeight: 1.2,
      minimumContrastRatio: 4.5,
      scrollback: LINES,
      theme: themeNow(),
    });
    this.#terminal.loadAddon(this.#fit);
    this.#terminal.loadAddon(this.#search);
    this.#terminal.attachCustomKeyEventHandler((event) => !this.#isOwnKey(event));
    this.#search.onDidChangeResults(({ resultIndex: at, resultCount: count }) => this.#change({ found: { at, count } }));
    this.#endTheme = onThemeChange(() => (this.#terminal.options.theme = themeNow()));
    this.#socket = info.tty ? this.#connect() : null;
  }

  /** Show it in a box, as large as that is; gives the way to take it out again. */
  attach(box: HTMLElement): () => void {
    if (this.#terminal.element === undefined) {
      withStrictStyles(() => this.#terminal.open(box));
      this.#terminal.textarea?.setAttribute("aria-label", "Terminal input");
    } else box.append(this.#terminal.element);
    const observer = new ResizeObserver(() => this.#measure());
    observer.observe(box);
    if (this.#socket === null) void this.#read();
    return () => {
      observer.disconnect();
      this.#terminal.element?.remove();
      this.#reading?.abort(); // it holds one of the few connections that a browser has
    };
  }

  focus(): void {
    this.#terminal.focus();
  }

  find(text: string, way: "as typed" | "next" | "previous"): void {
    const options = { incremental: way === "as typed", decorations: marksNow() };
    if (text === "") this.endFind();
    else if (way === "previous") this.#search.findPrevious(text, options);
    else this.#search.findNext(text, options);
  }

  endFind(): void {
    this.#search.clearDecorations();
    this.#terminal.clearSelection();
    this.#change({ found: null });
  }

  /** What is selected, or else everything. */
  async copy(): Promise<void> {
    const text = this.#terminal.getSelection() || this.text();
    if (navigator.clipboard !== undefined) await navigator.clipboard.writeText(text);
    else copyPlainly(text);
    this.focus();
  }

  text(): string {
    const { active } = this.#terminal.buffer;
    let text = "";
    for (let at = 0; at < active.length; at += 1) {
      const line = active.getLine(at);
      if (at > 0 && !line?.isWrapped) text += "\n";
      text += line?.translateToString(!active.getLine(at + 1)?.isWrapped) ?? "";
    }
    return `${text.trimEnd()}\n`;
  }

  /** As if typed. Programs decide what arrow keys send. */
  type(keys: string): void {
    const isApplication = this.#terminal.modes.applicationCursorKeysMode;
    this.#socket?.type(isApplication ? keys.replace(/^\x1b\[(?=[ABCD]$)/, "\x1bO") : keys);
    this.focus();
  }

  close(): void {
    this.#socket?.close();
    this.#reading?.abort();
    this.#endTheme();
    this.#terminal.dispose();
  }

  #connect(): TerminalSocket {
    const socket = new TerminalSocket(this.info.id, {
      onOpen: () => {
        this.#change({ connection: "open" });
        this.#measure();
      },
      onLost: () => this.#change({ connection: "lost" }),
      onSize: (size, isOurs) => {
        this.#isLeader = isOurs;
        this.#terminal.resize(size.cols, size.rows);
        const own = this.#own;
        this.#change({ size, isForeign: !isOurs && own !== null && (own.cols !== size.cols || own.rows !== size.rows) });
      },
      onOutput: (bytes, isOld) => this.#draw(bytes, isOld),
      onExit: (exit) => this.#over(exitWords(exit)),
    });
    this.#terminal.onData((data) => socket.type(data));
    this.#terminal.onBinary((data) => socket.typeBytes(data));
    this.#answerOnce();
    return socket;
  }

  /**
   * Programs ask what terminal they have. One answer is wanted, from the one who types, and none to what was asked
   * before we came: a second answer would be taken for keys.
   */
  #answerOnce(): void {
    const { parser } = this.#terminal;
    const isSilent = (): boolean => this.#isOld || !this.#isLeader;
    const asking = [
      ...["", ">", "="].map((prefix) => ({ prefix, final: "c" })),
      ...["", "?"].flatMap((prefix) => [
        { prefix, final: "n" },
        { prefix, intermediates: "$", final: "p" },
      ]),
    ];
    for (const { prefix, ...rest } of asking) parser.registerCsiHandler(prefix === "" ? rest : { prefix, ...rest }, isSilent);
    parser.registerDcsHandler({ intermediates: "$", final: "q" }, isSilent);
    for (const colour of [4, 10, 11, 12]) parser.registerOscHandler(colour, (words) => words.includes("?") && isSilent());
  }

  /** Say how large this window is. The terminal becomes so if we are the one who types. */
  #measure(): void {
    const { cols, rows } = this.#fit.proposeDimensions() ?? { cols: 0, rows: 0 };
    if (!(cols > 1 && rows > 1)) return;
    this.#own = { cols, rows };
    if (this.#socket === null) this.#terminal.resize(cols, rows);
    else this.#socket.resize(this.#own);
  }

  #draw(bytes: Uint8Array, isOld: boolean): void {
    this.#undrawn += bytes.length;
    if (this.#undrawn > UNDRAWN) this.#socket?.leave();
    this.#terminal.write("", () => (this.#isOld = isOld));
    this.#terminal.write(bytes, () => {
      this.#undrawn -= bytes.length;
      if (this.#undrawn < UNDRAWN / 4) this.#socket?.open();
    });
  }

  /** What a process without a terminal prints, while it is in sight. */
  async #read(): Promise<void> {
    const { signal } = (this.#reading = new AbortController());
    try {
      const process = await sandbox.processes.get(this.info.id);
      if (this.state.value.connection !== "over") this.#change({ connection: "open" });
      for await (const { sequence, data } of process.output({ after: this.#position, retryFor: Infinity, signal })) {
        if (signal.aborted) return;
        this.#position = sequence;
        await new Promise<void>((drawn) => this.#terminal.write(data, drawn));
      }
      this.#over(exitWords(process.info));
    } catch {
      if (!signal.aborted) this.#change({ connection: "lost" });
    }
  }

  #over(exit: string | null): void {
    this.#terminal.options.disableStdin = true;
    this.#change({ connection: "over", exit });
  }

  #change(more: Partial<ScreenState>): void {
    this.state.set({ ...this.state.value, ...more });
  }

  /** Keys that are for us, not for the program. */
  #isOwnKey(event: KeyboardEvent): boolean {
    if (event.type !== "keydown" || !(event.ctrlKey || event.metaKey) || !event.shiftKey) return false;
    const acts: Record<string, () => void> = { C: () => void this.copy(), F: () => this.onFind(), L: () => this.onLeave() };
    const act = acts[event.key.toUpperCase()];
    if (act === undefined) return false;
    event.preventDefault();
    act();
    return true;
  }
}

/** Where a page that was not loaded safely has no clipboard. */
function copyPlainly(text: string): void {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

const screens = new Map<string, Screen>();

/** The screen of a process, which lives on for as long as it has a tab, in sight or not. */
export function screenOf(info: ProcessInfo): Screen {
  const screen = screens.get(info.id) ?? new Screen(info);
  screens.set(info.id, screen);
  return screen;
}

openTabs.onClosed = (id) => {
  screens.get(id)?.close();
  screens.delete(id);
};
