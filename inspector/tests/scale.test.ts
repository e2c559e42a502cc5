import { describe, expect, it } from "vitest";
import { Heights } from "../src/parts/heights";
import { type Envelope, envelopeOf } from "../src/state/journal";
import { Rows } from "../src/state/rows";
import { type Kind, Search } from "../src/state/search";
import { GrowingText } from "../src/state/text";
import { Timeline } from "../src/state/timeline";

function grown(source: string, step: number): GrowingText {
  const text = new GrowingText();
  for (let at = 0; at < source.length; at += step) text.append(source.slice(at, at + step));
  return text;
}

describe("text that grows", () => {
  it("has pieces of bounded size that say what was said, however it came", () => {
    const source = `${"A paragraph of words.\n\n".repeat(2000)}${"unbroken ".repeat(5000)}`;
    for (const step of [7, 61, 5000, source.length]) {
      const text = grown(source, step);
      expect(text.settled.join("") + text.tail).toBe(source);
      expect(Math.max(...text.settled.map(({ length }) => length))).toBeLessThan(8_500);
      expect(text.pieces).toBeGreaterThan(20);
    }
  });

  it("goes on with a long code block as a code block", () => {
    const text = grown(`Look:\n\n~~~~python\n${"line = 1\n\n```\n".repeat(3000)}~~~~\n\nDone`, 50);
    expect(text.settled.length).toBeGreaterThan(2);
    expect(text.settled[0]).toBe("Look:\n\n");
    for (const piece of text.settled.slice(1, -1)) {
      expect(piece.startsWith("~~~~python\n")).toBe(true);
      expect(piece.endsWith("\n~~~~")).toBe(true);
    }
    expect(text.settled.at(-1)).toMatch(/^~~~~python\n[^]*\n~~~~\n\n$/);
    expect(text.tail).toBe("Done");
  });

  it("cuts no character in two", () => {
    for (const piece of grown("😀".repeat(20_000), 4001).settled) expect(() => encodeURIComponent(piece)).not.toThrow();
  });
});

describe("heights", () => {
  it("find rows by place and places by row", () => {
    const heights = new Heights();
    const plain: number[] = [];
    for (let index = 0; index < 1000; index += 1) {
      plain.push((index * 37) % 90);
      heights.push(50);
    }
    plain.forEach((height, index) => heights.set(index, height));
    let sum = 0;
    plain.forEach((height, index) => {
      expect(heights.before(index)).toBe(sum);
      if (height > 0) expect(heights.at(sum)).toBe(index);
      if (height > 1) expect(heights.at(sum + height - 1)).toBe(index);
      sum += height;
    });
    expect(heights.total).toBe(sum);
    expect([heights.at(-100), heights.at(1e9)]).toEqual([0, 999]);
  });
});

function journal(count: number): Envelope[] {
  return Array.from({ length: count }, (_, index) =>
    envelopeOf({ sequence: index, time: index, source: "agent", message: { jsonrpc: "2.0", id: index, method: index % 2 ? "Odd" : "even" } }),
  );
}

function found(search: Search): number[] {
  while (!search.isDone) search.advance(0);
  return Array.from({ length: search.count }, (_, index) => search.at(index).time);
}

describe("a search", () => {
  it("finds the same in slices, from an unfinished earlier one, and in what comes later", () => {
    const envelopes = journal(1000);
    const first = new Search(envelopes, "all", "odd");
    first.advance(0);
    expect(first.isDone).toBe(false);
    const second = new Search(envelopes, "all", "odd\"", first);
    second.advance(0);
    const third = new Search(envelopes, "requests", "ODD", second);
    const odd = envelopes.map(({ time }) => time).filter((time) => time % 2);
    for (const search of [second, third, first]) expect(found(search)).toEqual(odd);
    envelopes.push(envelopeOf({ sequence: 1, time: 7777, source: "server", message: { jsonrpc: "2.0", method: "odd" } }));
    expect(found(first)).toEqual([...odd, 7777]);
  });

  it("takes what is written literally, and keeps to the kind that is wanted", () => {
    const envelopes = journal(10);
    expect(found(new Search(envelopes, "all", "o.d"))).toEqual([]);
    for (const kind of ["answers", "notifications", "errors"] as Kind[]) expect(found(new Search(envelopes, kind, ""))).toEqual([]);
    expect(new Search(envelopes, "all", "").count).toBe(10);
  });
});

describe("rows", () => {
  it("are the same whether taken as they come or at the end", () => {
    const timeline = new Timeline();
    const kept = new Rows();
    for (let index = 0; index < 300; index += 1) {
      const kind = index % 50 < 45 ? "agent_message_chunk" : "agent_thought_chunk";
      const update = { sessionUpdate: kind, content: { type: "text", text: "word ".repeat(100) } };
      timeline.feed([{ sequence: null, time: 0, source: "agent", message: { jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update } } }]);
      kept.of(timeline.items);
    }
    expect(kept.of(timeline.items)).toEqual(new Rows().of(timeline.items));
    expect(kept.of(timeline.items).length).toBeGreaterThan(12);
  });
});
