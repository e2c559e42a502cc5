import type { ContentBlock } from "@agentclientprotocol/sdk";
import { GrowingText } from "./text";

/** Text that is still growing or a block that is not text: an image, a link, a file. */
type Part = GrowingText | ContentBlock;

/** What a message holds, in the order in which it came, cut into pieces that are drawn one by one. */
export class MessageBody {
  readonly parts: Part[] = [];

  append(block: ContentBlock): void {
    const last = this.parts.at(-1);
    if (block.type !== "text") this.parts.push(block);
    else if (last instanceof GrowingText) last.append(block.text);
    else {
      const text = new GrowingText();
      text.append(block.text);
      this.parts.push(text);
    }
  }

  get pieces(): number {
    return this.parts.reduce((sum, part) => sum + piecesOf(part), 0);
  }

  /** Markdown, or a block; null where there is none. */
  piece(index: number): string | ContentBlock | null {
    let before = 0;
    for (const part of this.parts) {
      const count = piecesOf(part);
      if (index < before + count) return part instanceof GrowingText ? part.piece(index - before) : part;
      before += count;
    }
    return null;
  }

  /** Everything that is text. */
  get text(): string {
    return this.parts.map((part) => (part instanceof GrowingText ? [...part.settled, part.tail].join("") : "")).join("");
  }
}

function piecesOf(part: Part): number {
  return part instanceof GrowingText ? part.pieces : 1;
}
