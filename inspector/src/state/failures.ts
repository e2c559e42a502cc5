/** A failure as people read it; `detail` is for those who look closer. */
export interface Explained {
  text: string;
  advice: string | null;
  detail: string | null;
}

interface Known {
  matches: RegExp;
  /** What was found can be named by `$1`. */
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
    advice: "Log in to it, or set its API key where the server runs; then send the message again.",
  },
  {
    matches: /agent '[^']*' exited with code (\d+)[^\n]*/,
    text: "The agent stopped (exit code $1)",
    advice: "Send the message again to go on: the agent is started anew and knows the conversation.",
  },
  {
    matches: /agent '[^']*' was ended by (\w+)[^\n]*/,
    text: "The agent was ended by $1",
    advice: "Send the message again to go on: the agent is started anew and knows the conversation.",
  },
  {
    matches: /the process of agent '[^']*' was ended|agent '[^']*' is not running[^\n]*/,
    text: "The agent was stopped",
    advice: "Send the message again to go on: the agent is started anew and knows the conversation.",
  },
  {
    matches: /agent '[^']*' did not start: ([^\n]*)/,
    text: "The agent could not be started: $1",
    advice: "Its log is under Agents. Try again when that is mended.",
  },
  {
    matches: /did not answer (\S+) within [^\n]*|no answer to (\S+) in time[^\n]*/,
    text: "The agent did not answer in time",
    advice: "Try again. If it stays like this, look at its log under Agents.",
  },
  {
    matches: /method not found[^\n]*session\/fork|session\/fork[^\n]*not (?:found|supported)/i,
    text: "This agent cannot fork sessions",
    advice: "Start a new session in the same directory instead.",
  },
  {
    matches: /needs the right '(\w+)'; the token [^\n]*/,
    text: "Your token does not allow that: it needs the right “$1”",
    advice: "Ask whoever runs the server for a token that has it.",
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
  if (known === undefined) return { text, advice: null, detail };
  const named = known.matches.exec(`${text}\n${detail ?? ""}`)?.slice(1).find(Boolean) ?? "";
  return { text: known.text.replace("$1", named), advice: known.advice, detail: rest(detail, known.matches) };
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
