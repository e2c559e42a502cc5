import { keyOf, type Live, liveness } from "./liveness";
import { sessionList } from "./lists";
import { nameOf } from "./names";
import { go } from "./route";
import { Store } from "./store";

const KEY = "sandbox-agent.notifies";

/** Whether this browser tells when something is asked or done while the page is out of sight. */
export const notifies = new Store(localStorage.getItem(KEY) === "1" && globalThis.Notification?.permission === "granted");

/** Turning it on asks the browser for leave; it stays off where that is refused. */
export async function toggleNotifications(): Promise<void> {
  const isOn = !notifies.value && "Notification" in globalThis && (await Notification.requestPermission()) === "granted";
  localStorage.setItem(KEY, isOn ? "1" : "0");
  notifies.set(isOn);
}

/** Watch every session that the page knows; gives the way to stop. */
export function watchForNotifications(): () => void {
  let before = liveness.value;
  return liveness.subscribe(() => {
    const now = liveness.value;
    for (const { agent, sessionId, ...session } of sessionList.value.sessions) {
      const key = keyOf(agent, sessionId);
      const words = newsOf(before[key], now[key]);
      if (words !== null && notifies.value && document.hidden) tell(nameOf({ ...session, sessionId }), words, agent, sessionId);
    }
    before = now;
  });
}

/** What to say of a change; null where it is none to interrupt somebody for. */
export function newsOf(before: Live | undefined, now: Live | undefined): string | null {
  if (now === "asking" && before !== "asking") return "The agent waits for an answer";
  return now === "quiet" && (before === "working" || before === "asking") ? "The turn is over" : null;
}

function tell(title: string, body: string, agent: string, sessionId: string): void {
  const told = new Notification(title, { body, tag: sessionId });
  told.onclick = () => {
    window.focus();
    go(["sessions", sessionId], { agent });
  };
}
