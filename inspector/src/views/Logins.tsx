import type { AuthMethod } from "@agentclientprotocol/sdk";
import { useEffect, useState } from "react";
import { ErrorLine } from "../parts/small";
import { reasonOf, sandbox } from "../state/server";
import "./Logins.css";

/** The number that JSON-RPC has for an agent that wants a login first. */
export const AUTH_REQUIRED = -32000;

interface Login {
  id: string;
  name: string;
  description: string | null;
}

interface Props {
  agent: string;
  /** Variables of the server's environment that it takes a key from, as far as they are known. */
  keys?: string[];
  /** What to do when it has worked. */
  next?: string;
}

/** What an agent can be logged in with, as it says itself, each with a button that tries it. Asking starts the agent. */
export function Logins({ agent, keys = [], next = "" }: Props) {
  const [logins, setLogins] = useState<Login[] | null>(null);
  const [said, setSaid] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  const run = async (work: () => Promise<void>): Promise<void> => {
    setError(null);
    setSaid(null);
    await work().catch((reason: unknown) => {
      setSaid(null);
      setError(reasonOf(reason));
    });
  };
  useEffect(() => void run(async () => setLogins(await loginsOf(agent))), [agent]);
  const logIn = ({ id, name }: Login): Promise<void> =>
    run(async () => {
      setSaid(`Trying ${name}`);
      const { acp, initialized } = await sandbox.connection(agent);
      await acp.request(Number(initialized.protocolVersion) === 2 ? "auth/login" : "authenticate", { methodId: id });
      setSaid(`Logged in with ${name}. ${next}`.trim());
    });
  return (
    <div className="logins">
      {logins === null && error === null && <p className="muted">Asking the agent</p>}
      {logins?.length === 0 && <p className="muted">The agent offers no login. It takes its API key from the server’s environment.</p>}
      {(logins ?? []).map((login) => (
        <p key={login.id} className="login">
          <button type="button" className="small" onClick={() => void logIn(login)}>
            {login.name}
          </button>
          <span className="muted">{login.description}</span>
        </p>
      ))}
      {keys.length > 0 && (
        <p className="muted">
          Or set <code>{keys.join(" or ")}</code> where the server runs, and restart it.
        </p>
      )}
      <ErrorLine text={error} />
      {said !== null && <p role="status">{said}</p>}
    </div>
  );
}

/** Version 2 of the protocol names a method by `methodId`. */
async function loginsOf(agent: string): Promise<Login[]> {
  const methods = ((await sandbox.connection(agent)).initialized.authMethods ?? []) as (AuthMethod & { methodId?: string })[];
  return methods.map(({ id, methodId, name, description }) => ({ id: methodId ?? id, name, description: description ?? null }));
}
