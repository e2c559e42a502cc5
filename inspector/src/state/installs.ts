import type { InstallProgress } from "sandbox-agent-client";
import { agentList } from "./lists";
import { reasonOf, sandbox } from "./server";
import { Store } from "./store";

/** An install that was begun on this page. It is kept when the view is left, and when it failed until it is retried. */
export interface Install {
  since: number;
  /** The newest word of each step, in the order of the steps. */
  steps: InstallProgress[];
  /** Milliseconds that it took; null while it runs. */
  took: number | null;
  error: string | null;
}

export const installs = new Store<Readonly<Record<string, Install>>>({});

/** Install it; an agent that is there already is brought up to date. */
export async function install(agent: string, { isUpdate = false } = {}): Promise<void> {
  if (installs.value[agent]?.took === null) return;
  const since = Date.now();
  change(agent, { since, steps: [], took: null, error: null });
  try {
    await sandbox.agents.install(agent, { reinstall: isUpdate, onProgress: (progress) => change(agent, { steps: withStep(agent, progress) }) });
    await agentList.refresh();
    change(agent, { took: Date.now() - since });
  } catch (reason) {
    change(agent, { took: Date.now() - since, error: reasonOf(reason) });
  }
}

function change(agent: string, more: Partial<Install>): void {
  installs.set({ ...installs.value, [agent]: { ...(installs.value[agent] as Install), ...more } });
}

function withStep(agent: string, progress: InstallProgress): InstallProgress[] {
  const { steps } = installs.value[agent] as Install;
  return steps.at(-1)?.step === progress.step ? [...steps.slice(0, -1), progress] : [...steps, progress];
}
