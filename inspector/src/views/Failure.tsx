import { Fold, Icon } from "../parts/Icon";
import type { Conversation } from "../state/conversation";
import { explain } from "../state/failures";
import { useStore } from "../state/store";
import type { NoteItem } from "../state/items";
import { AUTH_REQUIRED, Logins } from "./Logins";

/** What went wrong, in words for people, with what can be done about it; what programs say of it on demand. */
export function Failure({ item, conversation }: { item: NoteItem; conversation: Conversation }) {
  const { text, advice, detail } = explain(item);
  const { session, timeline } = useStore(conversation.view);
  const agent = session?.agent ?? conversation.agent;
  const isOver = timeline.ended !== null; // an ended session takes nothing more
  const prompt = isOver ? null : (item.turn?.prompt ?? null);
  return (
    <div className="entry note error" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{text}</strong>
        {advice !== null && <p>{isOver ? "The session has ended with it. Start a new one to go on." : advice}</p>}
        {detail && <Detail text={detail} isFolded={advice !== null} />}
        {item.code === AUTH_REQUIRED && agent !== null && <Logins agent={agent} next="Send the message again." />}
        {prompt !== null && (
          <div className="choices">
            <button type="button" onClick={() => conversation.send(prompt)}>
              Send again
            </button>
          </div>
        )}
      </div>
    </div>
  );
}

/** All there is to read, where nothing better is known of the failure. */
function Detail({ text, isFolded }: { text: string; isFolded: boolean }) {
  const lines = (
    <pre className="mono" tabIndex={0}>
      {text}
    </pre>
  );
  if (!isFolded) return lines;
  return (
    <details>
      <summary className="muted">
        Details <Fold />
      </summary>
      {lines}
    </details>
  );
}
