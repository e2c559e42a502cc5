import type { CreateElicitationRequest, RequestPermissionRequest } from "@agentclientprotocol/sdk";
import type { QuestionRequest } from "sandbox-agent-client";
import { type FormEvent, useState } from "react";
import { MarkdownText } from "../parts/markdown";
import { Status } from "../parts/small";
import { useAnswer } from "../state/server";
import type { AskItem } from "../state/timeline";
import { ToolContents } from "./ToolCall";
import "./Asks.css";

/** Something that the agent wants to know before it goes on. */
export function AskCard({ item }: { item: AskItem }) {
  const isOpen = item.outcome === null;
  const title = { permission: "Permission", question: "Question", elicitation: "Form" }[item.method];
  return (
    <section className={`card ask ${isOpen ? "open" : ""}`} aria-label={title}>
      <header>
        <strong>{title}</strong>
        {isOpen ? <Status tone="ask">Waiting for an answer</Status> : <Status tone="idle">{settled(item)}</Status>}
      </header>
      {item.method === "permission" && <Permission item={item} />}
      {item.method === "question" && <Question item={item} />}
      {item.method === "elicitation" && <Elicitation item={item} />}
    </section>
  );
}

function settled({ outcome, by }: AskItem): string {
  return by === null ? String(outcome) : `${outcome} · by ${by}`;
}

function Permission({ item }: { item: AskItem }) {
  const { toolCall, options } = item.params as RequestPermissionRequest;
  const answerWith = useAnswer(item.id);
  const isOpen = item.outcome === null;
  return (
    <>
      <p className="ask-title mono">{toolCall.title ?? toolCall.toolCallId}</p>
      {isOpen && <ToolContents call={{ ...toolCall, title: toolCall.title ?? "", content: toolCall.content ?? [] } as never} />}
      {isOpen && (
        <div className="choices">
          {options.map(({ optionId, name, kind }) => (
            <button
              key={optionId}
              type="button"
              className={kind === "allow_once" ? "primary" : ""}
              disabled={answerWith === null}
              onClick={() => answerWith?.({ optionId })}
            >
              {name}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

function Question({ item }: { item: AskItem }) {
  const { prompt, options, multiSelect } = item.params as QuestionRequest;
  const [chosen, setChosen] = useState<string[]>([]);
  const answerWith = useAnswer(item.id);
  const isOpen = item.outcome === null;
  const isLocked = answerWith === null;
  const choose = (id: string): void => {
    if (!multiSelect) setChosen([id]);
    else setChosen(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  };
  const answer = (event: FormEvent): void => {
    event.preventDefault();
    answerWith?.(chosen);
  };
  return (
    <form onSubmit={answer}>
      <MarkdownText source={prompt} />
      {isOpen && (
        <>
          <fieldset disabled={isLocked}>
            <legend className="visually-hidden">{prompt}</legend>
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
            <button type="submit" className="primary" disabled={isLocked || chosen.length === 0}>
              Answer
            </button>
            <button type="button" disabled={isLocked} onClick={() => answerWith?.("rejected")}>
              Decline
            </button>
          </div>
        </>
      )}
    </form>
  );
}

interface Field {
  type?: string;
  title?: string;
  description?: string;
  enum?: string[];
  default?: unknown;
}

function Elicitation({ item }: { item: AskItem }) {
  const request = item.params as CreateElicitationRequest & { message?: string; url?: string; requestedSchema?: { properties?: Record<string, Field>; required?: string[] } };
  const fields = Object.entries(request.requestedSchema?.properties ?? {});
  const answerWith = useAnswer(item.id);
  const isOpen = item.outcome === null;
  const isLocked = answerWith === null;
  const answer = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const content = Object.fromEntries(fields.map(([name, field]) => [name, valueOf(field, form.get(name))]).filter(([, value]) => value !== undefined));
    answerWith?.({ action: "accept", content });
  };
  return (
    <form onSubmit={answer}>
      <MarkdownText source={request.message ?? ""} />
      {isOpen && (
        <fieldset disabled={isLocked} className="fields">
          {fields.map(([name, field]) => (
            <label key={name}>
              <span>{field.title ?? name}</span>
              <FieldInput name={name} field={field} isRequired={request.requestedSchema?.required?.includes(name) ?? false} />
              {field.description && <small className="muted">{field.description}</small>}
            </label>
          ))}
          <div className="choices">
            <button type="submit" className="primary">
              Send
            </button>
            <button type="button" onClick={() => answerWith?.({ action: "decline" })}>
              Decline
            </button>
          </div>
        </fieldset>
      )}
    </form>
  );
}

function FieldInput({ name, field, isRequired }: { name: string; field: Field; isRequired: boolean }) {
  if (field.enum !== undefined) {
    return (
      <select name={name} required={isRequired} defaultValue={String(field.default ?? "")}>
        {!isRequired && <option value="" />}
        {field.enum.map((value) => (
          <option key={value}>{value}</option>
        ))}
      </select>
    );
  }
  if (field.type === "boolean") return <input type="checkbox" name={name} defaultChecked={field.default === true} />;
  const isNumber = field.type === "number" || field.type === "integer";
  return <input type={isNumber ? "number" : "text"} step={field.type === "integer" ? 1 : "any"} name={name} required={isRequired} defaultValue={field.default === undefined ? "" : String(field.default)} />;
}

function valueOf(field: Field, given: FormDataEntryValue | null): unknown {
  if (field.type === "boolean") return given !== null;
  if (given === null || given === "") return undefined;
  return field.type === "number" || field.type === "integer" ? Number(given) : String(given);
}
