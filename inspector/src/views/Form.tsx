import { type FormEvent, useState } from "react";
import { choicesOf, type Field, problemOf, valueOf } from "../state/questions";

interface Props {
  schema: { properties?: Record<string, Field>; required?: string[] };
  isLocked: boolean;
  onSend: (content: Record<string, unknown>) => void;
  onDecline: () => void;
}

/** A form for a JSON schema. It lets nothing through that the schema forbids. */
export function Form({ schema, isLocked, onSend, onDecline }: Props) {
  const fields = Object.entries(schema.properties ?? {});
  const [problems, setProblems] = useState<Record<string, string>>({});
  const isRequired = (name: string): boolean => schema.required?.includes(name) ?? false;
  const send = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = (name: string): string[] => form.getAll(name).map(String);
    const found = fields.flatMap(([name, field]) => {
      const problem = problemOf(isRequired(name) && field.type === "array" ? { minItems: 1, ...field } : field, given(name));
      return problem === null ? [] : [[name, problem] as const];
    });
    setProblems(Object.fromEntries(found));
    if (found.length > 0) return;
    onSend(Object.fromEntries(fields.map(([name, field]) => [name, valueOf(field, given(name))] as const).filter(([, value]) => value !== undefined)));
  };
  return (
    <form onSubmit={send}>
      <fieldset disabled={isLocked} className="fields">
        {fields.map(([name, field]) => (
          <FieldRow key={name} name={name} field={field} isRequired={isRequired(name)} problem={problems[name] ?? null} />
        ))}
        <div className="choices">
          <button type="submit" className="primary">
            Send
          </button>
          <button type="button" onClick={onDecline}>
            Decline
          </button>
        </div>
      </fieldset>
    </form>
  );
}

interface RowProps {
  name: string;
  field: Field;
  isRequired: boolean;
  problem: string | null;
}

function FieldRow({ name, field, isRequired, problem }: RowProps) {
  const title = field.title ?? name;
  const isGroup = field.type === "array" && choicesOf(field.items ?? {}) !== null;
  const notes = (
    <>
      {field.description && <small className="muted">{field.description}</small>}
      {problem !== null && (
        <small className="bad" role="alert">
          {problem}
        </small>
      )}
    </>
  );
  if (isGroup) {
    return (
      <fieldset className="field group">
        <legend>{title}</legend>
        <Boxes name={name} field={field} />
        {notes}
      </fieldset>
    );
  }
  return (
    <label>
      <span>
        {title}
        {isRequired && field.type !== "boolean" && <span className="muted"> · required</span>}
      </span>
      <Input name={name} field={field} isRequired={isRequired} />
      {notes}
    </label>
  );
}

function Boxes({ name, field }: { name: string; field: Field }) {
  const chosen = new Set(Array.isArray(field.default) ? field.default.map(String) : []);
  return choicesOf(field.items ?? {})?.map(({ value, label }) => (
    <label key={value} className="option">
      <input type="checkbox" name={name} value={value} defaultChecked={chosen.has(value)} />
      <span>{label}</span>
    </label>
  ));
}

const TYPES: Record<string, string> = { email: "email", uri: "url", url: "url", date: "date", "date-time": "datetime-local", password: "password" };

function Input({ name, field, isRequired }: { name: string; field: Field; isRequired: boolean }) {
  const choices = choicesOf(field);
  const initial = field.default === undefined ? "" : String(field.default);
  if (choices !== null) {
    return (
      <select name={name} required={isRequired} defaultValue={initial}>
        {(!isRequired || initial === "") && <option value="" />}
        {choices.map(({ value, label }) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    );
  }
  if (field.type === "boolean") return <input type="checkbox" name={name} defaultChecked={field.default === true} />;
  if (field.type === "array") return <textarea name={name} rows={3} required={isRequired} placeholder="One per line" />;
  const isNumber = field.type === "number" || field.type === "integer";
  return (
    <input
      type={isNumber ? "number" : (TYPES[field.format ?? ""] ?? "text")}
      name={name}
      required={isRequired}
      defaultValue={initial}
      {...(isNumber ? { step: field.type === "integer" ? 1 : "any", min: field.minimum, max: field.maximum } : { minLength: field.minLength, maxLength: field.maxLength, pattern: field.pattern })}
    />
  );
}
