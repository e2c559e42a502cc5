import { Dialog, Time } from "../parts/small";
import type { Spent } from "../state/spending";
import { money } from "../state/text";
import "./UsageView.css";

/** Tokens and cost, turn by turn. */
export function UsageView({ turns, onClose }: { turns: readonly Spent[]; onClose: () => void }) {
  const most = Math.max(1, ...turns.map(({ used }) => used));
  const costs = turns.map(({ cost }, index) => (cost?.amount ?? 0) - (turns[index - 1]?.cost?.amount ?? 0));
  const dearest = Math.max(0, ...costs);
  const last = turns.at(-1);
  return (
    <Dialog title="Tokens and cost" onClose={onClose}>
      <div className="usage-view">
        {last !== undefined && (
          <p>
            <strong>{last.used.toLocaleString("en")}</strong> of {last.size.toLocaleString("en")} tokens of the context window are in use
            {last.cost !== null && (
              <>
                ; the session has cost <strong>{money(last.cost)}</strong> so far
              </>
            )}
            .
          </p>
        )}
        <div className="usage-turns" tabIndex={0} role="region" aria-label="Turns">
          <table>
            <thead>
              <tr>
                <th scope="col">Turn</th>
                <th scope="col">Context</th>
                {last?.cost != null && <th scope="col">Cost</th>}
              </tr>
            </thead>
            <tbody>
              {turns.map(({ prompt, time, used, cost }, index) => (
                <tr key={index}>
                  <th scope="row">
                    <span className="prompt">{prompt || "Before the first prompt"}</span>
                    <span className="muted">
                      <Time at={time} />
                    </span>
                  </th>
                  <td>
                    <Bar part={used / most} />
                    {used.toLocaleString("en")}
                  </td>
                  {last?.cost != null && (
                    <td>
                      <Bar part={dearest > 0 ? (costs[index] ?? 0) / dearest : 0} />
                      {cost === null ? "" : money({ ...cost, amount: costs[index] ?? 0 })}
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </div>
    </Dialog>
  );
}

function Bar({ part }: { part: number }) {
  return (
    <svg className="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect width={Math.max(0, part) * 100} height="6" />
    </svg>
  );
}
