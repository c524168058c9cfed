/** Saves files from the page. */
import type { Drawing } from "../chart/plot.ts";

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const svgBlob = ({ markup }: Drawing) => new Blob([markup], { type: "image/svg+xml" });

export function saveSvg(drawing: Drawing, name: string): void {
  save(svgBlob(drawing), name);
}

/** Pixels of a PNG per unit of the drawing: enough for print. */
const LEAST_SCALE = 2;

/** Saves a drawing as pixels. */
export async function savePng(drawing: Drawing, name: string): Promise<void> {
  const address = URL.createObjectURL(svgBlob(drawing));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = Math.max(devicePixelRatio, LEAST_SCALE);
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(drawing.width * scale);
    canvas.height = Math.round(drawing.height * scale);
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && save(blob, name));
  } finally {
    URL.revokeObjectURL(address);
  }
}
