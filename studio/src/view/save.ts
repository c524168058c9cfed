/** Saves files from the page. */
import { coloursOf } from "../chart/plot.ts";

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Saves a canvas with the page's background. */
export function saveCanvas(canvas: HTMLCanvasElement, name: string, home: Element): void {
  const made = document.createElement("canvas");
  made.width = canvas.width;
  made.height = canvas.height;
  const context = made.getContext("2d")!;
  context.fillStyle = coloursOf(home).paper;
  context.fillRect(0, 0, made.width, made.height);
  context.drawImage(canvas, 0, 0);
  made.toBlob((blob) => blob && save(blob, name));
}
