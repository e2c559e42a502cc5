/** A failure as people read it; `detail` is for those who look closer. */
export interface Explained {
  text: string;
  advice: string | null;
  detail: string | null;
}

interface Known {
  matches: RegExp;
  text: string;
  advice: string;
}

/** What the server and browsers say to programs, and what people can do about it. */
const KNOWN: Known[] = [
  {
    matches: /was running when the server stopped/,
    text: "The turn failed: the server was restarted while it ran",
    advice: "What was done until then is kept above. Send the message again to go on.",
  },
  {
    matches: /authentication required|auth_required/i,
    text: "The agent needs you to log in",
    advice: "Use one of its logins below, or set its API key where the server runs, then try again.",
  },
  { matches: /prompts waiting already/, text: "Too many messages wait in this session", advice: "Send it again when one of them is done." },
  {
    matches: /Failed to fetch|NetworkError|Load failed|fetch failed|ConnectionLost|connection was closed/i,
    text: "The server cannot be reached",
    advice: "Check that it is running. This page connects again by itself.",
  },
];

export function explain({ text, detail }: { text: string; detail: string | null }): Explained {
  const known = KNOWN.find(({ matches }) => matches.test(`${text}\n${detail ?? ""}`));
  return known === undefined ? { text, advice: null, detail } : { text: known.text, advice: known.advice, detail: rest(detail, known.matches) };
}

/** The same for a single line, such as above a list. */
export function plainReason(message: string): string {
  const { text, advice } = explain({ text: message, detail: null });
  return advice === null ? text : `${text}. ${advice}`;
}

/** What the explanation does not say already. */
function rest(detail: string | null, matches: RegExp): string | null {
  const lines = (detail ?? "").split("\n").filter((line) => !matches.test(line));
  return lines.join("\n").trim() || null;
}
