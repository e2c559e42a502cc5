import type { SessionConfigOption } from "@agentclientprotocol/sdk";
import { useState } from "react";
import { ErrorLine } from "../parts/small";
import type { View } from "../state/conversation";
import { reasonOf } from "../state/server";

type Choice = { value: string; name: string };

/** Model, mode and whatever else the agent lets one choose for the next turn. */
export function ComposerOptions({ view, isLocked }: { view: View; isLocked: boolean }) {
  const { timeline, session } = view;
  const [error, setError] = useState<string | null>(null);
  const options = (timeline.configOptions ?? []).filter((option) => option.type === "select");
  const modes = options.length === 0 ? (session?.setup.modes?.availableModes ?? []) : [];
  const run = (work: Promise<unknown> | undefined): void => {
    setError(null);
    work?.catch((reason: unknown) => setError(reasonOf(reason)));
  };
  return (
    <span className="options">
      {options.map((option) => (
        <label key={option.id} title={option.description ?? option.name}>
          <span className="visually-hidden">{option.name}</span>
          <select value={String((option as { currentValue?: unknown }).currentValue ?? "")} disabled={isLocked} onChange={(event) => run(session?.setConfigOption(option.id, event.target.value))}>
            {choicesOf(option).map(({ value, name }) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      ))}
      {modes.length > 0 && (
        <label>
          <span className="visually-hidden">Mode</span>
          <select value={timeline.modeId ?? ""} disabled={isLocked} onChange={(event) => run(session?.setMode(event.target.value))}>
            {modes.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <ErrorLine text={error} />
    </span>
  );
}

function choicesOf(option: SessionConfigOption): Choice[] {
  const given = (option as { options?: (Choice | { options: Choice[] })[] }).options ?? [];
  return given.flatMap((one) => ("options" in one ? one.options : [one]));
}
