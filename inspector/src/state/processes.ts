import type { ProcessInfo } from "sandbox-agent-client";
import { onProcessChange } from "./feed";
import { reasonOf, sandbox } from "./server";
import { Store } from "./store";

interface Processes {
  processes: ProcessInfo[];
  error: string | null;
  isLoaded: boolean;
}

/** Milliseconds between two looks at a server that does not tell of changes. */
const EVERY = 5_000;
/** The user's shell, or else the best that there is. */
const SHELL = 'exec "${SHELL:-$(command -v bash || echo sh)}"';
const OPEN_TABS = 12;

class ProcessList extends Store<Processes> {
  #isAsking = false;
  #isStale = false;

  constructor() {
    super({ processes: [], error: null, isLoaded: false });
  }

  /** Calls that come while one is under way make one more, not many. */
  async refresh(): Promise<void> {
    this.#isStale = true;
    if (this.#isAsking) return;
    this.#isAsking = true;
    while (this.#isStale) {
      this.#isStale = false;
      try {
        this.set({ processes: await sandbox.processes.list(), error: null, isLoaded: true });
      } catch (error) {
        this.set({ ...this.value, error: reasonOf(error), isLoaded: true });
      }
    }
    this.#isAsking = false;
  }

  /** Keep it fresh; gives the way to stop. */
  watch(): () => void {
    void this.refresh();
    const timer = setInterval(() => {
      if (!document.hidden) void this.refresh();
    }, EVERY);
    const stop = onProcessChange(() => void this.refresh());
    return () => {
      clearInterval(timer);
      stop();
    };
  }
}

export const processList = new ProcessList();

/** A shell in the directory of a session, or where the server stands. */
export async function startShell(sessionId: string | null): Promise<ProcessInfo> {
  const env = { TERM: "xterm-256color", COLORTERM: "truecolor" };
  const { info } = await sandbox.processes.start("sh", { args: ["-c", SHELL], tty: true, env, ...(sessionId !== null && { sessionId }) });
  await processList.refresh();
  return info;
}

export function processName({ command, args }: ProcessInfo): string {
  if (command === "sh" && args[1] === SHELL) return "Shell";
  return [command.slice(command.lastIndexOf("/") + 1), ...args].join(" ");
}

/** How it exited; null while it runs. */
export function exitWords({ status, exitCode, signal, lost }: Partial<ProcessInfo>): string | null {
  if (status === "running") return null;
  if (lost) return "Ended with the server";
  return signal ? `Ended by ${signal}` : `Exit code ${exitCode ?? "unknown"}`;
}

/** The processes that are open in tabs, by where: a session, or the page of all. They stay over a reload. */
class OpenTabs extends Store<Record<string, string[]>> {
  /** Told of each process that has no tab any more. */
  onClosed: (id: string) => void = () => {};

  open(place: string, id: string): void {
    const tabs = this.value[place] ?? [];
    if (!tabs.includes(id)) this.#put(place, [...tabs, id].slice(-OPEN_TABS));
  }

  close(place: string, id: string): void {
    this.#put(place, (this.value[place] ?? []).filter((one) => one !== id));
  }

  #put(place: string, tabs: string[]): void {
    const rest = { ...this.value, [place]: tabs };
    if (tabs.length === 0) delete rest[place];
    const open = new Set(Object.values(rest).flat());
    const closed = Object.values(this.value).flat().filter((id) => !open.has(id));
    this.set(rest);
    for (const id of closed) this.onClosed(id);
    sessionStorage.setItem(KEY, JSON.stringify(rest));
  }
}

const KEY = "sandbox-agent.terminals";

export const openTabs = new OpenTabs(stored());

function stored(): Record<string, string[]> {
  try {
    return JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Record<string, string[]>;
  } catch {
    return {};
  }
}
