/** One member of the schema of a form, as far as a form can show it. */
export interface Field {
  type?: string;
  title?: string;
  description?: string;
  enum?: unknown[];
  enumNames?: string[];
  oneOf?: { const?: unknown; title?: string }[];
  anyOf?: { const?: unknown; title?: string }[];
  items?: Field;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  default?: unknown;
}

export interface Choice {
  value: string;
  label: string;
}

/** What a field lets one choose from; null where it takes anything of its type. */
export function choicesOf({ enum: values, enumNames, oneOf, anyOf }: Field): Choice[] | null {
  if (values !== undefined) return values.map((value, index) => ({ value: String(value), label: enumNames?.[index] ?? String(value) }));
  const named = (oneOf ?? anyOf)?.filter((one) => one.const !== undefined);
  return named === undefined || named.length === 0 ? null : named.map((one) => ({ value: String(one.const), label: one.title ?? String(one.const) }));
}

/** What was entered as the schema wants it; undefined where nothing was. */
export function valueOf(field: Field, given: readonly string[]): unknown {
  const [first = ""] = given;
  switch (field.type) {
    case "boolean":
      return given.length > 0;
    case "array": {
      const entered = choicesOf(field.items ?? {}) === null ? first.split("\n").map((line) => line.trim()).filter(Boolean) : given;
      return entered.map((one) => scalarOf(field.items ?? {}, one));
    }
    default:
      return first === "" ? undefined : scalarOf(field, first);
  }
}

function scalarOf(field: Field, text: string): unknown {
  if (field.type === "number" || field.type === "integer") return Number(text);
  if (field.format === "date-time") return new Date(text).toISOString();
  const constant = (field.enum ?? [...(field.oneOf ?? []), ...(field.anyOf ?? [])].map((one) => one.const)).find((one) => String(one) === text);
  return constant ?? text;
}

/** What browsers do not check by themselves; null where it is fine. */
export function problemOf(field: Field, given: readonly string[]): string | null {
  if (field.type !== "array") return null;
  const count = (valueOf(field, given) as unknown[]).length;
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = field;
  if (count < minItems) return minItems === 1 ? "Choose at least one" : `Choose at least ${minItems}`;
  return count > maxItems ? `Choose at most ${maxItems}` : null;
}
