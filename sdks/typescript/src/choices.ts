import { RequestError } from "@agentclientprotocol/sdk";
import type { SessionSetup } from "./session.js";

const INVALID = -32602;
/** Where the server says what became of a choice. */
const REPORTED = { model: "model", mode: "agentMode" } as const;

/** What is wrong with the first choice that the server could not apply: the agent does not offer it. */
export function notApplied(
  setup: SessionSetup,
  agent: string,
  wanted: { model?: string | undefined; mode?: string | undefined },
): RequestError | null {
  for (const category of ["model", "mode"] as const) {
    const told = setup.meta[REPORTED[category]] as { applied?: boolean; reason?: string } | undefined;
    if (wanted[category] === undefined || told?.applied !== false) continue;
    const offered = choicesOf(setup, category);
    const isListed = offered.length > 0 && !offered.includes(wanted[category]);
    const list = isListed ? `available: ${offered.join(", ")}` : (told.reason ?? "it was not applied");
    return new RequestError(INVALID, `agent '${agent}' has no ${category} '${wanted[category]}'; ${list}`);
  }
  return null;
}

function choicesOf(setup: SessionSetup, category: "model" | "mode"): string[] {
  const option = setup.configOptions?.find((one) => one.category === category);
  if (option !== undefined && "options" in option) {
    const listed = option.options as { value?: string; options?: { value?: string }[] }[];
    return listed.flatMap((one): { value?: string }[] => one.options ?? [one]).map(({ value }) => String(value));
  }
  if (category === "mode") return (setup.modes?.availableModes ?? []).map(({ id }) => id);
  const models = setup.models as { availableModels?: { modelId: string }[] } | null | undefined;
  return (models?.availableModels ?? []).map(({ modelId }) => modelId);
}
