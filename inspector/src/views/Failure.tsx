import type { Conversation } from "../state/conversation";
import { explain } from "../state/failures";
import { useStore } from "../state/store";
import type { NoteItem } from "../state/items";
import { AUTH_REQUIRED, Logins } from "./Logins";

/** What went wrong, in words for people, with what can be done about it. */
export function Failure({ item, conversation }: { item: NoteItem; conversation: Conversation }) {
  const { text, advice, detail } = explain(item);
  const { session, timeline } = useStore(conversation.view);
  const agent = session?.agent ?? conversation.agent;
  const prompt = timeline.ended === null ? (item.turn?.prompt ?? null) : null; // an ended session takes nothing more
  return (
    <div className="entry note error" role="alert">
      <strong>{text}</strong>
      {advice !== null && <p>{advice}</p>}
      {detail && <pre className="mono">{detail}</pre>}
      {item.code === AUTH_REQUIRED && agent !== null && <Logins agent={agent} next="Send the message again." />}
      {prompt !== null && (
        <div className="choices">
          <button type="button" onClick={() => conversation.send(prompt)}>
            Send again
          </button>
        </div>
      )}
    </div>
  );
}
