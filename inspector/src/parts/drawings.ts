import { type RefObject, useLayoutEffect } from "react";
import { Store, useStore } from "../state/store";

/** Draws into an element that holds its source, and marks it as drawn. */
type Draw = (element: HTMLElement) => void;

/** What is fetched only when a text needs it. */
class Drawer {
  readonly draw = new Store<Draw | null>(null);
  #isLoading = false;

  constructor(readonly selector: string, readonly fetch: () => Promise<Draw>) {}

  load(): void {
    if (this.#isLoading) return;
    this.#isLoading = true;
    this.fetch().then(
      (draw) => this.draw.set(draw),
      () => (this.#isLoading = false), // asked for again with the next one
    );
  }
}

const FORMULAS = new Drawer(".formula", async () => (await import("./math")).drawFormula);
const DIAGRAMS = new Drawer(".diagram", async () => (await import("./diagram")).drawDiagram);

/** Draw the formulas and diagrams of a text whose HTML has just been set. What cannot be drawn stays as its source. */
export function useDrawings(box: RefObject<HTMLElement | null>, html: unknown): void {
  useDrawer(FORMULAS, box, html);
  useDrawer(DIAGRAMS, box, html);
}

function useDrawer(drawer: Drawer, box: RefObject<HTMLElement | null>, html: unknown): void {
  const draw = useStore(drawer.draw);
  useLayoutEffect(() => {
    const found = box.current?.querySelectorAll<HTMLElement>(`${drawer.selector}:not(.drawn)`) ?? [];
    if (found.length > 0 && draw === null) drawer.load();
    if (draw === null) return;
    for (const element of found) draw(element);
  }, [drawer, box, html, draw]);
}
