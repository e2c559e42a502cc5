import { useState } from "react";
import type { Conversation } from "../state/conversation";
import { explain } from "../state/failures";
import { reasonOf } from "../state/server";
import { useStore } from "../state/store";
import type { NoteItem } from "../state/timeline";

/** What went wrong, in words for people, with what can be done about it. */
export function Failure({ item, conversation }: { item: NoteItem; conversation: Conversation }) {
  const { text, advice, detail } = explain(item);
  const prompt = item.turn?.prompt ?? null;
  const isLogin = item.code === AUTH_REQUIRED;
  return (
    <div className="entry note error" role="alert">
      <strong>{text}</strong>
      {advice !== null && <p>{advice}</p>}
      {detail && <pre className="mono">{detail}</pre>}
      {(isLogin || prompt !== null) && (
        <div className="choices">
          {isLogin && <Logins conversation={conversation} />}
          {prompt !== null && (
            <button type="button" onClick={() => conversation.send(prompt)}>
              Send again
            </button>
          )}
        </div>
      )}
    </div>
  );
}

const AUTH_REQUIRED = -32000;

/** What the agent offers to log in with. */
function Logins({ conversation }: { conversation: Conversation }) {
  const { session } = useStore(conversation.view);
  const [said, setSaid] = useState<string | null>(null);
  const methods = session?.connection.initialized.authMethods ?? [];
  const logIn = async (id: string): Promise<void> => {
    setSaid("Logging in");
    try {
      await session?.connection.acp.request("authenticate", { methodId: id });
      setSaid("Logged in. Send the message again.");
    } catch (error) {
      setSaid(reasonOf(error));
    }
  };
  return (
    <>
      {methods.map(({ id, name, description }) => (
        <button key={id} type="button" className="primary" title={description ?? ""} onClick={() => void logIn(id)}>
          {name}
        </button>
      ))}
      {said !== null && <span role="status">{said}</span>}
    </>
  );
}
