import type { CreateElicitationRequest, RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { readQuestion } from "sandbox-agent-client";
import { type FormEvent, lazy, Suspense, useState } from "react";
import { Icon } from "../parts/Icon";
import { MarkdownText } from "../parts/markdown";
import type { Field } from "../state/questions";
import { useAnswer } from "../state/server";
import type { AskItem } from "../state/items";
import { Outcome } from "./Outcome";
import { isToldBelow, ToolContents } from "./ToolCall";
import "./Asks.css";

const Form = lazy(async () => ({ default: (await import("./Form")).Form }));
const TITLES = { permission: "Permission", question: "Question", elicitation: "Form" } as const;

interface Props {
  item: AskItem;
  /** How many are open, this one included. */
  count: number;
  isOffline: boolean;
}

/** What the agent wants to know before it goes on. It stands where one writes, so that nobody has to look for it. */
export function OpenAsk({ item, count, isOffline }: Props) {
  const answer = useAnswer(item.id);
  const given = isOffline ? null : answer;
  return (
    <section className="ask open" aria-label={TITLES[item.method]}>
      <header>
        <Icon name="ask" />
        <strong>{headOf(item)}</strong>
        {count > 1 && <span className="muted">1 of {count}</span>}
      </header>
      {item.method === "permission" && <Permission item={item} answerWith={given} />}
      {item.method === "question" && <Question item={item} answerWith={given} />}
      {item.method === "elicitation" && <Elicitation item={item} answerWith={given} />}
      {isOffline && (
        <p className="muted" role="status">
          The server cannot be reached just now. You can answer when it is back.
        </p>
      )}
    </section>
  );
}

function headOf({ method, params }: AskItem): string {
  if (method === "question") return "The agent has a question";
  if (method === "elicitation") return "The agent needs some details";
  const { kind } = (params as RequestPermissionRequest).toolCall;
  return (kind != null && WANTS[kind]) || "The agent asks for permission";
}

const WANTS: Record<string, string> = {
  execute: "Run this command?",
  edit: "Make this change?",
  delete: "Delete this?",
  move: "Move this?",
  read: "Read this?",
  fetch: "Fetch this?",
};

/** A question or a form in the conversation: a line while it is open, then what was answered. */
export function AskLine({ item }: { item: AskItem }) {
  const text = item.method === "question" ? readQuestion(item.params).prompt : (item.params as { message?: string }).message;
  return (
    <div className="ask settled-ask" role="group" aria-label={TITLES[item.method]}>
      <MarkdownText source={text ?? ""} />
      {item.outcome === null ? <p className="muted">Waiting for an answer below</p> : <Outcome item={item} />}
      {item.sent !== null && (
        <dl className="sent">
          {Object.entries(item.sent).map(([name, value]) => (
            <div key={name}>
              <dt>{titleOf(item, name)}</dt>
              <dd>{typeof value === "object" ? JSON.stringify(value) : String(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}

function titleOf({ params }: AskItem, name: string): string {
  return (params as { requestedSchema?: Schema }).requestedSchema?.properties?.[name]?.title ?? name;
}

interface Schema {
  properties?: Record<string, Field>;
  required?: string[];
}

type Answering = { item: AskItem; answerWith: ((answer: unknown) => void) | null };

function Permission({ item, answerWith }: Answering) {
  const { toolCall, options, title, description } = item.params as RequestPermissionRequest & { title?: string; description?: string | null };
  const name = title ?? toolCall.title ?? toolCall.toolCallId;
  return (
    <>
      {!isToldBelow(name, toolCall as never) && <p className="ask-title mono">{name}</p>}
      {description && <p className="muted">{description}</p>}
      <ToolContents call={{ ...toolCall, title: toolCall.title ?? "", content: toolCall.content ?? [] } as never} />
      <div className="choices">
        {(options ?? []).map(({ optionId, name, kind }) => (
          <button key={optionId} type="button" className={kind === "allow_once" ? "primary" : ""} disabled={answerWith === null} onClick={() => answerWith?.({ optionId })}>
            {name}
          </button>
        ))}
      </div>
    </>
  );
}

function Question({ item, answerWith }: Answering) {
  const { prompt, options, multiSelect } = readQuestion(item.params);
  const [chosen, setChosen] = useState<string[]>([]);
  const [text, setText] = useState("");
  const isLocked = answerWith === null;
  const answers = options.length === 0 ? [text.trim()].filter(Boolean) : chosen;
  const choose = (id: string): void => {
    if (!multiSelect) setChosen([id]);
    else setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  };
  const answer = (event: FormEvent): void => {
    event.preventDefault();
    answerWith?.(answers);
  };
  return (
    <form onSubmit={answer}>
      <MarkdownText source={prompt} />
      <fieldset disabled={isLocked}>
        <legend className="visually-hidden">{prompt}</legend>
        {options.length === 0 && <input type="text" aria-label="Your answer" placeholder="Your answer" value={text} onChange={(event) => setText(event.target.value)} />}
        {options.map(({ id, label, description }) => (
          <label key={id} className="option">
            <input type={multiSelect ? "checkbox" : "radio"} name={`question-${item.key}`} value={id} checked={chosen.includes(id)} onChange={() => choose(id)} />
            <span>
              {label}
              {description && <small className="muted">{description}</small>}
            </span>
          </label>
        ))}
      </fieldset>
      <div className="choices">
        <button type="submit" className="primary" disabled={isLocked || answers.length === 0}>
          Answer
        </button>
        <button type="button" disabled={isLocked} onClick={() => answerWith?.("rejected")}>
          Decline
        </button>
      </div>
    </form>
  );
}

function Elicitation({ item, answerWith }: Answering) {
  const request = item.params as CreateElicitationRequest & { message?: string; requestedSchema?: Schema };
  return (
    <>
      <MarkdownText source={request.message ?? ""} />
      <Suspense>
        <Form
          schema={request.requestedSchema ?? {}}
          isLocked={answerWith === null}
          onSend={(content) => answerWith?.({ action: "accept", content })}
          onDecline={() => answerWith?.({ action: "decline" })}
        />
      </Suspense>
    </>
  );
}
