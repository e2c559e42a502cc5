/** Text with the look that a terminal would give it, as names of classes. */
export interface Span {
  text: string;
  look: string;
  /** Colours without a name, as CSS has them. */
  colour?: string;
  ground?: string;
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// CSI and OSC sequences, strings up to their terminator, two-byte escapes; an unfinished one at the end as well
const ESCAPE = /\u001b(?:\[([0-9:;<=>?]*)[ -/]*([@-~]?)|\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[PX^_][^\u001b]*(?:\u001b\\|$)|[ -/]*[0-Z\\^-~]?)/g;
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** What a command printed: colours are kept, other escape codes dropped, and rewritten lines are shown once. */
export function spansOf(output: string): Span[] {
  const spans: Span[] = [];
  let look = new Look();
  let at = 0;
  const add = (text: string): void => {
    if (text !== "") spans.push({ text, look: look.names, ...look.exact });
  };
  const source = settleLines(output);
  for (const found of source.matchAll(ESCAPE)) {
    add(source.slice(at, found.index).replace(CONTROL, ""));
    at = found.index + found[0].length;
    if (found[2] === "m") look = look.with(found[1] ?? "");
  }
  add(source.slice(at).replace(CONTROL, ""));
  return spans;
}

export function plainText(output: string): string {
  return spansOf(output)
    .map(({ text }) => text)
    .join("");
}

/** A carriage return begins its line again: progress bars print the same line many times. */
function settleLines(output: string): string {
  if (!output.includes("\r") && !output.includes("\b")) return output;
  return output
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => withoutBackspaces(line.replace(/\r+$/, "").split("\r").at(-1) ?? ""))
    .join("\n");
}

function withoutBackspaces(line: string): string {
  if (!line.includes("\b")) return line;
  const kept: string[] = [];
  for (const character of line) {
    if (character === "\b") kept.pop();
    else kept.push(character);
  }
  return kept.join("");
}

class Look {
  constructor(
    private readonly flags: readonly string[] = [],
    private readonly colour: string = "",
    private readonly ground: string = "",
  ) {}

  get names(): string {
    return [...this.flags, this.colour, this.ground].filter((name) => name !== "" && !name.startsWith("rgb")).join(" ");
  }

  get exact(): Pick<Span, "colour" | "ground"> {
    return { ...(this.colour.startsWith("rgb") && { colour: this.colour }), ...(this.ground.startsWith("rgb") && { ground: this.ground }) };
  }

  with(codes: string): Look {
    let { flags, colour, ground } = this as unknown as { flags: readonly string[]; colour: string; ground: string };
    const numbers = codes.split(/[;:]/).map(Number);
    for (let index = 0; index < numbers.length; index += 1) {
      const code = numbers[index] as number;
      if (code === 0) [flags, colour, ground] = [[], "", ""];
      else if (FLAGS[code]) flags = [...new Set([...flags, FLAGS[code]])];
      else if (code === 22) flags = flags.filter((flag) => flag !== "t-bold" && flag !== "t-dim");
      else if (code === 23) flags = flags.filter((flag) => flag !== "t-italic");
      else if (code === 24) flags = flags.filter((flag) => flag !== "t-underline");
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = `t-${COLOURS[code % 10]}`;
      else if (code === 39) colour = "";
      else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) ground = `t-on-${COLOURS[code % 10]}`;
      else if (code === 49) ground = "";
      else if (code === 38 || code === 48) {
        const [name, skipped] = extended(numbers.slice(index + 1));
        const isExact = name === "" || name.startsWith("rgb");
        if (code === 38) colour = isExact ? name : `t-${name}`;
        else ground = isExact ? name : `t-on-${name}`;
        index += skipped;
      }
    }
    return new Look(flags, colour, ground);
  }
}

const FLAGS: Record<number, string> = { 1: "t-bold", 2: "t-dim", 3: "t-italic", 4: "t-underline" };

/** The first sixteen of 256 colours have names here; others, and exact ones, are told as they are: `rgb(…)`. */
function extended([kind, ...numbers]: number[]): [string, number] {
  if (kind === 2) {
    const [red = 0, green = 0, blue = 0] = numbers;
    return [rgb(red, green, blue), 4];
  }
  const [number = 0] = numbers;
  return kind === 5 ? [number < 16 ? (COLOURS[number % 8] as string) : paletteColour(number), 2] : ["", 0];
}

/** A cube of six steps for each of red, green and blue, then a ramp of greys. */
function paletteColour(number: number): string {
  if (number >= 232) return rgb(...([0, 0, 0].map(() => 8 + (number - 232) * 10) as [number, number, number]));
  const step = (place: number): number => [0, 95, 135, 175, 215, 255][Math.floor((number - 16) / place) % 6] as number;
  return rgb(step(36), step(6), step(1));
}

function rgb(red: number, green: number, blue: number): string {
  return `rgb(${red} ${green} ${blue})`;
}
